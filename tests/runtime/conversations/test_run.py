"""A run, in both colors: what happens where, and what is in the log afterwards."""

import asyncio
import contextvars
import signal
import threading

import pytest

from troth.errors import MisuseError
from troth.runtime.agents.agent import Agent
from troth.runtime.conversations import (
    AgentExitError,
    AlreadyRunning,
    ConversationClosed,
    Conversations,
    Status,
    StepLimitReached,
    Stopping,
    TooManyRuns,
)

LIMIT = 20  # seconds after which a test that hangs is given up


class Echo(Agent):
    """Answers every message once, in plain code."""

    def __init__(self):
        self.threads = []

    def step(self, conversation):
        self.threads.append(threading.current_thread().name)
        last = conversation.messages()[-1]
        conversation.say(f"you said {last.text}")


class AsyncEcho(Agent):
    """The same on a loop."""

    def __init__(self):
        self.threads = []

    async def astep(self, conversation):
        self.threads.append(threading.current_thread().name)
        await asyncio.sleep(0)
        last = conversation.messages()[-1]
        await conversation.asay(f"you said {last.text}")


class Held(Agent):
    """A sync step that waits for a test to let it go."""

    def __init__(self):
        self.began = threading.Event()
        self.go = threading.Event()
        self.steps = 0

    def step(self, conversation):
        self.steps += 1
        self.began.set()
        assert self.go.wait(LIMIT)


class AsyncHeld(Agent):
    """An async step that waits for a test to let it go."""

    def __init__(self):
        self.began = threading.Event()
        self.finally_ran = False
        self.steps = 0

    async def astep(self, conversation):
        self.steps += 1
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.finally_ran = True


def kinds(conversation):
    return [event.kind for event in conversation.events()]


def ends(conversation):
    return [event.payload["outcome"] for event in conversation.events() if event.kind == "run.ended"]


def started(conversation):
    return next(event.payload for event in conversation.events() if event.kind == "run.started")


ENTRIES = {
    "run": lambda conversation: conversation.run(),
    "arun": lambda conversation: asyncio.run(conversation.arun()),
    "run in a loop": lambda conversation: asyncio.run(_inside(conversation)),
}


async def _inside(conversation):
    return conversation.run()


@pytest.fixture(params=ENTRIES)
def enter(request):
    return ENTRIES[request.param]


@pytest.mark.parametrize("agent", [Echo, AsyncEcho])
def test_a_message_is_answered(home, enter, agent):
    """One meaning, whatever the color of the agent and of the caller."""
    conversation = home.open(agent())
    conversation.send("hello")
    end = enter(conversation)
    assert (end.outcome, end.steps) == (Status.FINISHED, 1)
    assert [message.text for message in conversation.messages()] == ["hello", "you said hello"]
    assert kinds(conversation) == ["opened", "message", "run.started", "message", "step.done", "run.ended"]
    assert conversation.status is Status.FINISHED


def test_a_sync_agent_runs_wholly_on_one_thread(home):
    """Run, step and callbacks: on the caller's thread, or on one worker thread."""
    heard = []
    agent = Echo()
    conversation = home.open(agent, on_event=[lambda event: heard.append(threading.current_thread().name)])
    conversation.send("one")
    conversation.run()
    assert set(agent.threads) == set(heard) == {"MainThread"}
    conversation.send("two")
    heard.clear()
    agent.threads.clear()
    asyncio.run(conversation.arun())
    assert set(agent.threads) == set(heard) == {f"troth-run-{conversation.id}"}


def test_an_async_agent_runs_wholly_on_the_loop(home):
    """Step and callbacks, sync and async ones alike."""
    heard = []

    async def hear(event):
        await asyncio.sleep(0)
        heard.append((event.kind, threading.current_thread().name))

    agent = AsyncEcho()
    conversation = home.open(
        agent, on_event=[hear, lambda event: heard.append((event.kind, threading.current_thread().name))]
    )

    async def main():
        await conversation.asend("one")
        await conversation.arun()

    asyncio.run(main())
    assert set(agent.threads) == {"MainThread"}
    assert {name for _, name in heard} == {"MainThread"}
    assert [kind for kind, _ in heard][-2:] == ["run.ended", "run.ended"]


@pytest.mark.parametrize(("agent", "way"), [(Echo, "sync"), (AsyncEcho, "async")])
def test_the_path_taken_is_in_the_record(home, agent, way):
    """Which way, and why."""
    conversation = home.open(agent())
    conversation.send("hello")
    conversation.run()
    assert started(conversation)["way"] == way
    assert "is written in" in started(conversation)["because"]


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_everything_answers_while_a_step_is_in_flight(home, agent):
    """Status, send, pause, subscribe, a second run and interrupt: each before the step is let go."""
    held = agent()
    conversation = home.open(held)
    conversation.send("hello")
    runner = threading.Thread(target=conversation.run)
    runner.start()
    assert held.began.wait(LIMIT)
    assert conversation.status is Status.RUNNING
    number = conversation.send("are you there?")
    assert next(conversation.subscribe(after=number - 1)).payload["text"] == "are you there?"
    with pytest.raises(AlreadyRunning, match="already running, in this process"):
        conversation.run()
    conversation.pause()
    assert conversation.interrupt() is Stopping.WILL_STOP
    if agent is Held:
        assert conversation.status is Status.RUNNING
        assert conversation.is_interrupted
        held.go.set()
    runner.join(LIMIT)
    assert not runner.is_alive()
    assert conversation.status is Status.INTERRUPTED
    assert ends(conversation) == ["interrupted"]
    assert held.steps == 1


def test_the_loop_is_free_while_a_sync_step_works(home):
    """With `arun`, other tasks of the loop go on; the step is let go by one of them."""
    held = Held()
    conversation = home.open(held)
    conversation.send("hello")

    async def main():
        run = asyncio.create_task(conversation.arun())
        while not held.began.is_set():
            await asyncio.sleep(0.001)
        held.go.set()
        return await run

    assert asyncio.run(main()).outcome is Status.FINISHED


def test_a_message_sent_during_the_last_step_is_seen(home):
    """It is answered by this run, although the agent wanted no other step."""
    answered = []

    class Once(Agent):
        def step(self, conversation):
            answered.append(conversation.messages()[-1].text)
            if len(answered) == 1:
                conversation.send("one more thing")

    conversation = home.open(Once())
    conversation.send("first")
    assert conversation.run().steps == 2
    assert answered == ["first", "one more thing"]


def test_a_thousand_messages_at_any_instant(home):
    """None is lost and none is answered twice, however senders and runs fall together."""
    answered = []

    class Answering(Agent):
        def __init__(self):
            self.done = 0

        def step(self, conversation):
            new = [m.text for m in conversation.messages()[self.done :]]
            self.done += len(new)
            answered.extend(new)

    conversation = home.open(Answering())
    total, senders = 1000, 8

    def send(part):
        for number in range(part, total, senders):
            conversation.send(str(number))

    threads = [threading.Thread(target=send, args=(part,)) for part in range(senders)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or conversation.look().has_news:
        conversation.run()
    assert sorted(map(int, answered)) == list(range(total))


@pytest.mark.parametrize("agent", [Held, AsyncHeld])
def test_cancelling_who_waits_behaves_as_asyncio_promises(home, agent):
    """`wait_for` raises TimeoutError, the task is cancelled, and the log says so once."""
    held = agent()
    conversation = home.open(held)
    conversation.send("hello")

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(conversation.arun(), 0.05)
        task = None
        if agent is AsyncHeld:
            task = asyncio.create_task(conversation.arun())
            while held.steps < 2:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
            assert held.finally_ran

    asyncio.run(main())
    if agent is Held:
        assert conversation.status is Status.RUNNING  # the thread cannot be stopped, and that is not hidden
        held.go.set()
        for event in conversation.subscribe(timeout=LIMIT):
            if event.kind == "run.ended":
                break
    assert set(ends(conversation)) == {"cancelled"}
    assert conversation.status is Status.CANCELLED


def test_two_tasks_cannot_both_run_it(home):
    """The second `arun` on the same loop is refused while the first is inside its step."""
    held = AsyncHeld()
    conversation = home.open(held)
    conversation.send("hello")

    async def main():
        first = asyncio.create_task(conversation.arun())
        while not held.began.is_set():
            await asyncio.sleep(0.001)
        with pytest.raises(AlreadyRunning):
            await conversation.arun()
        conversation.interrupt()
        await first

    asyncio.run(main())
    assert held.steps == 1


def test_a_slow_async_callback_keeps_the_order(home):
    """The first delivery waits; the others do not overtake it."""
    heard = []

    async def hear(event):
        if event.kind == "message" and not heard:
            await asyncio.sleep(0.02)
        if event.kind == "message":
            heard.append(event.payload["text"])

    class Talks(Agent):
        async def astep(self, conversation):
            for number in range(4):
                await conversation.asay(str(number))

    conversation = home.open(Talks(), on_event=[hear])
    asyncio.run(conversation.arun())
    assert heard == ["0", "1", "2", "3"]


def test_a_step_that_blocks_its_loop_is_reported_by_the_guard(home):
    """With the guard on, an async step that blocks is named with its line while it does."""
    from troth import guard

    blocked = threading.Event()

    class Blocks(Agent):
        async def astep(self, conversation):
            assert blocked.wait(LIMIT)  # holds the loop until the guard has told of it  # troth: allow blocking-call

    def sink(incident):
        if not incident.is_loss:
            blocked.set()

    with guard.watch(blocked=0.05, sink=sink) as report:
        asyncio.run(home.open(Blocks()).arun())
    assert any("test_run.py" in incident.place for incident in report.blocks)


def test_an_interrupt_is_not_a_cancellation(home):
    """Whoever waits for the run gets its end; nothing is raised."""
    held = AsyncHeld()
    conversation = home.open(held)
    conversation.send("hello")

    async def main():
        run = asyncio.create_task(conversation.arun())
        while not held.began.is_set():
            await asyncio.sleep(0.001)
        assert conversation.interrupt() is Stopping.WILL_STOP
        return await run

    assert asyncio.run(main()).outcome is Status.INTERRUPTED
    assert conversation.interrupt() is Stopping.STOPPED


def raising(error):
    class Raises(Agent):
        def step(self, conversation):
            raise error

    class AsyncRaises(Agent):
        async def astep(self, conversation):
            await asyncio.sleep(0)
            raise error

    return [Raises, AsyncRaises]


class Falsy(Exception):
    def __len__(self):
        return 0


@pytest.mark.parametrize("color", [0, 1], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(ValueError("bad"), "failed", id="exception"),
        pytest.param(Falsy(), "failed", id="falsy exception"),
        pytest.param(ExceptionGroup("two", [ValueError(1), KeyError(2)]), "failed", id="group"),
        pytest.param(asyncio.CancelledError(), "cancelled", id="CancelledError"),
        pytest.param(KeyboardInterrupt(), "interrupted", id="KeyboardInterrupt"),
    ],
)
def test_exactly_one_end_whatever_a_step_raises(home, color, error, outcome):
    """It is raised to the caller as itself, and the log has one end."""
    conversation = home.open(raising(error)[color]())
    conversation.send("hello")
    with pytest.raises(type(error)) as caught:
        conversation.run()
    assert caught.value is error
    assert ends(conversation) == [outcome]
    assert conversation.status == outcome


@pytest.mark.parametrize("color", [0, 1], ids=["sync", "async"])
def test_a_step_cannot_end_the_server(home, color):
    """`SystemExit` on a loop becomes an error of the run; the loop lives."""
    conversation = home.open(raising(SystemExit(4))[color]())
    conversation.send("hello")

    async def main():
        with pytest.raises(AgentExitError):
            await conversation.arun()
        await asyncio.sleep(0)
        return "alive"

    assert asyncio.run(main()) == "alive"
    assert ends(conversation) == ["failed"]


@pytest.mark.parametrize("color", [0, 1], ids=["sync", "async"])
def test_an_exit_in_a_script_stays_one(home, color):
    """Under `run` nobody's loop has to be kept alive: what a step raises comes out as itself."""
    conversation = home.open(raising(SystemExit(4))[color]())
    conversation.send("hello")
    with pytest.raises(SystemExit) as exiting:
        conversation.run()
    assert (exiting.value.code, ends(conversation)) == (4, ["failed"])


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a", "list"]], ids=repr)
def test_a_message_is_a_text(home, text):
    """Anything else is refused where it is sent, not found by the agent later."""
    conversation = home.open(Echo())
    for send in (conversation.send, lambda text: asyncio.run(conversation.asend(text))):
        with pytest.raises(MisuseError, match="A message is a string"):
            send(text)
    assert conversation.messages() == []


@pytest.mark.parametrize("limit", [-1, 1.5, "many"], ids=repr)
def test_a_limit_that_would_limit_nothing_is_refused(home, limit):
    """Before the run is written down."""
    conversation = home.open(Echo())
    with pytest.raises(MisuseError, match="`max_steps` is"):
        conversation.run(max_steps=limit)
    assert "run.started" not in kinds(conversation)


def test_a_failed_run_can_be_run_again(home):
    """The message is still unanswered, so the next run takes it up."""
    calls = []

    class Flaky(Agent):
        def step(self, conversation):
            calls.append(1)
            if len(calls) == 1:
                raise ConnectionError("down")

    conversation = home.open(Flaky())
    conversation.send("hello")
    with pytest.raises(ConnectionError):
        conversation.run()
    assert conversation.status is Status.FAILED
    assert conversation.run().outcome is Status.FINISHED
    assert len(calls) == 2


def test_pause_and_go_on(home):
    """The run ends at the end of the step; the next one goes on."""

    class Counting(Agent):
        def __init__(self):
            self.n = 0

        def step(self, conversation):
            self.n += 1
            if self.n == 2:
                conversation.pause()
            return self.n < 4

    agent = Counting()
    conversation = home.open(agent)
    assert conversation.run().outcome is Status.PAUSED
    assert agent.n == 2
    assert conversation.run().outcome is Status.FINISHED
    assert agent.n == 4


def test_an_agent_that_never_stops(home):
    """The limit is said out loud, and what was done stands."""

    class Endless(Agent):
        def step(self, conversation):
            return True

    conversation = home.open(Endless())
    with pytest.raises(StepLimitReached, match="has taken 7 steps"):
        conversation.run(max_steps=7)
    assert ends(conversation) == ["failed"]


def test_a_coroutine_that_a_sync_step_returns_is_awaited(home):
    """A forgotten await costs a loop, not the work."""
    done = []

    class Mixed(Agent):
        def step(self, conversation):
            return self.work()

        async def work(self):
            await asyncio.sleep(0)
            done.append(1)

    conversation = home.open(Mixed())
    conversation.run()
    assert done == [1]


@pytest.mark.parametrize("entry", ["run", "arun"])
@pytest.mark.parametrize("agent", [0, 1], ids=["sync", "async"])
def test_callbacks_that_always_raise(home, entry, agent):
    """Also over the report of their own failing: they are told of each event once, and the run ends."""
    told = []

    def always(event):
        told.append(event.kind)
        raise ValueError("never works")

    async def likewise(event):
        raise ValueError("does not either")

    conversation = home.open((Echo, AsyncEcho)[agent](), on_event=[always, likewise])
    conversation.send("hello")
    end = conversation.run() if entry == "run" else asyncio.run(conversation.arun())
    assert end.outcome is Status.FINISHED
    assert kinds(conversation).count("callback.failed") == 2 * sum(kind != "callback.failed" for kind in told)
    assert told.count("run.ended") == 1


@pytest.mark.parametrize(
    "error", [SystemExit(4), asyncio.CancelledError(), BaseExceptionGroup("g", [SystemExit()])], ids=repr
)
@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("agent", [0, 1], ids=["sync agent", "async agent"])
def test_a_callback_cannot_end_the_server(home, agent, color, error):
    """Whatever it raises is reported like any other failure of a callback; the run ends as it would have."""

    def raises(event):
        if event.kind == "message":
            raise error

    async def araises(event):
        raises(event)

    conversation = home.open((Echo, AsyncEcho)[agent](), on_event=[raises if color == "sync" else araises])
    conversation.send("hello")

    async def main():
        end = await conversation.arun()
        await asyncio.sleep(0)
        return end.outcome

    assert asyncio.run(main()) is Status.FINISHED
    assert ends(conversation) == ["finished"]
    assert "callback.failed" in kinds(conversation)


@pytest.mark.parametrize("agent", [Echo, AsyncEcho])
def test_ctrl_c_while_a_callback_works_is_not_swallowed(home, agent):
    """Nor does it leave the conversation held: whoever pressed it can go on."""

    presses = []

    def pressed(event):
        if event.kind == "message" and event.payload["role"] == "assistant" and not presses:
            presses.append(event)
            signal.raise_signal(signal.SIGINT)

    conversation = home.open(agent(), on_event=[pressed])
    conversation.send("hello")
    with pytest.raises(KeyboardInterrupt):
        conversation.run()
    conversation.stop_listening()
    conversation.send("again")
    assert conversation.run().outcome is Status.FINISHED


def test_a_raising_callback_loses_nothing(home):
    """It is reported in the log; the others hear every event in order."""
    heard = []

    def bad(event):
        if event.kind == "message":
            raise RuntimeError("oops")

    conversation = home.open(Echo(), on_event=[bad, lambda event: heard.append(event.seq)])
    conversation.send("hello")
    conversation.run()
    assert "callback.failed" in kinds(conversation)
    assert heard == sorted(heard)
    assert conversation.status is Status.FINISHED


@pytest.mark.parametrize(
    "callback",
    [
        pytest.param(lambda: None, id="takes nothing"),
        pytest.param(lambda a, b: None, id="takes two"),
        pytest.param("x", id="no function"),
    ],
)
def test_a_callback_that_cannot_be_called_is_refused_at_once(home, callback):
    """Not at the first event."""
    with pytest.raises(MisuseError, match="cannot be a callback"):
        home.open(Echo(), on_event=[callback])


def test_tokens_are_gathered_and_keep_their_place(home):
    """Pieces add up, in order, before whatever follows them."""

    class Streaming(Agent):
        def step(self, conversation):
            for piece in ["a ", "b ", "c"]:
                conversation.token(piece)
            conversation.say("a b c")

    conversation = home.open(Streaming())
    conversation.run()
    rows = [
        (event.kind, event.payload.get("text"))
        for event in conversation.events()
        if event.kind in ("tokens", "message")
    ]
    assert rows == [("tokens", "a b c"), ("message", "a b c")]


def test_context_variables_reach_the_step(home):
    """On every path."""
    who = contextvars.ContextVar("who")
    seen = []

    class Looks(Agent):
        def step(self, conversation):
            seen.append(who.get())

    class AsyncLooks(Agent):
        async def astep(self, conversation):
            seen.append(who.get())

    who.set("ann")
    for agent in (Looks(), AsyncLooks()):
        home.open(agent).run()
        asyncio.run(home.open(agent).arun())
    assert seen == ["ann"] * 4


def test_too_many_at_once_are_refused(store):
    """The limit is per runtime, and what was sent is safe."""
    with Conversations(store, max_concurrent_runs=1) as home:
        held = Held()
        first, second = home.open(held), home.open(Echo())
        second.send("hello")
        runner = threading.Thread(target=first.run)
        runner.start()
        assert held.began.wait(LIMIT)
        with pytest.raises(TooManyRuns):
            second.run()
        held.go.set()
        runner.join(LIMIT)
        assert second.run().outcome is Status.FINISHED


def test_close_is_bounded_and_names_what_it_abandoned(home):
    """A stuck step does not hang it; twice is harmless; no step runs afterwards."""
    held = Held()
    conversation = home.open(held)
    conversation.send("hello")
    runner = threading.Thread(target=conversation.run)
    runner.start()
    assert held.began.wait(LIMIT)
    assert conversation.close(timeout=0.05) == [f"conversation {conversation.id}: step 1 on {runner.name}"]
    held.go.set()
    runner.join(LIMIT)
    assert held.steps == 1
    assert conversation.close() == []
    with pytest.raises(ConversationClosed):
        conversation.send("hello?")


def test_a_step_may_use_its_own_conversation_from_everywhere(home):
    """From its thread, from a thread of a tool, and from a loop, without hanging."""

    class Busy(Agent):
        def step(self, conversation):
            conversation.status, conversation.send("from the step")
            worker = threading.Thread(target=lambda: (conversation.status, conversation.say("from a tool")))
            worker.start()
            worker.join(LIMIT)
            assert not worker.is_alive()
            asyncio.run(conversation.asay("from a loop"))
            with pytest.raises(AlreadyRunning):
                conversation.run()
            conversation.pause()

    conversation = home.open(Busy())
    assert conversation.run().outcome is Status.PAUSED
    assert [message.text for message in conversation.messages()] == ["from a tool", "from a loop", "from the step"]
