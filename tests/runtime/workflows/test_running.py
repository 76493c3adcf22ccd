"""Workflows on the real engine: what each kind does, what is recorded, and how a run ends."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from troth.errors import MisuseError
from troth.runtime import (
    InvalidWorkflowError,
    RunNotCompletedError,
    Runtime,
    Workflow,
    current_step,
    run_workflow,
    step,
)
from troth.runtime.agents import Agent
from troth.runtime.tools import tool
from troth.runtime.workflows.execute.failures import WrongInputsError
from troth.runtime.workflows.record.report import RunWord, StepWord


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


class World:
    """What the steps did, in the order they did it."""

    def __init__(self):
        self.did = []
        self.fails = {}

    def act(self, name="act"):
        def call(**given):
            self.did.append((name, given))
            left = self.fails.get(name, 0)
            if left:
                self.fails[name] = left - 1
                raise ConnectionError(f"{name} is down")
            return {"name": name, **given}

        return call

    def undo(self, name):
        return self.act(f"undo {name}")

    @property
    def names(self):
        return [name for name, _ in self.did]


@pytest.fixture
def world():
    return World()


def ident(value):
    return value


async def aident(value):
    await asyncio.sleep(0)
    return value


def test_steps_see_what_came_before(runtime):
    """Inputs, outputs of earlier steps, literals, texts and lists; sync and async functions alike."""
    flow = Workflow(
        "w",
        step("a", function=ident, inputs={"value": "inputs.order"}),
        step("b", function=aident, inputs={"value": {"text": "<${steps.a}> in ${run.workflow}"}}),
        step("c", function=ident, inputs={"value": ["steps.a", "steps.b", 1, None, {"value": "steps.a"}]}),
        inputs={"order": "string"},
        output={"all": "steps.c", "first": "steps.c[0]"},
    )
    run = runtime.run(flow, {"order": "A7"})
    assert run.output == {"all": ["A7", "<A7> in w", 1, None, "steps.a"], "first": "A7"}
    assert run.done == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("a bug", ["classify", "bug_path"]),
        ("a feature", ["classify", "feature_path"]),
        ("hm", ["classify", "other_path"]),
    ],
)
def test_a_branch_takes_one_way_and_no_other(runtime, world, text, taken):
    """The sample that fell through elsewhere runs exactly the classification and one way."""

    def classify(text):
        world.did.append(("classify", {}))
        return {"kind": next((word for word in ("bug", "feature") if word in text), "other")}

    flow = Workflow(
        "triage",
        step("classify", function=classify, inputs={"text": "inputs.text"}),
        step(
            "route",
            branch=[
                {"when": "steps.classify.kind == 'bug'", "steps": [step("bug_path", function=world.act("bug_path"))]},
                {
                    "when": "steps.classify.kind == 'feature'",
                    "steps": [step("feature_path", function=world.act("feature_path"))],
                },
                {"otherwise": [step("other_path", function=world.act("other_path"))]},
            ],
        ),
        inputs={"text": "string"},
    )
    run = runtime.run(flow, {"text": text})
    assert world.names == taken
    assert run.output["name"] == taken[1]
    words = {one.place: one.state for one in run.steps}
    assert [name for name, word in words.items() if word is StepWord.NOT_TAKEN] == [
        name for name in ("bug_path", "feature_path", "other_path") if name != taken[1]
    ]


def test_parallel_members_run_at_once_and_join(runtime):
    """Three that wait for each other can only finish together."""
    gate = threading.Barrier(3, timeout=10)

    def meet(name):
        gate.wait()
        return name

    flow = Workflow(
        "w",
        step("all", parallel=[step(name, function=meet, inputs={"name": {"value": name}}) for name in ("x", "y", "z")]),
        step("after", function=ident, inputs={"value": "steps.all.y"}),
    )
    run = runtime.run(flow)
    assert run.output == "y"
    assert runtime.show(run.id).done == ("all", "x", "y", "z", "after")


def test_a_member_comes_after_another(runtime, world):
    """And reads its output."""
    flow = Workflow(
        "w",
        step(
            "p",
            parallel=[
                step("second", function=ident, inputs={"value": "steps.first.name"}, after="first"),
                step("first", function=world.act("first")),
                step("third", function=ident, inputs={"value": ["steps.first.name", "steps.second"]}, after=["second"]),
            ],
        ),
    )
    assert runtime.run(flow).output["third"] == ["first", "first"]


def test_each_item_has_its_own_steps(runtime):
    """At most so many at a time; outcomes in the order of the items."""
    now, most = 0, 0
    lock = threading.Lock()

    def work(item, at):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return item * 10 + at

    flow = Workflow(
        "w",
        step("e", each="inputs.numbers", at_once=2, steps=[
            step("a", function=work, inputs={"item": "item", "at": "index"}),
            step("b", function=ident, inputs={"value": ["steps.a", "item"]}),
        ]),
        inputs={"numbers": "list"},
    )  # fmt: skip
    run = runtime.run(flow, {"numbers": [5, 6, 7, 8]})
    assert run.output == [[50, 5], [61, 6], [72, 7], [83, 8]]
    assert most == 2
    assert run.step("e[2].b").output == [72, 7]


def test_a_loop_stops_at_its_condition_or_its_bound(runtime, world):
    """`until` sees the round that was; a bound that is reached is a failure unless it is said not to be."""
    act = world.act("try")
    body = [step("attempt", function=lambda number: act() and {"ok": number >= 2}, inputs={"number": "round"})]
    found = runtime.run(Workflow("w", step("l", loop=body, at_most=5, until="steps.attempt.ok")))
    assert (found.output, len(world.did)) == ({"ok": True}, 3)
    with pytest.raises(RunNotCompletedError, match="did its 2 rounds"):
        runtime.run(Workflow("w", step("l", loop=body, at_most=2, until="steps.attempt.ok")))
    lenient = Workflow("w", step("l", loop=body, at_most=2, until="steps.attempt.ok", on_limit="continue"))
    assert runtime.run(lenient).output == {"ok": False}
    assert runtime.run(Workflow("w", step("l", loop=body, at_most=2, pause="5ms"))).output == {"ok": False}


def test_a_workflow_inside_another(runtime, world):
    """Its steps are in the record of the run, and are undone with the others."""
    inner = Workflow(
        "inner",
        step("work", function=world.act("work"), inputs={"x": "inputs.x"}, undo=world.undo("work")),
        inputs={"x": "integer"},
        output={"got": "steps.work.x"},
    )
    outer = Workflow(
        "outer",
        step("call", workflow=inner, inputs={"x": 3}),
        step("use", function=ident, inputs={"value": "steps.call.got"}),
        step("end", function=world.act("end")),
    )
    assert runtime.run(outer).step("use").output == 3
    world.fails = {"end": 1}
    run = runtime.run(outer, check=False)
    assert run.state is RunWord.ROLLED_BACK
    assert run.undone == ("call.work",)
    with pytest.raises(RunNotCompletedError, match=r"inputs\.x"):
        runtime.run(Workflow("outer", step("call", workflow=inner, inputs={"x": {"value": "text"}})))


class Echo(Agent):
    """Sync; answers with what it was told."""

    def step(self, conversation):
        conversation.say(f"echo {conversation.messages()[-1].text}")


class Classify(Agent):
    """Async; answers in JSON."""

    async def astep(self, conversation):
        await conversation.asay(json.dumps({"kind": "bug" if "bug" in conversation.messages()[-1].text else "other"}))


class Flaky(Agent):
    """Fails in its first step, and answers in the next run of the same conversation."""

    def __init__(self):
        self.seen = []

    def step(self, conversation):
        self.seen.append((conversation.id, len(conversation.messages())))
        if len(self.seen) == 1:
            raise ConnectionError("no line")
        conversation.say("here I am")


def test_agents_of_both_colors_answer_in_a_conversation(tmp_path):
    """The prompt is sent, the last thing said is the output, as JSON where the contract wants it; a function will do too."""
    agents = {"echo": Echo(), "classify": Classify(), "plain": lambda prompt: f"plain {prompt}"}
    flow = Workflow(
        "w",
        step("a", agent="echo", inputs={"prompt": {"text": "a ${inputs.word}"}}),
        step("b", agent="classify", inputs={"prompt": "steps.a"}, output={"fields": {"kind": "string"}}),
        step("c", agent="plain", inputs={"prompt": "steps.b.kind"}),
        inputs={"word": "string"},
    )
    with Runtime(tmp_path / "runs.db", agents=agents) as runtime:
        run = runtime.run(flow, {"word": "bug"})
        assert [run.step(name).output for name in "abc"] == ["echo a bug", {"kind": "bug"}, "plain bug"]
        assert asyncio.run(runtime.arun(flow, {"word": "bug"})).output == "plain bug"


def test_an_agent_that_is_tried_again_goes_on_with_the_same_talk(tmp_path):
    """The prompt is not sent twice."""
    agent = Flaky()
    flow = Workflow(
        "w", step("a", agent="flaky", inputs={"prompt": {"value": "hello"}}, retry={"attempts": 2, "delay": "1ms"})
    )
    with Runtime(tmp_path / "runs.db", agents={"flaky": agent}) as runtime:
        assert runtime.run(flow).output == "here I am"
    assert len(set(agent.seen)) == 1


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        pytest.param(type("Empty", (Agent,), {})(), "neither a `step` nor an `astep`", id="no step"),
        pytest.param(3, "neither a `step` nor an `astep`", id="not an agent"),
        pytest.param(Echo, "is a class, not an agent", id="a class"),
    ],
)
def test_what_is_no_agent_is_refused_before_anything_runs(tmp_path, agent, says):
    """At loading, with the place of its name."""
    flow = Workflow("w", step("a", agent="x", inputs={"prompt": {"value": "hello"}}))
    with Runtime(tmp_path / "runs.db", agents={"x": agent}) as runtime, pytest.raises(InvalidWorkflowError, match=says):
        runtime.load(flow)


def test_tools_by_name(tmp_path):
    """Sync and async; a function, or a tool made of one."""
    with Runtime(tmp_path / "runs.db", tools={"a": ident, "b": tool(aident)}) as runtime:
        flow = Workflow("w", step("x", tool="a", inputs={"value": 1}), step("y", tool="b", inputs={"value": "steps.x"}))
        assert runtime.run(flow).output == 1


# ---- failing


def test_a_failed_run_raises_with_the_run_attached(runtime, world):
    """The message has the step, the user's line, the message and the command to go on; `check=False` only looks."""

    def ship():
        raise ValueError("parcel too heavy: 198")

    flow = Workflow("w", step("charge", function=world.act("charge")), step("ship", function=ship))
    with pytest.raises(RunNotCompletedError) as failed:
        runtime.run(flow)
    run = failed.value.run
    assert (run.state, run.failures[0].place) == ("failed", "ship")
    text = str(failed.value)
    assert "failed at step 'ship'" in text
    assert f"{__name__.split('.')[-1]}.py:" in text or "test_running.py:" in text
    assert 'raise ValueError("parcel too heavy: 198")' in text
    assert "ValueError: parcel too heavy: 198" in text
    assert f"troth runs resume {run.id}" in text
    assert runtime.run(flow, check=False).state == "failed"


def test_every_attempt_has_its_own_error_and_waiting_is_apart_from_work(runtime, world):
    """The delay stands before the first retry too; the record tells working from waiting."""
    world.fails = {"act": 2}
    flow = Workflow(
        "w", step("a", function=world.act(), retry={"attempts": 3, "delay": "60ms", "jitter": 0, "backoff": "fixed"})
    )
    run = runtime.run(flow)
    told = run.step("a")
    assert [one.outcome for one in told.attempts] == ["failed", "failed"]
    assert [one.error.message for one in told.attempts] == ["act is down", "act is down"]
    assert told.waited == pytest.approx(0.12, abs=0.03)
    assert told.worked < 0.1
    assert [what for *_, what in told.spans()] == ["work", "wait", "work", "wait", "work"]


@pytest.mark.parametrize(
    ("on", "tries"),
    [(["ConnectionError"], 3), (["OSError"], 3), (["ValueError"], 1), (["ValueError", "ConnectionError"], 3)],
)
def test_only_what_is_worth_it_is_tried_again(runtime, world, on, tries):
    """By the name of the exception or of one it derives from."""
    world.fails = {"act": 9}
    flow = Workflow("w", step("a", function=world.act(), retry={"attempts": 3, "delay": "1ms", "on": on}))
    runtime.run(flow, check=False)
    assert len(world.did) == tries


def test_a_broken_contract_is_not_tried_again_and_is_undone(runtime, world):
    """The effect is there, so it is taken back; the same call would break it again."""
    flow = Workflow(
        "w",
        step("a", function=world.act(), inputs={"x": 1}, retry={"attempts": 5, "delay": "1ms"},
             output={"fields": {"name": "string", "x": "string"}}, undo=world.undo("a")),
    )  # fmt: skip
    run = runtime.run(flow, check=False)
    assert world.names == ["act", "undo a"]
    assert run.state is RunWord.ROLLED_BACK
    assert "`steps.a.x` is a int (1), but the contract requires string" in run.failures[0].error.message


def test_an_optional_step_leaves_its_default(runtime, world):
    """The run goes on; the record shows what was passed over."""
    world.fails = {"act": 1}
    flow = Workflow(
        "w",
        step("a", function=world.act(), optional=True, default={"price": 3}),
        step("b", function=ident, inputs={"value": "steps.a.price"}),
    )
    run = runtime.run(flow)
    assert run.output == 3
    assert run.step("a").state is StepWord.PASSED_OVER
    assert run.step("a").error.message == "act is down"


def test_an_optional_block_is_undone_before_the_run_goes_on(runtime, world):
    """What an optional saga did is taken back at once."""
    world.fails = {"second": 1}
    flow = Workflow(
        "w",
        step("try_it", optional=True, saga=[
            step("first", function=world.act("first"), undo=world.undo("first")),
            step("second", function=world.act("second"), undo=world.undo("second")),
        ]),
        step("after", function=world.act("after")),
    )  # fmt: skip
    assert runtime.run(flow).succeeded
    assert world.names == ["first", "second", "undo first", "after"]


@pytest.mark.parametrize(
    ("policy", "names", "state"),
    [
        pytest.param("undo", ["a", "b", "undo a"], "rolled back", id="undo"),
        pytest.param("stop", ["a", "b"], "failed", id="stop"),
        pytest.param("continue", ["a", "b", "c"], "failed", id="continue"),
    ],
)
def test_what_happens_when_a_step_fails(runtime, world, policy, names, state):
    """The workflow says so, and means the same from YAML and from Python."""
    world.fails = {"b": 1}
    flow = Workflow(
        "w",
        step("a", function=world.act("a"), undo=world.undo("a")),
        step("b", function=world.act("b")),
        step("c", function=world.act("c")),
        on_error=policy,
    )
    run = runtime.run(flow, check=False)
    assert (world.names, run.state) == (names, state)
    assert run.failures[0].place == "b"


def test_undo_runs_in_reverse_with_inputs_and_results(runtime, world):
    """On any step; those without an undo are left as they are."""
    world.fails = {"end": 1}
    flow = Workflow(
        "w",
        step("a", function=world.act("a"), inputs={"x": 1}, undo=world.undo("a")),
        step("b", function=world.act("b")),
        step("c", function=world.act("c"), inputs={"y": 2},
             undo={"function": world.undo("c"), "inputs": {"was": "result.y", "and_a": "steps.a.name"}}),
        step("end", function=world.act("end")),
    )  # fmt: skip
    run = runtime.run(flow, check=False)
    assert world.did[4:] == [
        ("undo c", {"was": 2, "and_a": "a"}),
        ("undo a", {"x": 1}),  # its `**arguments` is no parameter named `result`
    ]
    assert run.undone == ("c", "a")
    assert run.step("a").state is StepWord.UNDONE


def test_an_incomplete_rollback_is_finished_by_resume(runtime, world):
    """What is undone is not undone twice; what resists is named, and tried again when asked."""
    world.fails = {"end": 1, "undo b": 3}
    flow = Workflow(
        "w",
        *[step(name, function=world.act(name),
               undo={"function": world.undo(name), "retry": {"attempts": 3, "delay": "1ms"}}) for name in "abc"],
        step("end", function=world.act("end")),
    )  # fmt: skip
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.ROLLBACK_INCOMPLETE
    assert (run.undone, [left.place for left in run.not_undone]) == (("c", "a"), ["undo b"])
    assert "try again to undo b" in run.commands()[0][1]
    world.did.clear()
    again = runtime.resume(run.id, check=False)
    assert world.names == ["undo b"]
    assert (again.state, set(again.undone)) == (RunWord.ROLLED_BACK, {"a", "b", "c"})
    with pytest.raises(MisuseError, match="it cannot be resumed"):
        runtime.resume(run.id)


def test_a_coroutine_lost_inside_a_step_fails_it(runtime, world):
    """Elsewhere this is recorded as success; here the step is undone and the message names the call."""

    async def notify():
        world.did.append(("notify", {}))

    def forgets():
        notify()
        return "ok"

    flow = Workflow("w", step("a", function=forgets, undo=world.undo("a")))
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.ROLLED_BACK
    assert run.failures[0].error.type == "LostCoroutineError"
    assert "notify" in run.failures[0].error.message
    assert world.names == ["undo a"]


def test_a_step_that_returns_a_coroutine_is_awaited(runtime):
    """A lambda round an async function: what comes back is awaited, and its contract is checked then."""
    flow = Workflow("w", step("a", function=lambda: aident(3), output="integer"))
    assert runtime.run(flow).output == 3
    flow = Workflow("w", step("a", function=lambda: aident("x"), output="integer"))
    assert runtime.run(flow, check=False).failures[0].error.type == "OutputContractError"


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_timeout_is_kept_for_both_colors(runtime, world, color):
    """The outcome is unknown, so the step is undone too."""

    def slow():
        time.sleep(0.5)

    async def aslow():
        await asyncio.sleep(5)

    flow = Workflow("w", step("a", function=slow if color == "sync" else aslow, timeout="50ms", undo=world.undo("a")))
    began = time.monotonic()
    run = runtime.run(flow, check=False)
    assert run.step("a").attempts[0].outcome == "timeout"
    assert world.names == ["undo a"]
    assert time.monotonic() - began < 5


def test_what_json_cannot_hold_fails_the_step(runtime):
    """With the part that cannot be kept."""
    run = runtime.run(Workflow("w", step("a", function=lambda: {"x": {1, 2}})), check=False)
    assert run.failures[0].place == "a"
    assert "x" in run.failures[0].error.message


def test_a_path_that_leads_nowhere_at_run_time_fails_its_step(runtime):
    """The record shows the step, and the workflow ends as its policy says."""
    flow = Workflow(
        "w", step("a", function=ident, inputs={"value": 1}), step("b", function=ident, inputs={"value": "steps.a.x"})
    )
    run = runtime.run(flow, check=False)
    assert run.failures[0].place == "b"
    assert "`steps.a` is a int" in run.failures[0].error.message


@pytest.mark.parametrize("policy", ["undo", "stop", "continue"])
def test_an_output_that_leads_nowhere(runtime, world, policy):
    """It fails the run like a step does: what was done is undone, or it goes on from there with a better workflow."""

    def flow(path):
        made = step("a", function=world.act("a"), undo=world.undo("a"))
        return Workflow("w", made, on_error=policy, output={"x": path})

    run = runtime.run(flow("steps.a.nothing"), check=False)
    assert "`steps.a` has no `nothing`" in run.error.message
    assert run.state is (RunWord.ROLLED_BACK if policy == "undo" else RunWord.FAILED)
    if policy == "stop":
        assert runtime.resume(run.id, flow("steps.a"), accept_changes=True).succeeded
        assert world.names == ["a"]


@pytest.mark.parametrize(
    ("block", "state", "names"),
    [
        pytest.param(lambda w: {"saga": [step("a", function=w.act("a"), undo=w.undo("a")), step("b", function=w.act("bad"))]}, "failed", ["a", "bad", "undo a", "z"], id="a saga is undone"),
        pytest.param(lambda w: {"parallel": [step("a", function=w.act("bad")), step("b", function=w.act("bad"))], "join": "any"}, "failed", ["bad", "bad", "z"], id="no branch has won"),
        pytest.param(lambda w: {"loop": [step("a", function=w.act("bad")), step("b", function=w.act("b"))], "at_most": 1, "optional": True}, "completed", ["bad", "z"], id="an optional block is passed over"),
        pytest.param(lambda w: {"loop": [step("a", function=w.act("bad")), step("b", function=w.act("b"))], "at_most": 1}, "failed", ["bad", "b", "z"], id="a round goes on"),
    ],
)  # fmt: skip
def test_what_stands_or_falls_as_a_whole_does_not_continue_inside(runtime, world, block, state, names):
    """`on_error: continue` goes on after it."""
    world.fails = {"bad": 9}
    flow = Workflow("w", step("p", **block(world)), step("z", function=world.act("z")), on_error="continue")
    run = runtime.run(flow, check=False)
    assert (run.state, world.names) == (state, names)


def test_functions_of_one_name_are_not_taken_for_each_other(runtime):
    """Lambdas of inner workflows: each is called where it was written."""
    one, other = (Workflow(f"w{n}", step("x", function=lambda n=n: n, undo=lambda n=n: n)) for n in (1, 2))
    flow = Workflow(
        "w",
        step("p", workflow=one),
        step("q", workflow=other),
        step("r", function=lambda: 3),
        output={"p": "steps.p", "q": "steps.q", "r": "steps.r"},
    )
    assert runtime.run(flow).output == {"p": 1, "q": 2, "r": 3}


@pytest.mark.parametrize("color", ["sync", "async"])
def test_workflows_made_for_one_request_each(runtime, color):
    """The same document with other closures, at once: each run calls its own."""

    def made(number):
        async def work():
            await asyncio.sleep(0.001)
            return number

        return Workflow("w", step("a", function=work), step("b", function=lambda: number))

    async def main():
        return await asyncio.gather(*[runtime.arun(made(number)) for number in range(40)])

    if color == "async":
        runs = asyncio.run(main())
    else:
        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(lambda number: runtime.run(made(number)), range(40)))
    assert [(run.step("a").output, run.step("b").output) for run in runs] == [(n, n) for n in range(40)]
    assert not runtime._workflows._accepted, "what was kept for a run is let go with it"


# ---- starting


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param([1], r"given inputs by name, and not \[1\]", id="a list"),
        pytest.param("order", "given inputs by name, and not 'order'", id="a text"),
        pytest.param({1: 2}, "there is no input 1", id="a number as a name"),
        pytest.param({"order": float("nan")}, "but the contract requires string", id="of another type"),
        pytest.param({"order": "x", "size": float("nan")}, "JSON has no such number", id="a number that is none"),
        pytest.param({"order": "x", "size": 10**5000}, "more digits than Python can write", id="one that is too long"),
    ],
)
def test_inputs_that_are_none(runtime, given, says):
    """Told in one sentence, and nothing is written down."""
    flow = Workflow(
        "w", step("a", function=lambda: 1), inputs={"order": "string", "size": {"type": "number", "default": 1}}
    )
    with pytest.raises(WrongInputsError, match=says):
        runtime.run(flow, given)
    assert runtime.runs() == []


def test_a_state_that_no_run_can_be_in(runtime):
    """Is told with those there are; a limit of nothing lists nothing."""
    with pytest.raises(MisuseError, match="Did you mean `completed`"):
        runtime.runs(state="complete")
    assert runtime.runs(limit=0) == runtime.runs(limit=-1) == []


def test_wrong_inputs_start_nothing(runtime):
    """Python checks them as the command line does."""
    flow = Workflow("w", step("a", function=ident, inputs={"value": "inputs.order"}), inputs={"order": "string"})
    with pytest.raises(WrongInputsError, match=r"'order' \(string\) is missing"):
        runtime.run(flow)
    assert runtime.runs() == []


def test_the_same_id_is_the_same_run(runtime, world):
    """Started again it is not done again; with other inputs it is refused."""
    flow = Workflow("w", step("a", function=world.act(), inputs={"x": "inputs.x"}), inputs={"x": "integer"})
    first = runtime.run(flow, {"x": 1}, run_id="one")
    assert runtime.run(flow, {"x": 1}, run_id="one").output == first.output
    assert len(world.did) == 1
    with pytest.raises(MisuseError, match="belongs to a run"):
        runtime.run(flow, {"x": 2}, run_id="one")


def test_a_step_knows_its_key(runtime):
    """The same for every attempt, so that the other side can recognise a second one."""
    keys = []

    def act():
        keys.append(current_step().key)
        if len(keys) < 3:
            raise ConnectionError

    runtime.run(Workflow("w", step("a", function=act, retry={"attempts": 3, "delay": "1ms"})))
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_the_shortest_program(tmp_path, monkeypatch, capsys):
    """Ten lines from nothing to a durable run."""
    monkeypatch.chdir(tmp_path)
    flow = Workflow(
        "order", step("charge", function=ident, inputs={"value": "inputs.order"}), inputs={"order": "string"}
    )
    assert run_workflow(flow, {"order": "A7"}).output == "A7"
    assert (tmp_path / ".troth/runs.db").exists()
    assert capsys.readouterr() == ("", "")


def test_the_record_is_plain_json(runtime, world):
    """All of it, for every kind of end."""
    from troth.runtime.workflows.record.report_json import as_json

    world.fails = {"b": 1}
    flow = Workflow("w", step("a", function=world.act("a"), undo=world.undo("a")), step("b", function=world.act("b")))
    told = json.loads(json.dumps(as_json(runtime.run(flow, check=False))))
    assert (told["state"], told["failures"], told["undone"]) == ("rolled back", ["b"], ["a"])
    assert [one["place"] for one in told["steps"]] == ["a", "b", "undo a"]
