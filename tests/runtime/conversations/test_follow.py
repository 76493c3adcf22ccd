"""Following a log: in order, each entry once, at one's own pace."""

import asyncio
import threading

from troth.runtime.agents import Agent, ToolCallingAgent
from troth.runtime.conversations import Status
from troth.testing.scripted import ScriptedModel, call

LIMIT = 20


class Quiet(Agent):
    def step(self, conversation):
        return None


def test_a_slow_follower_loses_nothing_and_slows_nobody(home):
    """One that waits before its first entry sees all of them in order; the senders never wait for it."""
    conversation = home.open(Quiet())
    begin = threading.Event()
    seen = []

    def follow():
        for event in conversation.subscribe(timeout=LIMIT):
            assert begin.wait(LIMIT)
            seen.append(event.seq)
            if len(seen) == 501:
                return

    follower = threading.Thread(target=follow)
    follower.start()
    for number in range(500):
        conversation.send(str(number))
    begin.set()
    follower.join(LIMIT)
    assert seen == list(range(1, 502))


def test_a_cursor_goes_on_where_it_was(home):
    """Without loss and without doubles, however often one leaves."""
    conversation = home.open(Quiet())
    for number in range(20):
        conversation.send(str(number))
    seen, after = [], 0
    while len(seen) < 21:
        for event in conversation.subscribe(after=after):
            seen.append(event.seq)
            after = event.seq
            if event.seq % 3 == 0:
                break
    assert seen == list(range(1, 22))


def test_followers_on_two_loops_in_two_threads(home):
    """Each on its own loop, neither of which is the sender's."""
    conversation = home.open(Quiet())
    results = {}

    def on_a_loop(name):
        async def follow():
            seen = []
            async for event in conversation.asubscribe(timeout=LIMIT):
                seen.append(event.payload.get("text"))
                if len(seen) == 4:
                    return seen

        results[name] = asyncio.run(follow())

    threads = [threading.Thread(target=on_a_loop, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for text in ("x", "y", "z"):
        conversation.send(text)
    for thread in threads:
        thread.join(LIMIT)
    assert results == {"a": [None, "x", "y", "z"], "b": [None, "x", "y", "z"]}


def test_what_is_heard_is_already_in_the_log(home):
    """Persisted before published: a callback finds its event in the store."""
    found = []
    conversation = home.open(
        Quiet(), on_event=[lambda event: found.append(event.seq in [kept.seq for kept in conversation.events()])]
    )
    conversation.send("hello")
    conversation.run()
    assert found
    assert all(found)


def test_an_interrupted_batch_of_tools_does_not_stall_the_loop(home):
    """Two sync tools are stuck in threads; the loop goes on, and the run ends while they are."""
    go, began = threading.Event(), threading.Event()

    def stuck() -> str:
        """Wait."""
        began.set()
        go.wait(LIMIT)
        return "late"

    conversation = home.open(ToolCallingAgent(ScriptedModel([call("stuck", id="a"), call("stuck", id="b")]), [stuck]))
    conversation.send("go")

    async def main():
        run = asyncio.create_task(conversation.arun())
        while not began.is_set():
            await asyncio.sleep(0.001)
        conversation.interrupt()
        return await run

    assert asyncio.run(main()).outcome is Status.INTERRUPTED
    assert not go.is_set()
    go.set()
