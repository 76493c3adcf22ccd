"""An agent with a model, tools and a budget, played from scripts in both colors."""

import asyncio
import threading

import pytest

from troth.errors import MisuseError
from troth.runtime.agents.budget import Budget, BudgetExceeded
from troth.runtime.agents.model import Message, Model, ModelError, ToolCall, Usage
from troth.runtime.agents.tool_calling import ToolCallingAgent
from troth.runtime.conversations import Conversations, Status
from troth.runtime.store import SqliteStore
from troth.runtime.tools import tool
from troth.testing.scripted import ScriptedModel, call

LIMIT = 20


@pytest.fixture
def home(tmp_path):
    with SqliteStore(tmp_path / "troth.db") as store, Conversations(store) as conversations:
        yield conversations


@pytest.fixture(params=["run", "arun"])
def run(request):
    if request.param == "run":
        return lambda conversation: conversation.run()
    return lambda conversation: asyncio.run(conversation.arun())


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def multiply(a: int, b: int) -> int:
    """Multiply."""
    await asyncio.sleep(0)
    return a * b


def talk(conversation):
    return [(message.role, message.text) for message in conversation.messages()]


def test_a_tool_is_called_and_its_answer_told(home, run):
    """Until the model has nothing left to ask for; sync and async tools alike."""
    model = ScriptedModel(
        call("add", '{"a": 2, "b": 3}'),
        call("multiply", '{"a": 5, "b": 2}'),
        lambda asked: f"it is {asked.messages[-1].text}",
    )
    conversation = home.open(ToolCallingAgent(model, [add, multiply], system="Count."))
    conversation.send("2 + 3, doubled?")
    end = run(conversation)
    assert (end.outcome, end.steps) == (Status.FINISHED, 3)
    assert talk(conversation) == [
        ("user", "2 + 3, doubled?"),
        ("assistant", ""),
        ("tool", "5"),
        ("assistant", ""),
        ("tool", "10"),
        ("assistant", "it is 10"),
    ]
    assert model.requests[0].messages[0].text == "Count."
    assert [one.name for one in model.requests[0].tools] == ["add", "multiply"]


def test_tools_run_side_by_side(home, run):
    """Two that wait for each other both come back; the answers keep the order of the calls."""
    meet = threading.Barrier(2, timeout=LIMIT)

    def left() -> str:
        """Wait for the right one."""
        meet.wait()
        return "left"

    def right() -> str:
        """Wait for the left one."""
        meet.wait()
        return "right"

    conversation = home.open(ToolCallingAgent(ScriptedModel([call("left"), call("right")], "done"), [left, right]))
    conversation.send("go")
    run(conversation)
    assert [text for role, text in talk(conversation) if role == "tool"] == ["left", "right"]


def broken() -> str:
    """Fail."""
    raise ValueError("no seat left")


def strange() -> object:
    """Return what is no JSON."""
    return {"when": object()}


def leaving() -> str:
    """Leave."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        pytest.param(call("broken"), "ValueError: no seat left", id="the tool raises"),
        pytest.param(
            call("nosuch"), "there is no tool 'nosuch'; the tools are: add, broken, strange", id="unknown tool"
        ),
        pytest.param(call("add", '{"a": "x", "b": 1}'), "a: Input should be a valid integer", id="wrong arguments"),
        pytest.param(call("add", "{"), "not JSON", id="broken arguments"),
        pytest.param(call("strange"), "when", id="an answer that is no JSON"),
    ],
)
def test_errors_go_back_to_the_model_as_data(home, run, wish, says):
    """The run goes on, and the model answers with what it was told."""
    model = ScriptedModel(wish, lambda asked: asked.messages[-1].text)
    conversation = home.open(ToolCallingAgent(model, [add, broken, strange]))
    conversation.send("go")
    assert run(conversation).outcome is Status.FINISHED
    assert says in conversation.messages()[-1].text
    assert conversation.messages()[-1].text.startswith('{"error"')


def test_a_slow_tool_is_given_up(home, run):
    """A sync one leaves its thread behind, an async one is cancelled; the model hears of both."""
    go, cancelled = threading.Event(), []

    @tool(timeout=0.05)
    def slow() -> str:
        """Wait."""
        go.wait(LIMIT)
        return "late"

    @tool(timeout=0.05)
    async def aslow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(LIMIT)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise
        return "late"

    agent = ToolCallingAgent(ScriptedModel([call("slow"), call("aslow")], "done"), [slow, aslow])
    conversation = home.open(agent)
    conversation.send("go")
    run(conversation)
    go.set()
    told = [text for role, text in talk(conversation) if role == "tool"]
    assert told == ['{"error": "slow did not answer within 0.05 s"}', '{"error": "aslow did not answer within 0.05 s"}']
    assert cancelled == [1]


def test_tokens_are_heard(home, run):
    """What the model streams is in the log before the message it makes up."""
    conversation = home.open(ToolCallingAgent(ScriptedModel("one two three")))
    conversation.send("go")
    run(conversation)
    rows = [
        (event.kind, event.payload.get("text"))
        for event in conversation.events()
        if event.kind in ("tokens", "message")
    ]
    assert rows[1:] == [("tokens", "one two three"), ("message", "one two three")]


@pytest.mark.parametrize(
    ("budget", "turns", "says"),
    [
        pytest.param(Budget(turns=3), 3, "budget of 3 turns is used up", id="turns"),
        pytest.param(Budget(tokens=25), 2, "budget of 25 tokens is used up", id="tokens"),
        pytest.param(Budget(cost=0.3), 3, "budget of 0.3 cost is used up", id="cost"),
    ],
)
def test_a_budget_is_enforced(home, run, budget, turns, says):
    """Before the turn that would go beyond it; what was done stands, and a larger budget goes on."""
    model = ScriptedModel(*[call("add", '{"a": 1, "b": 1}')] * 9, usage=Usage(10, 5, 0.1))
    conversation = home.open(ToolCallingAgent(model, [add], budget=budget), "c1")
    conversation.send("go")
    with pytest.raises(BudgetExceeded, match=says):
        run(conversation)
    assert len(model.requests) == turns
    assert conversation.status is Status.FAILED
    more = home.open(ToolCallingAgent(ScriptedModel("done"), [add], budget=Budget(turns=50)), "c1")
    assert run(more).outcome is Status.FINISHED


def test_a_budget_of_time(tmp_path):
    """By the clock that stamps the log."""
    clock = [1000.0]
    with SqliteStore(tmp_path / "t.db", clock=lambda: clock[0]) as store, Conversations(store) as home:

        def tick() -> str:
            """Let a minute pass."""
            clock[0] += 60
            return "tock"

        conversation = home.open(
            ToolCallingAgent(ScriptedModel(*[call("tick")] * 9), [tick], budget=Budget(seconds=100))
        )
        conversation.send("go")
        with pytest.raises(BudgetExceeded, match="100 seconds"):
            conversation.run()


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"tokens": -1}, {"cost": 0.0}, {"seconds": float("nan")}])
def test_a_budget_of_nothing_is_refused(wrong):
    """Nothing inert: such an agent could do nothing at all."""
    with pytest.raises(MisuseError, match="no turn would be possible"):
        Budget(**wrong)


def test_a_model_that_fails_fails_the_run_and_nothing_is_lost(home, run):
    """The next run asks again."""
    conversation = home.open(ToolCallingAgent(ScriptedModel(ModelError("down", status=503), "here I am")))
    conversation.send("go")
    with pytest.raises(ModelError):
        run(conversation)
    assert run(conversation).outcome is Status.FINISHED
    assert conversation.messages()[-1].text == "here I am"


def test_calls_that_were_cut_off_are_answered_first(home, run):
    """After a crash between the model's wish and the tool's answer, the model is not asked twice."""
    model = ScriptedModel("done")
    conversation = home.open(ToolCallingAgent(model, [add]))
    conversation.send("go")
    conversation.say(
        Message("assistant", "", (ToolCall("x", "add", '{"a": 1, "b": 1}'), ToolCall("y", "add", '{"a": 2, "b": 2}')))
    )
    conversation.say(Message("tool", "2", call_id="x"))
    run(conversation)
    assert [text for role, text in talk(conversation) if role == "tool"] == ["2", "4"]
    assert len(model.requests) == 1


def test_two_tools_of_one_name_are_refused():
    """A model could not tell them apart."""
    with pytest.raises(MisuseError, match="Two tools have the same name"):
        ToolCallingAgent(ScriptedModel(), [add, tool(name="add")(multiply)])


ERRORS = [
    pytest.param(SystemExit(3), "SystemExit: 3", id="SystemExit"),
    pytest.param(asyncio.CancelledError("mine"), "CancelledError: mine", id="a cancellation of its own"),
    pytest.param(BaseExceptionGroup("g", [SystemExit()]), "BaseExceptionGroup", id="a group"),
]


@pytest.mark.parametrize(("error", "says"), ERRORS)
@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("count", [1, 2], ids=["alone", "side by side"])
def test_a_tool_cannot_end_the_run_or_its_loop(home, run, count, color, error, says):
    """Whatever it raises goes back to the model as data, and the next turn is taken."""

    def fail():
        raise error

    async def afail():
        raise error

    one = tool(name="fail")(fail if color == "sync" else afail)
    model = ScriptedModel([call("fail", id=str(number)) for number in range(count)], "well then")
    conversation = home.open(ToolCallingAgent(model, [one]))
    conversation.send("go")
    assert run(conversation).outcome is Status.FINISHED
    told = [text for role, text in talk(conversation) if role == "tool"]
    assert [says in text for text in told] == [True] * count


@pytest.mark.parametrize("at", [1, 2], ids=["the first", "the second"])
def test_calls_of_one_id_are_told_apart(home, at):
    """Some models count anew with each answer: a call that was cut off is not taken for an earlier one of its id."""
    done = []

    def look() -> int:
        done.append(len(done))
        if len(done) == at:
            raise KeyboardInterrupt
        return len(done)

    model = ScriptedModel(call("look"), call("look"), "enough")
    conversation = home.open(ToolCallingAgent(model, [look]), "one")
    conversation.send("go")
    with pytest.raises(KeyboardInterrupt):
        conversation.run()
    assert conversation.run().outcome is Status.FINISHED
    roles = [role for role, _ in talk(conversation)]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


class Wordy:
    def reply(self, request):
        return "just a text"

    async def areply(self, request):
        return None


class AsyncReply:
    async def reply(self, request):
        raise AssertionError


def test_a_model_that_answers_with_something_else(home, run):
    """Is named, with what it answered; nothing of it is taken for an answer."""
    conversation = home.open(ToolCallingAgent(Wordy()))
    conversation.send("go")
    with pytest.raises(MisuseError, match="and not with a `Reply`"):
        run(conversation)


class OnlyReply:
    """A model for sync code."""

    def __init__(self, *lines):
        self.script = ScriptedModel(*lines)
        self.threads = []

    def reply(self, request):
        self.threads.append(threading.current_thread())
        return self.script.reply(request)


class OnlyAreply:
    """A model for a loop."""

    def __init__(self, *lines):
        self.script = ScriptedModel(*lines)
        self.threads = []

    async def areply(self, request):
        self.threads.append(threading.current_thread())
        return await self.script.areply(request)


class Derived(OnlyReply, Model):
    """Derived from the protocol, whose `areply` does nothing."""


class Decorated(OnlyAreply):
    """A sync function that gives a coroutine back."""

    def areply(self, request):
        return super().areply(request)


@pytest.mark.parametrize("kind", [OnlyReply, OnlyAreply, Derived, Decorated])
def test_a_model_of_one_color_works_in_both(home, run, kind):
    """Sync code asks an async one on its own thread; a loop asks a sync one in a worker thread, and stays free."""
    model = kind(call("add", '{"a": 2, "b": 3}'), lambda asked: f"it is {asked.messages[-1].text}")
    conversation = home.open(ToolCallingAgent(model, [add]))
    conversation.send("2 + 3?")
    assert run(conversation).outcome is Status.FINISHED
    assert conversation.messages()[-1].text == "it is 5"
    tokens = [event.payload["text"] for event in conversation.events() if event.kind == "tokens"]
    assert "".join(tokens) == "it is 5"


def test_the_loop_is_free_while_a_sync_model_thinks(home):
    """It waits for what another task of the loop does."""
    go = threading.Event()

    def think(_):
        assert go.wait(LIMIT)
        return "done"

    conversation = home.open(ToolCallingAgent(OnlyReply(think)))
    conversation.send("go")

    async def main():
        task = asyncio.create_task(conversation.arun())
        await asyncio.sleep(0.01)
        go.set()
        return await task

    assert asyncio.run(main()).outcome is Status.FINISHED


@pytest.mark.parametrize(
    ("model", "says"),
    [
        pytest.param(None, "neither `reply` nor `areply`", id="none at all"),
        pytest.param(type("Empty", (Model,), {})(), "neither `reply` nor `areply`", id="the protocol alone"),
        pytest.param(AsyncReply(), "`AsyncReply.reply` is `async def`", id="a reply that would never be made"),
    ],
)
def test_what_is_no_model_is_refused_when_the_agent_is_made(model, says):
    """Before anything is asked."""
    with pytest.raises(MisuseError, match=says):
        ToolCallingAgent(model)
