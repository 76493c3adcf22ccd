"""Runs that go on: after a failure, a cancellation or a kill, from the record, and never twice over what is done."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from troth.errors import MisuseError
from troth.runtime import RunNotCompletedError, Runtime, Workflow, current_step, step
from troth.runtime.workflows.execute.resume_points import CannotGoOnError
from troth.runtime.workflows.link.code_changes import ChangedWorkflowError
from troth.runtime.workflows.record.diff import diff
from troth.runtime.workflows.record.report import RunWord, StepWord
from troth.runtime.workflows.render.html import page
from troth.runtime.workflows.render.text import draw


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


def ident(value):
    return value


class Flaky:
    """Fails as often as it is told, and counts."""

    def __init__(self, fails=0):
        self.fails = fails
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.fails:
            self.fails -= 1
            raise ConnectionError("down")
        return self.calls


# ---- resume


def test_a_failed_run_goes_on_from_the_step_that_failed(runtime):
    """What is done is not repeated; the attempts before stay in the record."""
    first, second, third = Flaky(), Flaky(fails=1), Flaky()
    flow = Workflow("w", *[step(name, function=one) for name, one in (("a", first), ("b", second), ("c", third))])
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.FAILED
    again = runtime.resume(run.id)
    assert again.state is RunWord.COMPLETED
    assert (first.calls, second.calls, third.calls) == (1, 2, 1)
    assert [one.outcome for one in again.step("b").attempts] == ["failed"]
    with pytest.raises(CannotGoOnError, match="is completed"):
        runtime.resume(run.id)


def test_going_on_passes_over_what_was_passed_over(runtime):
    """An optional step that failed is not what the run stopped at, and is not tried again."""
    optional, fails = Flaky(fails=9), Flaky(fails=1)
    flow = Workflow(
        "w",
        step("a", function=optional, optional=True),
        step("b", function=ident, inputs={"value": 1}),
        step("c", function=fails),
    )
    run = runtime.run(flow, check=False)
    assert runtime.resume(run.id).succeeded
    assert (optional.calls, fails.calls) == (1, 2)


def test_a_member_of_a_parallel_block_goes_on_alone(runtime):
    """The others of the block are done and stay so."""
    good, bad, after = Flaky(), Flaky(fails=1), Flaky()
    flow = Workflow(
        "w", step("p", parallel=[step("x", function=good), step("y", function=bad)]), step("z", function=after)
    )
    run = runtime.run(flow, check=False)
    assert runtime.resume(run.id).succeeded
    assert (good.calls, bad.calls, after.calls) == (1, 2, 1)


@pytest.mark.parametrize("policy", ["stop", "undo"])
@pytest.mark.parametrize(
    "without",
    [
        pytest.param(lambda do, bad: {"saga": [do, bad], "optional": True}, id="an optional saga"),
        pytest.param(lambda do, bad: {"parallel": [step("q", saga=[do, bad]), step("w", sleep="1ms")], "join": "any"}, id="a branch that failed"),
        pytest.param(lambda do, bad: {"parallel": [step("q", saga=[do, bad]), step("w", sleep="1ms")], "join": "settle"}, id="whatever comes"),
        pytest.param(lambda do, _: {"parallel": [step("q", saga=[do, step("n", sleep="60s")]), step("w", sleep="300ms")], "join": "any"}, id="a branch that was let go"),
    ],
)  # fmt: skip
def test_what_the_run_went_on_without_stays_so(runtime, without, policy):
    """A part that was undone on the way does not make the run rolled back, and is neither done nor undone again."""
    did, flaky = [], Flaky(fails=1)

    def note(what):
        return lambda: did.append(what)

    def bad():
        did.append("bad")
        raise ValueError("bad")

    part = without(step("do", function=note("do"), undo=note("undo do")), step("bad", function=bad))
    flow = Workflow("w", step("p", **part), step("z", function=flaky), on_error=policy)
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.FAILED
    assert [one.place for one in run.failures] == ["z"]
    before = list(did)
    assert before.count("undo do") == 1
    again = runtime.resume(run.id)
    assert again.succeeded
    assert (did, flaky.calls) == (before, 2)
    assert not runtime.replay(run.id).differs


def test_a_saga_that_was_undone_is_not_gone_on_from(runtime):
    """Its steps are recorded as done, and are not: going on would build on them."""
    did = []
    saga = [
        step("do", function=lambda: did.append("do"), undo=lambda: did.append("undo")),
        step("bad", function=lambda: 1 / 0),
    ]
    run = runtime.run(Workflow("w", step("s", saga=saga), on_error="stop"), check=False)
    assert run.state is RunWord.ROLLED_BACK
    with pytest.raises(CannotGoOnError, match="was undone"):
        runtime.resume(run.id)
    assert did == ["do", "undo"]


def test_a_race_that_nobody_won_goes_on(runtime):
    """Those that failed are done again; the first success is enough then, too."""
    one, other = Flaky(fails=1), Flaky(fails=1)
    flow = Workflow(
        "w", step("p", parallel=[step("x", function=one), step("y", function=other)], join="any"), on_error="stop"
    )
    run = runtime.run(flow, check=False)
    assert run.state is RunWord.FAILED
    assert runtime.resume(run.id).succeeded
    assert not runtime.replay(run.id).differs


def test_a_decision_of_the_workflow_itself_goes_on(runtime):
    """A loop that came to its bound is asked again only from there; its rounds are not repeated."""
    counter = Flaky()
    flow = Workflow("w", step("l", loop=[step("a", function=counter)], at_most=2, until="steps.a == 5"))
    run = runtime.run(flow, check=False)
    assert runtime.resume(run.id, check=False).state is RunWord.FAILED
    assert counter.calls == 2


# ---- changes


def version(number):
    """A function whose code has a constant in it."""
    namespace = {}
    exec(f"def work():\n    return {number}\n", namespace)
    return namespace["work"]


def test_a_changed_function_of_a_done_step_is_found(runtime):
    """Even if only a constant changed; what is recorded may be accepted as it is."""
    flaky = Flaky(fails=1)
    flow = lambda number: Workflow("w", step("a", function=version(number)), step("b", function=flaky))  # noqa: E731
    run = runtime.run(flow(1), check=False)
    with pytest.raises(ChangedWorkflowError, match="The code of 'a' has changed"):
        runtime.resume(run.id, flow(2))
    assert runtime.show(run.id).state is RunWord.FAILED
    assert runtime.resume(run.id, flow(2), accept_changes=True).step("a").output == 1


def test_a_fixed_function_of_the_failed_step_goes_on(runtime):
    """That is what a fix looks like: the step that failed may have changed."""

    def broken():
        raise ValueError("a bug")

    def fixed():
        return "fine"

    fixed.__qualname__ = broken.__qualname__
    run = runtime.run(Workflow("w", step("a", function=broken)), check=False)
    assert runtime.resume(run.id, Workflow("w", step("a", function=fixed))).output == "fine"


def test_a_changed_workflow_is_found(tmp_path):
    """The file is read again: the run goes on as it was recorded, or with the new one, when told so."""
    (tmp_path / "mod1.py").write_text("import os\ndef ok(): return 1\ndef no(): return os.environ['TROTH_TRIAL']\n")
    path = tmp_path / "w.yaml"
    text = "troth: 1\nname: w\nsteps: [{id: a, function: 'mod1:ok'}, {id: b, function: 'mod1:no'}]\n"
    path.write_text(text)
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(path, check=False)
    path.write_text(text.replace("steps: [", "steps: [{id: before, function: 'mod1:ok'}, "))
    with Runtime(tmp_path / "runs.db") as runtime:
        with pytest.raises(ChangedWorkflowError, match="has changed since the run"):
            runtime.resume(run.id)
        os.environ["TROTH_TRIAL"] = "x"
        try:
            with pytest.raises(MisuseError, match="asked at step"):
                runtime.resume(run.id, accept_changes=True)
            assert runtime.resume(run.id, as_recorded=True).output == "x"
        finally:
            del os.environ["TROTH_TRIAL"]
    sys.modules.pop("mod1", None)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param("def f(x):\n    return x + 1\n", "def f(x):\n    # a comment\n\n    return x + 1\n", True, id="a comment"),
        pytest.param("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 2\n", False, id="a constant"),
        pytest.param("def f(x):\n    return a(x)\n", "def f(x):\n    return b(x)\n", False, id="another callee"),
        pytest.param("def f(x=1):\n    return x\n", "def f(x=2):\n    return x\n", False, id="a default"),
        pytest.param("def f(x):\n    return lambda: 1\n", "def f(x):\n    return lambda: 2\n", False, id="a function inside"),
        pytest.param("def f(x):\n    return x in {1, 2, 3}\n", "def f(x):\n    return x in {3, 2, 1}\n", True, id="the order of a set"),
        pytest.param("async def f(x):\n    return x\n", "def f(x):\n    return x\n", False, id="the color"),
    ],
)  # fmt: skip
def test_what_a_fingerprint_sees(one, other, is_same):
    """Code, constants, names and defaults; not comments, not places."""
    from troth.runtime.workflows.link.fingerprint import fingerprint

    prints = []
    for text in (one, other):
        namespace = {}
        exec(text, namespace)
        prints.append(fingerprint(namespace["f"]))
    assert (prints[0] == prints[1]) is is_same


# ---- replay, fork, diff


def test_a_replay_performs_nothing_and_agrees(runtime):
    """The workflow decides anew; the record answers."""
    calls = Flaky()
    flow = Workflow(
        "w",
        step("a", function=calls),
        step("p", parallel=[step("x", function=calls), step("nap", sleep="1ms")]),
        step("l", loop=[step("q", function=calls)], at_most=3, until="steps.q > 3"),
        step("b", branch=[{"when": "steps.a == 1", "steps": [step("r", function=calls)]}, {"otherwise": []}]),
    )
    run = runtime.run(flow)
    done = calls.calls
    assert runtime.replay(run.id).ending == "completed"
    assert runtime.replay(run.id).output == run.output
    assert calls.calls == done


def test_a_replay_of_every_end(runtime):
    """Failed, undone, cancelled: the record tells the same story again."""
    flow = Workflow("w", step("a", function=Flaky(), undo=lambda: None), step("b", function=Flaky(fails=1)))
    run = runtime.run(flow, check=False)
    assert runtime.replay(run.id).ending.startswith("failed: Step 'b'")
    assert not runtime.replay(run.id).differs


def test_a_fork_does_anew_from_a_step_on(runtime):
    """The old run stays as it is; the new one has its answers up to the step."""
    a, b, c = Flaky(), Flaky(), Flaky()
    flow = Workflow("w", *[step(name, function=one) for name, one in (("a", a), ("b", b), ("c", c))])
    run = runtime.run(flow)
    fork = runtime.fork(run.id, "b")
    assert (a.calls, b.calls, c.calls) == (1, 2, 2)
    assert fork.forked_from == run.id
    assert fork.step("a").output == 1
    assert runtime.show(run.id).step("b").output == 1
    differences = {one.path: (one.one, one.other) for one in diff(run, fork)}
    assert differences == {"steps.b": (1, 2), "steps.c": (1, 2), "output": (1, 2)}
    assert runtime.fork(run.id).step("a").output == 2
    with pytest.raises(MisuseError, match=r"no step 'bb' that was started\. Did you mean `b`\?"):
        runtime.fork(run.id, "bb")


def test_a_fork_is_a_run_of_its_own(runtime):
    """Its id is in what its steps see, in their keys, in its stream; what it was given says who did it."""
    seen = []

    def work(name, run):
        seen.append((name, run, current_step().key.split(":")[0], current_step().run_id))
        return run

    def at(name):
        return step(name, function=work, inputs={"name": {"value": name}, "run": "run.id"})

    ways = [{"when": 'run.workflow == "w"', "steps": [at("in_branch")]}, {"otherwise": []}]
    flow = Workflow(
        "w",
        at("a"),
        step("way", branch=ways),
        step("nap", sleep="1ms"),
        at("b"),
        step("last", branch=[{"when": 'run.id != ""', "steps": [at("c")]}, {"otherwise": []}]),
        budget={"time": "1h"},
    )
    runtime.run(flow, run_id="one")
    seen.clear()
    fork = runtime.fork("one", "b", fork_id="two")
    assert seen == [("b", "two", "two", "two"), ("c", "two", "two", "two")]
    assert {one.place: one.done_by for one in fork.steps} == {
        "a": "one", "way": "", "in_branch": "one", "nap": "one", "b": "", "last": "", "c": ""
    }  # fmt: skip
    assert fork.step("a").output == "one"
    again = runtime.fork("two", "c", fork_id="three")
    assert (again.forked_from, again.step("a").done_by, again.step("b").done_by) == ("two", "one", "two")
    for name in ("one", "two", "three"):
        assert runtime.replay(name).ending == "completed", runtime.replay(name).differs
        assert runtime.run(flow, run_id=name).id == name, "a run of that id is the same run, forked or not"
    assert [event.kind for event in runtime.store.events("run:two")] == ["took"]
    with pytest.raises(MisuseError, match="'two' exists already"):
        runtime.fork("one", "b", fork_id="two")


def test_a_fork_asks_its_own_question(runtime):
    """The answer that the first run was given is not the fork's."""
    flow = Workflow("w", step("a", function=ident, inputs={"value": 1}), step("ok", approval="Well?"))
    run = runtime.run(flow, wait=False)
    runtime.approve(run.id, by="ann")
    runtime.attach(run.id)
    fork = runtime.fork(run.id, "ok", wait=False)
    assert fork.state is RunWord.WAITING
    runtime.approve(fork.id, by="bob")
    assert runtime.attach(fork.id).output["by"] == "bob"
    assert runtime.show(run.id).output["by"] == "ann"


def test_a_fork_that_fails_is_resumed_and_undone_like_any_run(runtime):
    """Also what it was given is undone: it stands for it."""
    undone, flaky = [], Flaky()
    flow = Workflow(
        "w",
        step(
            "a", function=ident, inputs={"value": "run.id"}, undo=lambda value, result: undone.append((value, result))
        ),
        step("b", function=flaky),
    )
    run = runtime.run(flow)
    flaky.fails = 1
    fork = runtime.fork(run.id, "b", check=False)
    assert (fork.state, undone) == (RunWord.ROLLED_BACK, [(run.id, run.id)])


def test_a_fork_has_all_its_time_before_it(runtime):
    """A budget of time starts again."""
    flow = Workflow(
        "w",
        step("a", function=ident, inputs={"value": 1}),
        step("b", function=ident, inputs={"value": 2}),
        budget={"time": "1s"},
    )
    run = runtime.run(flow)
    time.sleep(1.1)
    assert runtime.fork(run.id, "b").succeeded


# ---- approval


@pytest.mark.parametrize(
    ("answer", "state", "output"),
    [
        pytest.param({}, "completed", {"approved": True, "by": "ann", "note": None}, id="yes"),
        pytest.param({"deny": True, "note": "too dear"}, "failed", None, id="no"),
    ],
)
def test_a_person_answers(runtime, answer, state, output):
    """The run waits, without anybody at work on it, until somebody says yes or no."""
    flow = Workflow("w", step("ok", approval="Ship it?", show={"order": "inputs.order"}), inputs={"order": "string"})
    run = runtime.run(flow, {"order": "A7"}, wait=False)
    assert run.state is RunWord.WAITING
    (asked,) = run.waiting_for
    assert (asked.question, asked.shown) == ("Ship it?", {"order": "A7"})
    assert runtime.approve(run.id, by="ann", **answer) == "ok"
    ended = runtime.run(flow, {"order": "A7"}, run_id=run.id, check=False)
    assert (ended.state, ended.output) == (state, output)
    if answer:
        assert "was denied by ann: too dear" in ended.failures[0].error.message
    with pytest.raises(MisuseError, match="nothing to approve"):
        runtime.approve(run.id)


def test_silence_is_a_no(runtime):
    """After the timeout; `on_deny: continue` goes on with the answer."""
    flow = Workflow("w", step("ok", approval="Ship it?", timeout="30ms", on_deny="continue"))
    assert runtime.run(flow).output == {"approved": False, "by": None, "note": "no answer came within 30ms"}


def test_several_questions_at_once(runtime):
    """The step has to be named where more than one waits."""
    flow = Workflow("w", step("p", parallel=[step("x", approval="X?"), step("y", approval="Y?")]))
    run = runtime.run(flow, wait=False)
    assert sorted(one.place for one in run.waiting_for) == ["x", "y"]
    with pytest.raises(MisuseError, match="2 steps wait"):
        runtime.approve(run.id)
    runtime.approve(run.id, "x")
    runtime.approve(run.id, "y", deny=True)
    assert runtime.run(flow, run_id=run.id, check=False).state is RunWord.FAILED


def test_a_parked_run_goes_on_in_another_runtime(tmp_path):
    """Nobody has to stay: the question is in the file, and so is the answer."""
    flow = Workflow("w", step("ok", approval="Go?"), step("after", function=ident, inputs={"value": "steps.ok.by"}))
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow, wait=False)
    with Runtime(tmp_path / "runs.db") as runtime:
        assert runtime.show(run.id).state is RunWord.WAITING
        runtime.approve(run.id, by="bob")
        assert runtime.resume(run.id, flow).output == "bob"


# ---- cancelling


def test_cancelling_undoes(runtime):
    """From another thread, while a step is at work."""
    undone, begun = [], threading.Event()

    async def long():
        begun.set()
        await asyncio.sleep(30)

    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda result: undone.append(result) or None),
        step("b", function=long, undo=lambda result: undone.append(("b", result))),
    )
    ended = []
    thread = threading.Thread(target=lambda: ended.append(runtime.run(flow, run_id="r", check=False)))
    thread.start()
    begun.wait(10)
    cancelled = runtime.cancel("r")
    thread.join(20)
    assert undone == [("b", None), 1]
    assert cancelled.state is RunWord.CANCELLED
    assert ended[0].undone == ("b", "a")
    assert not runtime.engine.cancel("r")


@pytest.mark.parametrize("color", ["cancel", "acancel"])
def test_a_run_that_stopped_can_be_given_up(runtime, color):
    """`on_error: stop` leaves what was done in place, to be resumed; or to be undone, by cancelling it."""
    undone = []

    def undo(result):
        undone.append(result)

    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=undo),
        step("b", function=Flaky(fails=9)),
        on_error="stop",
    )
    run = runtime.run(flow, check=False)
    assert (run.state, undone) == (RunWord.FAILED, [])
    cancel = runtime.cancel if color == "cancel" else lambda run_id: asyncio.run(runtime.acancel(run_id))
    assert (cancel(run.id).state, undone) == (RunWord.CANCELLED, [1])
    assert (cancel(run.id).state, undone) == (RunWord.CANCELLED, [1])
    with pytest.raises(CannotGoOnError):
        runtime.resume(run.id)


def test_the_command_to_go_on_names_the_store(runtime, tmp_path):
    """Where it is not the one that the command line looks into by itself."""
    with pytest.raises(RunNotCompletedError, match=r"troth runs resume \S+ --store \S*runs\.db"):
        runtime.run(Workflow("w", step("a", function=Flaky(fails=9))))


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(step("ok", approval="Well?"), id="alone"),
        pytest.param(
            step("both", parallel=[step("ok", approval="Well?"), step("x", function=ident, inputs={"value": 1})]),
            id="beside others",
        ),
        pytest.param(
            step("one", join="any", parallel=[step("ok", approval="Well?"), step("x", function=Flaky(fails=9))]),
            id="in a race",
        ),
    ],
)
def test_a_denied_question_is_asked_again(runtime, asking):
    """By whoever goes on: the no is not heard twice."""
    run = runtime.run(Workflow("w", asking, budget={"time": "1h"}), wait=False)
    runtime.approve(run.id, deny=True)
    assert runtime.attach(run.id, check=False).state is RunWord.FAILED
    assert runtime.resume(run.id, wait=False).state is RunWord.WAITING
    runtime.approve(run.id)
    assert runtime.attach(run.id).succeeded


def test_silence_is_no_answer_for_good(runtime):
    """Whoever goes on waits again, for the whole time."""
    run = runtime.run(Workflow("w", step("ok", approval="Well?", timeout="30ms")), check=False)
    again = runtime.resume(run.id, check=False)
    assert (run.state, again.state) == (RunWord.FAILED, RunWord.FAILED)
    assert again.ended_at - run.ended_at >= 0.03


def test_cancelling_what_nobody_carries_out(tmp_path):
    """A run that waits in the file is undone by whoever cancels it."""
    undone = []
    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda result: undone.append(result) or None),
        step("ok", approval="Go?"),
    )
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow, wait=False)
    with Runtime(tmp_path / "runs.db") as runtime:
        runtime.load(flow)
        assert runtime.cancel(run.id).state is RunWord.CANCELLED
    assert undone == [1]


# ---- killed


KILLED = """
import os, sys, time
from troth.runtime import Workflow, run_workflow, step

def note(name):
    with open("did.txt", "a") as file:
        file.write(name + "\\n")

def charge():
    note("charge")
    return "pay"

def ship(payment):
    if not os.path.exists("second"):
        open("second", "w").close()
        os.kill(os.getpid(), 9)
    note("ship")
    return payment

flow = Workflow("order", step("charge", function=charge), step("ship", function=ship, inputs={"payment": "steps.charge"}))
print(run_workflow(flow, run_id="one").state)
"""


def python(code, folder, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_a_killed_run_goes_on_when_started_again(tmp_path):
    """With its id: what was done is not repeated."""
    assert python(KILLED, tmp_path).returncode == -signal.SIGKILL
    with Runtime(tmp_path / ".troth/runs.db", recover=False) as runtime:
        report = runtime.show("one")
        assert report.state is RunWord.INTERRUPTED, "no killed run is shown as running"
        assert report.step("ship").started_at <= report.last_seen <= time.time()
        seen = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(report.last_seen))
        assert f"its process was last seen at {seen}" in draw(report)
        assert f"Its process was last seen {seen}." in page(report)
        assert runtime.show("one").step("ship").state is StepWord.INTERRUPTED
    done = python(KILLED, tmp_path)
    assert done.stdout == "completed\n", done.stderr
    assert (tmp_path / "did.txt").read_text().split() == ["charge", "ship"]


def test_a_killed_run_goes_on_by_itself(tmp_path):
    """Without an id too, if that is asked for: the next start takes it up, and does its own work beside it."""
    code = KILLED.replace(', run_id="one"', ", recover=True")
    assert python(code, tmp_path).returncode == -signal.SIGKILL
    done = python(code, tmp_path)
    assert done.stdout == "completed\n", done.stderr
    with Runtime(tmp_path / ".troth/runs.db", recover=False) as runtime:
        assert [run.state for run in runtime.runs()] == [RunWord.COMPLETED, RunWord.COMPLETED]
    assert sorted((tmp_path / "did.txt").read_text().split()) == ["charge", "charge", "ship", "ship"]


def test_a_killed_sleep_wakes_at_its_moment(tmp_path):
    """The moment is kept, not the time left."""
    code = """
    import os, threading
    from troth.runtime import Workflow, run_workflow, step
    if not os.path.exists("second"):
        open("second", "w").close()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), 9)).start()
    print(run_workflow(Workflow("w", step("nap", sleep="1s")), run_id="one").step("nap").took)
    """
    began = time.time()
    assert python(code, tmp_path).returncode == -signal.SIGKILL
    took = float(python(code, tmp_path).stdout)
    assert took >= 1.0
    assert took <= time.time() - began


def test_two_processes_on_one_file(tmp_path):
    """The second attaches to the run of the first instead of doing it again."""
    code = """
    import time
    from troth.runtime import Workflow, run_workflow, step
    def work():
        with open("did.txt", "a") as file:
            file.write("x")
        time.sleep(1)
        return 7
    print(run_workflow(Workflow("w", step("a", function=work)), run_id="one").output)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    both = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=60)[0] for one in both] == ["7\n", "7\n"]
    assert Path(tmp_path / "did.txt").read_text() == "x"


def test_an_example_record_is_the_same_from_every_door(tmp_path):
    """Sync and async entries leave the same record but for times, ids and keys."""
    flow = Workflow(
        "w", step("a", function=ident, inputs={"value": 1}), step("b", function=ident, inputs={"value": "steps.a"})
    )

    def shape(run):
        return json.dumps([(one.place, one.kind, one.state, one.inputs, one.output, one.tries) for one in run.steps])

    with Runtime(tmp_path / "runs.db") as runtime:
        shapes = {shape(runtime.run(flow)), shape(asyncio.run(runtime.arun(flow)))}
    assert len(shapes) == 1
