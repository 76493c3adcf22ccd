"""What a run may use: time, steps, tokens, cost. It stops at a limit, says so, and goes on with a larger budget."""

import asyncio
import time

import pytest

from troth.errors import MisuseError
from troth.runtime import RunNotCompletedError, Runtime, Workflow, step
from troth.runtime.agents import Agent, ToolCallingAgent, Usage
from troth.runtime.workflows.record.report import RunWord
from troth.testing.scripted import ScriptedModel, call


def ident(value):
    return value


class Talker(Agent):
    """Says one word; says what that used."""

    def __init__(self, tokens=40, cost=0.5):
        self.turns = 0
        self.used = {"input_tokens": tokens // 2, "output_tokens": tokens - tokens // 2, "cost": cost}

    def step(self, conversation):
        self.turns += 1
        conversation.say(f"word {self.turns}")
        conversation.emit("usage", self.used)


class AsyncTalker(Talker):
    """The same on a loop."""

    async def astep(self, conversation):
        self.step(conversation)


def talks(*names, **fields):
    steps = [step(name, agent="talker", inputs={"prompt": {"value": name}}) for name in names]
    return Workflow("w", *steps, **fields)


@pytest.fixture(params=[Talker, AsyncTalker], ids=["sync agent", "async agent"])
def talker(request):
    return request.param()


@pytest.fixture
def runtime(tmp_path, talker):
    with Runtime(tmp_path / "runs.db", agents={"talker": talker}) as opened:
        yield opened


# ---- tokens and cost


@pytest.mark.parametrize(
    ("budget", "says", "larger"),
    [
        pytest.param({"tokens": 80}, "for tokens is used up: 80 allowed, 80 used", {"tokens": 1000}, id="tokens"),
        pytest.param({"cost": 0.9}, "for cost is used up: 0.9 allowed, 1 used", {"cost": 5}, id="cost"),
        pytest.param({"tokens": 80, "cost": 9}, "for tokens is used up", {"tokens": None}, id="a limit taken away"),
    ],
)
def test_a_run_stops_when_its_agents_have_used_it_up(runtime, talker, budget, says, larger):
    """The turn that would go beyond is not taken; with a larger budget the run goes on, and nothing is repeated."""
    run = runtime.run(talks("a", "b", "c", budget=budget), check=False)
    assert (run.state, talker.turns) == (RunWord.FAILED, 2)
    assert says in run.error.message
    assert run.failures[0].place == "c"
    (limit,) = larger
    assert run.over_budget == limit
    assert f"--budget {limit}=" in run.commands()[0][0]
    assert (run.tokens, run.cost) == (80, 1.0)
    again = runtime.resume(run.id, check=False)
    assert (again.state, talker.turns) == (RunWord.FAILED, 2), "the same budget is used up still"
    done = runtime.resume(run.id, budget=larger)
    assert (done.state, talker.turns, done.tokens) == (RunWord.COMPLETED, 3, 120)
    assert [one.tokens for one in done.steps] == [40, 40, 40]


def test_it_is_raised_unless_one_looks(runtime):
    """The message has the limit and the command to go on."""
    with pytest.raises(RunNotCompletedError, match=r"(?s)for tokens is used up.*troth runs resume .* --budget tokens="):
        runtime.run(talks("a", "b", budget={"tokens": 10}))


def test_neither_retry_nor_optional_nor_continue_goes_around_it(runtime, talker):
    """A limit that is reached stays reached: no further attempt, no passing over."""
    late = step(
        "b", agent="talker", inputs={"prompt": {"value": "b"}}, optional=True, retry={"attempts": 5, "delay": "1h"}
    )
    first = step("a", agent="talker", inputs={"prompt": {"value": "a"}})
    flow = Workflow(
        "w", first, late, step("c", function=ident, inputs={"value": 1}), budget={"tokens": 40}, on_error="continue"
    )
    run = runtime.run(flow, check=False)
    assert (run.state, run.over_budget, run.step("b").tries) == (RunWord.FAILED, "tokens", 1)
    assert run.step("c").state == "not reached"


def test_steps_that_use_no_tokens_go_on(runtime):
    """The limit is for agents: what needs none of it is not refused."""
    flow = Workflow(
        "w",
        step("a", agent="talker", inputs={"prompt": {"value": "a"}}),
        step("b", function=ident, inputs={"value": "steps.a"}),
        budget={"tokens": 1},
    )
    assert runtime.run(flow).output == "word 1"


def test_an_agent_is_stopped_between_its_turns(tmp_path):
    """A long talk inside one step cannot continue forever; with a larger budget the same talk goes on."""
    model = ScriptedModel(*[call("look", id=str(n)) for n in range(5)], "done", usage=Usage(30, 20))

    def look() -> str:
        """Look."""
        return "seen"

    flow = Workflow("w", step("a", agent="one", inputs={"prompt": {"value": "go"}}), budget={"tokens": 100})
    with Runtime(tmp_path / "runs.db", agents={"one": ToolCallingAgent(model, [look])}) as runtime:
        run = runtime.run(flow, check=False)
        assert (run.over_budget, run.tokens) == ("tokens", 100)
        done = runtime.resume(run.id, budget={"tokens": 10_000})
    assert (done.output, done.tokens) == ("done", 300)


def test_agents_at_once_share_one_budget(tmp_path):
    """What one uses is counted before the next one begins, in whatever branch it is."""
    agent = Talker()
    many = step(
        "m",
        each=[{"value": str(n)} for n in range(10)],
        steps=[step("a", agent="talker", inputs={"prompt": "item"})],
        at_once=2,
        join="settle",
    )
    with Runtime(tmp_path / "runs.db", agents={"talker": agent}) as runtime:
        run = runtime.run(Workflow("w", many, budget={"tokens": 100}), check=False)
        assert run.over_budget == "tokens"
        assert agent.turns <= 4, "the third turn goes over the limit, and one more may be at work beside it"
        assert runtime.resume(run.id, budget={"tokens": 10_000}).succeeded
    assert agent.turns == 10


def test_what_was_used_is_known_after_a_restart(tmp_path):
    """It is read off the conversations in the store, not remembered by the process."""
    agent = Talker()
    flow = Workflow(
        "w",
        step("a", agent="talker", inputs={"prompt": {"value": "a"}}),
        step("ok", approval="Go on?"),
        step("b", agent="talker", inputs={"prompt": {"value": "b"}}),
        budget={"tokens": 40},
    )
    with Runtime(tmp_path / "runs.db", agents={"talker": agent}) as runtime:
        run = runtime.run(flow, wait=False)
    with Runtime(tmp_path / "runs.db", agents={"talker": agent}) as runtime:
        runtime.approve(run.id)
        assert runtime.resume(run.id, flow, check=False).over_budget == "tokens"
    assert agent.turns == 1


# ---- steps and time


def test_a_budget_of_steps(tmp_path):
    """Each round counts; the one too many is not performed; raised, it continues from there."""
    did = []

    def count(n):
        did.append(n)

    loop = step("l", loop=[step("a", function=count, inputs={"n": "round"})], at_most=6)
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(Workflow("w", loop, budget={"steps": 3}), check=False)
        assert (did, run.over_budget) == ([0, 1, 2], "steps")
        assert runtime.resume(run.id, budget={"steps": 100}).succeeded
    assert did == [0, 1, 2, 3, 4, 5]


async def slow():
    await asyncio.sleep(5)


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param({"function": slow}, id="a step at work"),
        pytest.param({"sleep": "5s"}, id="a sleep"),
        pytest.param({"approval": "Well?"}, id="a question"),
        pytest.param({"approval": "Well?", "timeout": "5s"}, id="a question with a limit of its own"),
        pytest.param({"loop": [step("in_loop", function=slow)], "at_most": 2}, id="inside a loop"),
        pytest.param({"parallel": [step("in_parallel", sleep="5s"), step("other", function=slow)]}, id="at once"),
    ],
)
def test_a_budget_of_time(tmp_path, waiting):
    """Whatever the run is at is cut short, and nothing begins after it; it stays as it is until it is resumed."""
    did = []
    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda: did.append("undo a")),
        step("b", **waiting),
        step("c", function=lambda: did.append("c")),
        budget={"time": "150ms"},
    )
    began = time.monotonic()
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow, check=False)
        assert time.monotonic() - began < 4
        assert (run.state, run.over_budget, did) == (RunWord.FAILED, "time", [])
        assert "for time is used up: 150ms allowed" in run.error.message


def test_a_wait_that_was_cut_short_goes_on(tmp_path):
    """With a larger budget the sleep is slept and the question asked again, and what was done is not repeated."""
    did = []
    flow = Workflow(
        "w",
        step("a", function=lambda: did.append("a")),
        step("nap", sleep="300ms"),
        step("ok", approval="Well?"),
        step("z", function=lambda: did.append("z")),
        budget={"time": "100ms"},
    )
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow, check=False)
        assert run.failures[0].place == "nap"
        run = runtime.resume(run.id, budget={"time": "800ms"}, check=False)
        assert (run.step("nap").state, run.failures[0].place) == ("done", "ok")
        run = runtime.resume(run.id, budget={"time": "1h"}, wait=False)
        assert run.waiting_for[0].place == "ok"
        runtime.approve(run.id)
        assert runtime.attach(run.id).succeeded
        assert not runtime.replay(run.id).differs
    assert did == ["a", "z"]


def test_the_steps_own_limit_is_not_the_budgets(tmp_path):
    """A step that runs out of its own time failed; the run is undone as usual."""
    did = []
    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda: did.append("undo a")),
        step("b", function=slow, timeout="50ms"),
        budget={"time": "1h"},
    )
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow, check=False)
    assert (run.state, run.over_budget, did) == (RunWord.ROLLED_BACK, None, ["undo a"])


def test_what_is_done_can_be_undone_instead(tmp_path):
    """`on_exceeded: undo` ends such a run as a failure does."""
    did = []
    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda: did.append("undo a")),
        step("b", function=lambda: 2),
        budget={"steps": 1, "on_exceeded": "undo"},
    )
    with Runtime(tmp_path / "runs.db") as runtime:
        assert runtime.run(flow, check=False).state is RunWord.ROLLED_BACK
    assert did == ["undo a"]


# ---- a workflow inside another


@pytest.mark.parametrize(
    ("outer", "inner", "state", "did"),
    [
        pytest.param({"steps": 3}, {}, "failed", 3, id="the outer limit holds inside"),
        pytest.param({}, {"steps": 2}, "failed", 2, id="the inner limit holds"),
        pytest.param({"steps": 20}, {"steps": 20}, "completed", 5, id="neither is reached"),
    ],
)
def test_a_workflow_inside_another(tmp_path, outer, inner, state, did):
    """Each limit counts what is done inside of its own workflow."""
    done = []
    within = Workflow("inner", step("l", loop=[step("a", function=lambda: done.append(1))], at_most=5), budget=inner)
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(Workflow("outer", step("w", workflow=within), budget=outer), check=False)
    assert (str(run.state), len(done)) == (state, did)
    assert (run.over_budget is not None) is bool(outer and state == "failed")


def test_the_time_of_a_workflow_inside_another(tmp_path):
    """It begins with that workflow; its end is a failure of the step, which may be optional."""
    within = Workflow("inner", step("nap", sleep="5s"), budget={"time": "50ms"})
    flow = Workflow("outer", step("w", workflow=within, optional=True), step("z", function=lambda: "z"))
    with Runtime(tmp_path / "runs.db") as runtime:
        assert runtime.run(flow).output == "z"


# ---- what is no budget


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        pytest.param({"token": 5}, r"no limit 'token'\. Did you mean `tokens`", id="a name that is none"),
        pytest.param({"tokens": 2.5}, "whole number above 0", id="half a token"),
        pytest.param({"steps": 0}, "whole number above 0", id="nothing"),
        pytest.param({"time": "soon"}, "a duration like", id="no span of time"),
        pytest.param({"cost": True}, "a number above 0", id="no number"),
    ],
)
def test_a_budget_that_is_none_is_refused(tmp_path, budget, says):
    """Before anything happens to the run."""
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(Workflow("w", step("nap", sleep="5s"), budget={"time": "10ms"}), check=False)
        with pytest.raises(MisuseError, match=says):
            runtime.resume(run.id, budget=budget)
        assert runtime.show(run.id).state is RunWord.FAILED
