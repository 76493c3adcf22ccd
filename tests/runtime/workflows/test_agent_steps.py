"""An agent's step is done when the agent has finished and answered, and not before: whatever else becomes of it."""

import asyncio
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from troth.runtime import Runtime, Workflow, current_step, step
from troth.runtime.agents import Agent, Message, ToolCall
from troth.runtime.conversations import Conversations
from troth.runtime.workflows.record.report import RunWord
from troth.testing.crash import CrashLab

HERE = Path(__file__).parent
LIMIT = 20  # seconds after which a test that hangs is given up
ANSWER = "it is done"


class Looking(Agent):
    """Says that it looks, then does what the test wants; called once more, it answers."""

    def __init__(self, then):
        self.then = then
        self.calls = 0

    def step(self, conversation):
        self.calls += 1
        if self.calls > 1:
            conversation.say(ANSWER)
            return False
        conversation.say("let me look")
        return self.then(conversation)


class AsyncLooking(Looking):
    """The same on a loop."""

    async def astep(self, conversation):
        return await asyncio.to_thread(self.step, conversation)


@pytest.fixture(params=[Looking, AsyncLooking], ids=["sync agent", "async agent"])
def looking(request):
    return request.param


@pytest.fixture
def use(tmp_path):
    """A runtime whose agent `a` is the given one, and a workflow of one step with it."""
    opened = []

    def make(agent, **more):
        runtime = Runtime(tmp_path / "runs.db", agents={"a": agent})
        opened.append(runtime)
        return runtime, Workflow("w", step("a", agent="a", inputs={"prompt": {"value": "go"}}, **more))

    yield make
    for runtime in opened:
        runtime.close()


def fails(_):
    raise ConnectionError("no line")


def pauses(conversation):
    conversation.pause()
    return True


def is_interrupted(conversation):
    conversation.interrupt()
    return True


def hangs(conversation):
    deadline = time.monotonic() + LIMIT
    while not conversation.is_interrupted and time.monotonic() < deadline:
        time.sleep(0.001)


BROKEN = [
    pytest.param(fails, {}, "ConnectionError: no line", id="raises"),
    pytest.param(pauses, {}, "'a' did not finish: its run was paused after 1 step.", id="pauses"),
    pytest.param(is_interrupted, {}, "'a' did not finish: its run was interrupted after 1 step.", id="is interrupted"),
    pytest.param(hangs, {"timeout": "300ms"}, "did not return within 0.3 s", id="hangs"),
]


@pytest.mark.parametrize(("then", "more", "says"), BROKEN)
def test_half_an_answer_is_tried_again(use, looking, then, more, says):
    """The next attempt calls the agent again, in the same conversation; the first one is on record with its reason."""
    agent = looking(then)
    runtime, flow = use(agent, retry={"attempts": 3, "delay": "1ms"}, **more)
    run = runtime.run(flow)
    assert (run.state, run.output, agent.calls) == (RunWord.COMPLETED, ANSWER, 2)
    (attempt,) = runtime.engine.steps(run.id)[0].attempts
    assert says in f"{attempt.error['type']}: {attempt.error['message']}"


@pytest.mark.parametrize(("then", "more", "says"), BROKEN)
def test_half_an_answer_fails_the_step(use, looking, then, more, says):
    """Without a retry the run fails and says why; `resume` calls the agent again."""
    agent = looking(then)
    runtime, flow = use(agent, **more)
    run = runtime.run(flow, check=False)
    assert (run.state, agent.calls) == (RunWord.FAILED, 1)
    assert says in run.error.message
    assert run.step("a").output is None
    done = runtime.resume(run.id)
    assert (done.state, done.output, agent.calls) == (RunWord.COMPLETED, ANSWER, 2)


class Held(Agent):
    """A sync step that nobody can stop: it speaks, and waits for the test."""

    def __init__(self):
        self.go = threading.Event()
        self.calls = 0

    def step(self, conversation):
        self.calls += 1
        conversation.say(f"word {self.calls}")
        assert self.go.wait(LIMIT)


def test_an_attempt_that_cannot_be_stopped_is_waited_for(use):
    """The agent is not called a second time beside itself; when its step is over, the next attempt calls it."""
    agent = Held()
    runtime, flow = use(agent, timeout="200ms", retry={"attempts": 2, "delay": "1ms"})
    run = runtime.run(flow, check=False)
    assert (run.state, agent.calls, run.step("a").tries) == (RunWord.FAILED, 1, 2)
    assert "did not return within 0.2 s" in run.error.message
    agent.go.set()
    assert runtime.resume(run.id).output == "word 2"


class Silent(Agent):
    """Finishes without an answer until it is told to speak."""

    def __init__(self, *words):
        self.words = list(words)
        self.calls = 0

    def step(self, conversation):
        self.calls += 1
        if self.words and (word := self.words.pop(0)):
            conversation.say(word)


@pytest.mark.parametrize(
    "word",
    [
        pytest.param(None, id="nothing"),
        pytest.param(" \n", id="blanks"),
        pytest.param(Message("assistant", "wait", (ToolCall("x", "look", "{}"),)), id="a call that nobody makes"),
    ],
)
def test_an_agent_without_an_answer(use, word):
    """The prompt is not its output, nor is a blank: it is tried again, or fails, saying so."""
    agent = Silent(word, word, ANSWER)
    runtime, flow = use(agent, retry={"attempts": 2, "delay": "1ms"})
    run = runtime.run(flow, check=False)
    assert (run.state, agent.calls) == (RunWord.FAILED, 2)
    assert "'a' did not finish: its run ended without an answer." in run.error.message
    assert runtime.resume(run.id).output == ANSWER


class Corrected(Agent):
    """Answers with one text after the other, and remembers what it was told before each."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.told = []

    def step(self, conversation):
        self.told.append(conversation.messages()[-1].text)
        conversation.say(self.answers.pop(0))


def test_an_answer_that_breaks_its_contract_is_asked_for_again(use):
    """The agent is told what was wrong, in the same conversation, as often as `retry` allows."""
    agent = Corrected("about four", '"four"', "4")
    runtime, flow = use(agent, output="integer", retry={"attempts": 3, "delay": "1ms"})
    run = runtime.run(flow)
    assert run.output == 4
    assert agent.told[0] == "go"
    assert "`answer` is" in agent.told[1]
    assert "about four" in agent.told[1]
    assert "JSON of type integer" in agent.told[1]
    assert "four" in agent.told[2]
    assert [attempt.error.type for attempt in run.step("a").attempts if attempt.error] == ["AnswerContractError"] * 2


def test_an_answer_that_breaks_its_contract_without_retry(use):
    """The step fails, and `resume` asks the agent again; nothing is asked of one whose answer fits."""
    agent = Corrected("about four", "4")
    runtime, flow = use(agent, output="integer")
    run = runtime.run(flow, check=False)
    assert (run.state, run.failures[0].error.type) == (RunWord.FAILED, "AnswerContractError")
    assert runtime.resume(run.id).output == 4
    assert len(agent.told) == 2


def test_a_function_that_is_an_agent_is_called_again(use):
    """It has no conversation to be told in."""
    answers = ["about four", "4"]
    runtime, flow = use(lambda prompt: answers.pop(0), output="integer", retry={"attempts": 2, "delay": "1ms"})
    assert runtime.run(flow).output == 4


def test_closing_the_runtime_interrupts_the_step(use, looking):
    """An agent that is stopped because the program ends has not failed: the run goes on later, and calls it again."""
    began = threading.Event()

    def hangs_on(conversation):
        began.set()
        hangs(conversation)
        return True

    agent = looking(hangs_on)
    runtime, flow = use(agent)
    run_id = runtime.start(flow)
    assert began.wait(LIMIT)
    runtime.close()
    runtime, flow = use(agent)
    assert runtime.show(run_id).state is RunWord.INTERRUPTED
    assert runtime.resume(run_id, flow).output == ANSWER


class Endless(Agent):
    """Wants many steps, and says each."""

    def __init__(self, steps):
        self.left = steps

    def step(self, conversation):
        self.left -= 1
        conversation.say(f"{self.left} left")
        return self.left > 0


def test_an_agent_that_comes_to_its_step_limit(use):
    """Is not done; a further attempt goes on."""
    runtime, flow = use(Endless(250), retry={"attempts": 2, "delay": "1ms"})
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.FAILED
    assert "StepLimitReached: The agent has taken 100 steps" in run.error.message
    assert runtime.resume(run.id).output == "0 left"


def test_a_pause_in_the_last_step_puts_nothing_off(use):
    """The agent wants no further step, so it has finished."""

    class Last(Agent):
        def step(self, conversation):
            conversation.say(ANSWER)
            conversation.pause()

    runtime, flow = use(Last())
    assert runtime.run(flow).output == ANSWER


def test_what_is_sent_meanwhile_is_answered_too(use):
    """A message to the agent's conversation that no step has seen keeps the step from being done."""

    class Asked(Agent):
        def __init__(self):
            self.calls = 0

        def step(self, conversation):
            self.calls += 1
            conversation.say(f"answer {self.calls}")
            if self.calls == 1:
                conversation.send("and?")

    runtime, flow = use(Asked())
    assert runtime.run(flow).output == "answer 2"


# ---- kill -9

PLAN = [f"b{number}" for number in range(5)]


class Booking(Agent):
    """Books one thing in each step, and says so: a crash finds it with half of it said."""

    def __init__(self, folder):
        self.effects = Path(folder) / "effects"

    def step(self, conversation):
        said = [message.text for message in conversation.messages() if message.role == "assistant"]
        left = [what for what in PLAN if f"booked {what}" not in said]
        if left:
            with self.effects.open("a", encoding="utf-8") as file:
                file.write(f"{current_step().key} {left[0]}\n")
            conversation.say(f"booked {left[0]}")
        return len(left) > 1


class AsyncBooking(Booking):
    async def astep(self, conversation):
        await asyncio.sleep(0)
        return Booking.step(self, conversation)


def program(folder):
    """Both colors, one after the other; started again, it goes on."""
    outputs = []
    for color in (Booking, AsyncBooking):
        flow = Workflow("w", step("trip", agent="a", inputs={"prompt": {"value": "book"}}))
        with Runtime(Path(folder) / "runs.db", agents={"a": color(folder)}) as runtime:
            outputs.append(runtime.run(flow, run_id=color.__name__).output)
    return outputs


POINTS = {
    "conversation.open": 2,
    "conversation.start": 2,
    "conversation.say": 12,
    "conversation.step": 10,
    "conversation.end": 2,
    "step.begin": 2,
    "run.finish": 2,
}
PLACES = [
    (f"{point}.{side}", nth)
    for point, count in POINTS.items()
    for side in ("before", "written", "after")
    for nth in range(1, count + 1)
]


SHORT = [place for place in PLACES if place[1] in (1, 2, 5, 9)]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("test_agent_steps:program", HERE) as opened:
        yield opened


def check(lab, tmp_path, failpoint, nth):
    assert lab.run(tmp_path, failpoint, nth=nth).was_killed
    assert lab.run(tmp_path).answer == [f"booked {PLAN[-1]}"] * 2
    effects = Counter((tmp_path / "effects").read_text("utf-8").splitlines())
    assert len(effects) == 2 * len(PLAN)
    assert sum(effects.values()) <= 2 * len(PLAN) + 1
    with Conversations(tmp_path / "runs.db") as home:
        for color in (Booking, AsyncBooking):
            talk = home.open(color(tmp_path), f"agent:{color.__name__}:1:trip").messages()
            assert [message.role for message in talk].count("user") == 1


@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*place, id=f"{place[0]} #{place[1]}") for place in SHORT])
def test_killed_there_the_agent_goes_on(lab, tmp_path, failpoint, nth):
    """The output is its last word and all is booked; twice at most what was in flight."""
    check(lab, tmp_path, failpoint, nth)


@pytest.mark.soak
@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*place, id=f"{place[0]} #{place[1]}") for place in PLACES])
def test_killed_anywhere(lab, tmp_path, failpoint, nth):
    """Every arrival at every commit."""
    check(lab, tmp_path, failpoint, nth)
