"""Signals, streams and the list of runs."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from troth.errors import MisuseError
from troth.runtime.store import Follower, RunState, commit_point
from troth.runtime.store.identity import new_owner, retire
from troth.runtime.store.records import Place, StepState

POINT = commit_point("test.commit", "whatever a test writes")


def test_signals_are_taken_once_in_order_of_sending(store):
    """Each message is received by one step; a second sending with the same key is none."""
    send = [("go", "1", None), ("stop", "2", None), ("go", "3", "k"), ("go", "4", "k")]
    sent = [
        store.commit(POINT, lambda tx, one=one: tx.send_signal("r", one[0], one[1], 0.0, key=one[2])) for one in send
    ]
    assert sent == [True, True, True, False]
    taken = [store.commit(POINT, lambda tx, by=by: tx.take_signal("r", "go", by)) for by in "abc"]
    assert taken == ["1", "3", None]
    assert [(s.name, s.payload, s.taken_by) for s in store.signals("r")] == [
        ("go", 1, "a"),
        ("stop", 2, None),
        ("go", 3, "b"),
    ]


def test_streams_count_without_gaps(store):
    """Sixteen writers, two streams: numbers 1..n in each, whatever the order."""

    def write(number):
        for _ in range(20):
            store.commit(POINT, lambda tx: tx.append_event(f"s{number % 2}", "n", number, 0.0))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for stream in ("s0", "s1"):
        assert [event.seq for event in store.events(stream)] == list(range(1, 161))
        assert store.last_event(stream) == 160
        assert [event.seq for event in store.events(stream, after=158)] == [159, 160]


WRITER = """
import sys
from troth.runtime.store import SqliteStore, commit_point
POINT = commit_point("test.commit", "whatever a test writes")
with SqliteStore(sys.argv[1]) as store:
    for number in range(100):
        store.commit(POINT, lambda tx: tx.append_event("s", "n", number, 0.0))
"""


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_stream_is_followed_across_processes(path, store, color):
    """Nothing lost, nothing twice, in order, from a cursor on, while another process appends."""
    seen = []

    def follow():
        with Follower(store, "s", after=10, page=7) as follower:
            while len(seen) < 90:
                events = follower.take(20)
                assert events
                seen.extend(events)

    async def afollow():
        with Follower(store, "s", after=10, page=7) as follower:
            while len(seen) < 90:
                events = await follower.atake(20)
                assert events
                seen.extend(events)

    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) as writer:
        follow() if color == "sync" else asyncio.run(afollow())
        assert writer.wait(20) == 0
    assert [event.seq for event in seen] == list(range(11, 101))
    assert [event.payload for event in seen] == list(range(10, 100))


def test_a_follower_that_waits_in_vain(store):
    """No entry in time is an empty answer, and the same follower goes on afterwards."""
    with Follower(store, "s") as follower:
        assert follower.take(0.01) == []
        assert asyncio.run(follower.atake(0.01)) == []
        store.commit(POINT, lambda tx: tx.append_event("s", "n", 1, 0.0))
        assert [event.seq for event in follower.take(0)] == [1]


def test_runs_are_listed_newest_first_in_pages(store):
    """By state, decision and label; interrupted ones are told from running ones, and pages lose none."""

    def work(tx):
        for number in range(30):
            tx.add_run(
                f"r{number:02}", f"d{number % 2}", "[]", float(number), label="even" if number % 2 == 0 else None
            )
            if number < 10:
                tx.finish_run(f"r{number:02}", RunState.COMPLETED, 100.0, result="null")
            elif number < 20:
                tx.set_run_state(f"r{number:02}", RunState.WAITING, 100.0, waiting_for="signal 'go'")

    store.commit(POINT, work)
    assert len(store.runs(states=[RunState.INTERRUPTED])) == 10
    assert store.runs(states=[RunState.RUNNING]) == []
    assert [run.id for run in store.runs(states=[RunState.WAITING], decision="d1", limit=2)] == ["r19", "r17"]
    assert len(store.runs(label="even")) == 15
    seen, before = [], None
    while page := store.runs(before=before, limit=7):
        seen.extend(run.id for run in page)
        before = (page[-1].created_at, page[-1].id)
    assert seen == [f"r{number:02}" for number in reversed(range(30))]


def test_runs_of_a_family_are_found_by_their_word(store):
    """What their decision said of their end, else their state; newest first, from a place on."""

    def work(tx):
        for number in range(40):
            family = "flow:" if number % 2 else ""
            tx.add_run(f"r{number:02}", f"{family}d", "[]", float(number))
            ending = "undone" if number % 4 == 1 else None
            if number < 30:
                tx.finish_run(f"r{number:02}", RunState.FAILED, 100.0, error="{}", ending=ending)
            elif number < 34:
                tx.set_run_state(f"r{number:02}", RunState.WAITING, 100.0)

    store.commit(POINT, work)

    def found(word, **more):
        return [run.id for run in store.runs(family="flow:", word=word, **more)]

    assert found("undone", limit=2) == ["r29", "r25"]
    assert found("undone", limit=2, before=(25.0, "r25")) == ["r21", "r17"]
    assert found("failed", limit=2) == ["r27", "r23"]
    assert found("waiting") == ["r33", "r31"]
    assert found("interrupted") == ["r39", "r37", "r35"]
    assert found("running") == []
    owner = new_owner(time.time())
    store.commit(POINT, lambda tx: (tx.enroll(owner), tx.claim("run:r37", owner.id, "token", time.time())))
    assert found("running") == ["r37"]
    assert found("interrupted") == ["r39", "r35"]
    retire(owner)
    with pytest.raises(MisuseError, match="family"):
        store.runs(word="failed")


def test_steps_are_listed_in_the_order_of_the_decision(store):
    """Branches stand after the step that opened them, also beyond the ninth."""
    places = [("", 1), ("", 2), ("2.0/", 1), ("2.0/", 10), ("2.0/10.1/", 1), ("2.11/", 1), ("", 3), ("", 12)]

    def work(tx):
        for branch, seq in reversed(places):
            tx.begin_step(Place("r", branch, seq), kind="step", name="n", key="k", args="[]", now=time.time())
        tx.settle_step(Place("r", "", 1), StepState.DONE, 1.0, kind="step", name="n", result="1")
        return tx.copy_steps("r", "fork", 3)

    assert store.commit(POINT, work) == 6
    assert [(step.place.branch, step.place.seq) for step in store.steps("r")] == places
    assert [(step.place.branch, step.place.seq) for step in store.steps("fork")] == places[:6]


def test_questions_use_indexes(store):
    """No question that is asked often walks a whole table."""
    questions = {
        "SELECT * FROM runs WHERE id = 'x'": "runs",
        "SELECT * FROM history WHERE run_id = 'x' ORDER BY seq, sub": "history",
        "SELECT * FROM history WHERE run_id = 'x' AND seq > 1 AND sub = 0 ORDER BY seq LIMIT 9": "history",
        "SELECT * FROM history WHERE run_id = 'x' AND kind = 'wait' AND name = 'y' ORDER BY seq, sub": "history",
        "SELECT max(seq) FROM history WHERE run_id = 'x'": "history",
        "SELECT max(seq) FROM events WHERE stream = 'x'": "events",
        "SELECT * FROM events WHERE stream = 'x' AND seq > 1 ORDER BY seq LIMIT 9": "events",
        "SELECT * FROM signals WHERE run_id = 'x' AND name = 'y' AND taken_by IS NULL ORDER BY id LIMIT 1": "signals",
        "SELECT * FROM runs WHERE 1 AND state IN ('x') ORDER BY created_at DESC, id DESC LIMIT 9": "runs",
        "SELECT * FROM runs WHERE 1 AND decision = 'x' ORDER BY created_at DESC, id DESC LIMIT 9": "runs",
        "SELECT * FROM runs WHERE 1 AND label = 'x' AND coalesce(ending, state) = 'y' "
        "ORDER BY created_at DESC, id DESC LIMIT 9": "runs",
        "DELETE FROM leases WHERE owner = 'x'": "leases",
        "SELECT * FROM runs WHERE instr(decision, ':') > 0 AND substr(decision, 1, instr(decision, ':')) = 'x:' "
        "AND coalesce(ending, state) = 'y' ORDER BY created_at DESC, id DESC LIMIT 9": "runs",
    }
    with store._readers.lend() as connection:
        for question, table in questions.items():
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question}")]
            assert not [line for line in plan if line.startswith(f"SCAN {table}") and "INDEX" not in line], (
                question,
                plan,
            )
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan, question
