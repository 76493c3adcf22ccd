"""What a commit decides, it decides on what that commit sees: also what others write in the same transaction."""

import threading
from collections import Counter

from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.runtime.conversations import AlreadyRunning, Conversations
from troth.runtime.conversations.log import stream_of
from troth.runtime.store import SqliteStore


class Echo(Agent):
    """Says one word."""

    def step(self, conversation):
        conversation.say("heard")


def all_at_once(*works):
    problems = []

    def guarded(work):
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert problems == []


def test_six_threads_open_the_same_conversations_while_others_write(tmp_path):
    """Each is opened once."""
    count, openers = 150, 6
    barrier = threading.Barrier(openers)
    over = threading.Event()
    with SqliteStore(tmp_path / "t.db") as store, Conversations(store) as home:

        def open_all():
            for number in range(count):
                barrier.wait(60)
                home.open(Echo(), f"c{number}")

        def write(conversation):
            while not over.is_set():
                conversation.send("noise")

        def opening():
            try:
                all_at_once(*[open_all] * openers)
            finally:
                over.set()

        others = [home.open(Echo(), f"other{number}") for number in range(4)]
        all_at_once(opening, *(lambda one=one: write(one) for one in others))
        logs = [[event.kind for event in store.events(stream_of(f"c{number}"))] for number in range(count)]
    assert logs == [["opened"]] * count


def test_a_run_that_starts_in_the_transaction_in_which_another_ends(tmp_path):
    """The run before has ended, though that is not kept yet: it is not taken for one that was cut off."""
    rounds, runners = 40, 4
    with SqliteStore(tmp_path / "t.db") as store, Conversations(store) as home:
        talks = [home.open(Echo(), "c") for _ in range(runners)]

        def run(conversation):
            done = 0
            while done < rounds:
                conversation.send("go on")
                try:
                    conversation.run()
                except AlreadyRunning:
                    continue
                done += 1

        all_at_once(*(lambda one=one: run(one) for one in talks))
        events = [event for event in talks[0].events() if event.kind.startswith("run.")]
    ends = Counter(event.payload["run"] for event in events if event.kind == "run.ended")
    starts = Counter(event.payload["run"] for event in events if event.kind == "run.started")
    assert starts == ends == Counter(dict.fromkeys(starts, 1))
    assert {event.payload["outcome"] for event in events if event.kind == "run.ended"} == {"finished"}


def test_half_of_a_letter_is_said_as_it_is(tmp_path):
    """What is left of an emoji that was cut in two: the log keeps it, and the list shows a mark in its place."""
    with Runtime(tmp_path / "t.db", in_process=False) as runtime:
        conversation = runtime.conversations.open(Echo(), "c")
        conversation.send("half \ud83d")
        conversation.run()
        assert conversation.messages()[0].text == "half \ud83d"
        assert [item.title for item in runtime.lists.conversations()] == ["half ?"]
