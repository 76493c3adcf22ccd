"""Several handles of one conversation, as a server has them: one run, one log, and callbacks that hear all of it."""

import asyncio
import gc
import threading
import time

import pytest

from troth.runtime.agents import Agent
from troth.runtime.conversations import AgentExitError, AlreadyRunning, Conversations, Status, Stopping
from troth.runtime.conversations.drivers import ConversationRun
from troth.runtime.store import SqliteStore

LIMIT = 20  # seconds after which a test that hangs is given up


class Echo(Agent):
    """Answers in plain code."""

    def step(self, conversation):
        conversation.say(f"you said {conversation.messages()[-1].text}")


class AsyncEcho(Agent):
    """Answers on a loop."""

    async def astep(self, conversation):
        await asyncio.sleep(0)
        await conversation.asay(f"you said {conversation.messages()[-1].text}")


class Held(Agent):
    """A sync step that lasts until it is interrupted."""

    def __init__(self):
        self.began = threading.Event()

    def step(self, conversation):
        self.began.set()
        deadline = time.monotonic() + LIMIT
        while not conversation.is_interrupted:
            assert time.monotonic() < deadline, "nobody stopped it"
            time.sleep(0.001)


class AsyncHeld(Agent):
    """An async step that lasts until it is interrupted."""

    def __init__(self):
        self.began = threading.Event()

    async def astep(self, conversation):
        self.began.set()
        async with asyncio.timeout(LIMIT):
            await asyncio.Event().wait()


def kinds(events):
    return [event.kind for event in events]


def followed(conversation, after):
    """What follows entry `after`, up to the end of the run."""
    events = []
    for event in conversation.subscribe(after=after, timeout=LIMIT):
        events.append(event)
        if event.kind == "run.ended":
            return events
    raise AssertionError(f"the run did not end: {kinds(events)}")


async def afollowed(conversation, after):
    events = []
    async for event in conversation.asubscribe(after=after, timeout=LIMIT):
        events.append(event)
        if event.kind == "run.ended":
            return events
    raise AssertionError(f"the run did not end: {kinds(events)}")


def until(condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)


# ---- one run


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_any_handle_stops_the_run(home, agent):
    """Also one that was opened while it was under way, with an agent of its own."""
    held = agent()
    first = home.open(held, "c")
    first.send("hello")
    number = first.start()
    assert held.began.wait(LIMIT)
    second = home.open(agent(), "c")
    assert second.status is Status.RUNNING
    assert second.interrupt() is Stopping.WILL_STOP
    assert followed(second, number)[-1].payload["outcome"] == "interrupted"
    assert second.interrupt() is Stopping.STOPPED


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_a_run_whose_end_is_written_is_over(home, agent, monkeypatch):
    """Those who follow the log read of the end before the run itself goes on: it is not stopped once more."""
    goes_on, ended = threading.Event(), ConversationRun.ended

    def held_up(run, events):
        assert goes_on.wait(LIMIT)
        ended(run, events)

    monkeypatch.setattr(ConversationRun, "ended", held_up)
    held = agent()
    conversation = home.open(held, "c")
    conversation.send("hello")
    number = conversation.start()
    try:
        assert held.began.wait(LIMIT)
        assert conversation.interrupt() is Stopping.WILL_STOP
        assert followed(conversation, number)[-1].payload["outcome"] == "interrupted"
        assert conversation.interrupt() is Stopping.STOPPED
        assert asyncio.run(conversation.ainterrupt()) is Stopping.STOPPED
        last = [event.kind for event in conversation.events()][-1]
    finally:
        goes_on.set()
    assert last == "run.ended"


def test_a_handle_of_other_conversations_on_the_same_file_stops_it(store, home, tmp_path):
    """The run is found by what the log says of it, whichever store it was opened with."""
    held = AsyncHeld()
    number = home.open(held, "c").start()
    assert held.began.wait(LIMIT)
    with SqliteStore(tmp_path / "troth.db") as other, Conversations(other) as elsewhere:
        conversation = elsewhere.open(AsyncEcho(), "c")
        with pytest.raises(AlreadyRunning, match="in this process"):
            conversation.run()
        assert conversation.interrupt() is Stopping.WILL_STOP
        assert followed(conversation, number)[-1].payload["outcome"] == "interrupted"


def test_a_pause_from_another_handle(home):
    """On a loop."""

    class Counting(Agent):
        def __init__(self):
            self.paused = asyncio.Event()
            self.steps = 0

        async def astep(self, conversation):
            self.steps += 1
            began.set()
            await asyncio.wait_for(self.paused.wait(), LIMIT)
            return True

    began = asyncio.Event()

    async def main():
        agent = Counting()
        run = asyncio.create_task(home.open(agent, "c").arun())
        await asyncio.wait_for(began.wait(), LIMIT)
        await home.open(agent, "c").apause()
        agent.paused.set()
        return (await run).outcome, agent.steps

    assert asyncio.run(main()) == (Status.PAUSED, 1)


def test_closing_a_handle_leaves_the_run_of_another(home):
    """A request that closes its handle does not end what goes on."""
    held = Held()
    first, second = home.open(held, "c"), home.open(Held(), "c")
    number = first.start()
    assert held.began.wait(LIMIT)
    assert second.close() == []
    assert first.status is Status.RUNNING
    assert first.close() == []
    assert followed(home.open(Echo(), "c"), number)[-1].payload["outcome"] == "interrupted"


# ---- in the background


@pytest.mark.parametrize("agent", [Echo, AsyncEcho])
@pytest.mark.parametrize("entry", ["start", "astart"])
def test_a_turn_in_the_background(home, agent, entry):
    """It has begun when the call returns; what it does is followed from the number that was returned."""
    conversation = home.open(agent())
    conversation.send("hello")

    async def main():
        number = await conversation.astart()
        return number, await afollowed(conversation, number)

    if entry == "start":
        number = conversation.start()
        events = followed(conversation, number)
    else:
        number, events = asyncio.run(main())
    assert kinds(conversation.events())[number - 1] == "run.started"
    assert kinds(events) == ["message", "step.done", "run.ended"]
    assert conversation.status is Status.FINISHED


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_a_second_turn_is_refused_at_once(home, agent):
    """By the call itself, not in the background."""
    held = agent()
    conversation = home.open(held)
    number = conversation.start()
    with pytest.raises(AlreadyRunning):
        conversation.start()
    with pytest.raises(AlreadyRunning):
        asyncio.run(conversation.astart())
    conversation.interrupt()
    followed(conversation, number)


def test_what_a_step_raises_in_the_background_is_in_the_log(home, caplog):
    """Nobody is there to be told, so it is logged as well."""

    class Raises(Agent):
        def step(self, conversation):
            raise ValueError("bad")

    class AsyncRaises(Agent):
        async def astep(self, conversation):
            raise ValueError("bad")

    for agent in (Raises(), AsyncRaises()):
        conversation = home.open(agent)
        (end,) = (event for event in followed(conversation, conversation.start()) if event.kind == "run.ended")
        assert end.payload["error"] == {"type": "ValueError", "message": "bad"}
        until(lambda conversation=conversation: conversation.id in caplog.text)
        caplog.clear()


def test_the_handle_may_be_dropped(home):
    """The run keeps what it needs."""
    agent = Held()
    number = home.open(agent, "c").start()
    gc.collect()
    assert agent.began.wait(LIMIT)
    second = home.open(Echo(), "c")
    assert second.interrupt() is Stopping.WILL_STOP
    assert followed(second, number)[-1].payload["outcome"] == "interrupted"


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_closing_ends_what_is_in_the_background(store, agent):
    """And waits for it."""
    held = agent()
    with Conversations(store) as home:
        conversation = home.open(held, "c")
        conversation.start()
        assert held.began.wait(LIMIT)
    with Conversations(store) as home:
        assert home.open(Echo(), "c").status is Status.INTERRUPTED


def test_a_loop_that_ends_ends_what_was_started_on_it(home):
    """As asyncio ends every task of it."""
    held = AsyncHeld()
    conversation = home.open(held)

    async def main():
        await conversation.astart()
        while not held.began.is_set():
            await asyncio.sleep(0.001)

    asyncio.run(main())
    assert conversation.status is Status.CANCELLED


def test_ainterrupt(home):
    """Answers as `interrupt` does."""
    held = AsyncHeld()
    conversation = home.open(held)

    async def main():
        assert await conversation.ainterrupt() is Stopping.STOPPED
        number = await conversation.astart()
        while not held.began.is_set():
            await asyncio.sleep(0.001)
        assert await conversation.ainterrupt() is Stopping.WILL_STOP
        return await afollowed(conversation, number)

    assert kinds(asyncio.run(main())) == ["asked", "run.ended"]


# ---- what callbacks hear


@pytest.mark.parametrize("agent", [Echo, AsyncEcho])
@pytest.mark.parametrize("entry", ["run", "arun", "start"])
def test_callbacks_hear_everything_whichever_handle_writes_it(home, agent, entry):
    """What is sent between runs, the run's start and its end: in the order of the log, each once."""
    heard = []
    over = threading.Event()

    def hear(event):
        heard.append(event.seq)
        if event.kind == "run.ended":
            over.set()

    first = home.open(agent(), "c", on_event=[hear])
    second = home.open(agent(), "c")
    opened = [event.seq for event in first.events()]
    second.send("between runs")
    assert heard == [2]
    second.send("one more")
    {"run": second.run, "arun": lambda: asyncio.run(second.arun()), "start": second.start}[entry]()
    assert over.wait(LIMIT)
    assert opened + heard == [event.seq for event in first.events()]


def test_callbacks_hear_in_the_order_of_the_log(home):
    """However many threads write, through however many handles."""
    heard = []
    first = home.open(Echo(), "c", on_event=[lambda event: heard.append(event.seq)])

    def write():
        conversation = home.open(Echo(), "c")
        for number in range(50):
            conversation.send(str(number))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    until(lambda: len(heard) == 200)
    assert heard == list(range(2, 202))
    assert first.look().cursor == 201


def test_callbacks_hear_of_what_others_wrote_before(home, tmp_path):
    """What another process has written comes in its place, together with what this one writes next."""
    heard = []
    conversation = home.open(Echo(), "c", on_event=[lambda event: heard.append(event.payload["text"])])
    with SqliteStore(tmp_path / "troth.db") as other, Conversations(other) as elsewhere:
        elsewhere.open(Echo(), "c").send("from elsewhere")
    conversation.send("from here")
    assert heard == ["from elsewhere", "from here"]


def test_an_async_callback_between_runs(home):
    """On the loop of whoever sends, else on one that the conversations keep; nobody who sends waits for it."""
    heard = []
    go = threading.Event()

    async def hear(event):
        while event.payload["text"] != "on a loop" and not go.is_set():
            await asyncio.sleep(0.001)
        heard.append((event.payload["text"], threading.current_thread().name))

    conversation = home.open(Echo(), on_event=[hear])

    async def main():
        await conversation.asend("on a loop")
        assert heard == []
        async with asyncio.timeout(LIMIT):
            while not heard:
                await asyncio.sleep(0)

    asyncio.run(main())
    conversation.send("on a thread")
    go.set()
    until(lambda: len(heard) == 2)
    assert heard == [("on a loop", "MainThread"), ("on a thread", "troth-conversations")]


def test_a_handle_that_is_gone_hears_nothing(home):
    """Otherwise a server would keep the callbacks of every request it ever had."""
    heard = []
    home.open(Echo(), "c", on_event=[lambda event: heard.append(event.seq)])
    gc.collect()
    home.open(Echo(), "c").send("anybody?")
    assert heard == []


@pytest.mark.parametrize("how", ["a run that ends", "a run that is cancelled"])
def test_a_callback_that_never_returns_does_not_hold_the_run(home, how, monkeypatch, caplog):
    """Whoever awaits the run is let go, other handles hear everything, and the log is whole."""
    monkeypatch.setattr("troth.runtime.conversations.drivers._GRACE", 0.01)
    heard = []

    async def never(event):
        if event.kind == "run.started":
            await asyncio.Event().wait()

    conversation = home.open(AsyncEcho() if how == "a run that ends" else AsyncHeld(), "c", on_event=[never])
    other = home.open(AsyncEcho(), "c", on_event=[lambda event: heard.append(event.kind)])
    conversation.send("hello")

    async def main():
        async with asyncio.timeout(LIMIT):
            if how == "a run that ends":
                return await conversation.arun()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(conversation.arun(), 0.05)

    asyncio.run(main())
    assert kinds(other.events())[-1] == "run.ended"
    assert heard[-1] == "run.ended"
    assert "has not returned" in caplog.text


def test_a_run_is_told_when_its_callbacks_are_free(home, monkeypatch):
    """What was sent before the run is still being told on a thread: the run's end waits, and is rung for."""
    is_held, go_on, calls = threading.Event(), threading.Event(), []
    monkeypatch.setattr("troth.runtime.conversations.drivers._GRACE", LIMIT)
    callbacks_now = ConversationRun.callbacks_now

    def counted(run, patience=0.0):
        calls.append(patience)
        callbacks_now(run, patience)

    monkeypatch.setattr(ConversationRun, "callbacks_now", counted)
    heard = []

    def hear(event):
        heard.append(event.kind)
        is_held.set()
        assert go_on.wait(LIMIT)

    conversation = home.open(AsyncEcho(), "c", on_event=[hear])
    sender = threading.Thread(target=conversation.send, args=["hello"])
    sender.start()
    assert is_held.wait(LIMIT)

    async def main():
        run = asyncio.create_task(conversation.arun())
        while "run.ended" not in kinds(conversation.events()):
            await asyncio.sleep(0.001)
        looks = len(calls)
        await asyncio.sleep(0.2)
        waited = len(calls) - looks
        go_on.set()
        await run
        return waited

    waited = asyncio.run(main())
    sender.join(LIMIT)
    assert heard[-1] == "run.ended"
    assert waited < 5  # a loop that looks every few milliseconds would have called forty times


# ---- exits and forwarding


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_step_cannot_end_a_loop(home, color, leaving):
    """Whatever a step raises, `arun` raises an exception, and the loop lives."""

    class Leaves(Agent):
        def step(self, conversation):
            raise leaving

    class AsyncLeaves(Agent):
        async def astep(self, conversation):
            raise leaving

    conversation = home.open(Leaves() if color == "sync" else AsyncLeaves())

    async def main():
        with pytest.raises(AgentExitError) as caught:
            await conversation.arun()
        await asyncio.sleep(0)
        return caught.value.__cause__

    assert isinstance(asyncio.run(main()), leaving)
    expected = "interrupted" if leaving is KeyboardInterrupt else "failed"
    assert conversation.status == expected
    with pytest.raises(leaving):
        conversation.run()


class Traced(Agent):
    """Adds something around the step of another class, as tracing does."""

    def __init__(self):
        self.steps = []

    def step(self, conversation):
        self.steps.append(threading.current_thread())
        conversation.emit("first")
        assert self.heard[-1][0] == "agent.first", "it was told before `emit` returned"
        conversation.emit("second")
        return len(self.steps) < 3

    async def astep(self, conversation):
        return await super().astep(conversation)


class Proxy:
    """Forwards to an agent that it is not."""

    def __init__(self, agent):
        self.agent = agent

    async def astep(self, conversation):
        return await self.agent.astep(conversation)


class Plain(Agent):
    """What `Traced` and `Proxy` must not differ from."""

    def __init__(self):
        self.steps = []

    step = Traced.step


@pytest.mark.parametrize("shape", ["plain", "super", "proxy"])
def test_an_astep_that_forwards_changes_nothing_about_what_runs_where(home, shape):
    """All steps and all callbacks of the run are on one thread, which is not the loop's."""
    agent = Traced() if shape == "super" else Plain()
    agent.heard = []
    hear = [lambda event: agent.heard.append((event.kind, threading.current_thread()))]
    conversation = home.open(Proxy(agent) if shape == "proxy" else agent, on_event=hear)
    assert asyncio.run(conversation.arun()).outcome is Status.FINISHED
    assert len(agent.steps) == 3
    assert {thread for _, thread in agent.heard} == set(agent.steps)
    assert len(set(agent.steps)) == 1
    assert set(agent.steps) != {threading.current_thread()}
    assert [kind for kind, _ in agent.heard] == kinds(conversation.events())[1:]


def test_an_astep_that_forwards_ends_with_its_step(home):
    """A thread cannot be stopped: interrupted, the run ends when the step returns, and the thread ends with the run."""
    held = Held()

    async def main():
        conversation = home.open(Proxy(held))
        run = asyncio.create_task(conversation.arun())
        while not held.began.is_set():
            await asyncio.sleep(0.001)
        assert conversation.interrupt() is Stopping.WILL_STOP
        return conversation.id, (await run).outcome

    name, outcome = asyncio.run(main())
    assert outcome is Status.INTERRUPTED
    until(lambda: all(thread.name != f"troth-run-{name}" for thread in threading.enumerate()))
