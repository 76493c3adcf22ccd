"""A step whose first attempt was cut off and whose second raised: its effect may be there, so it is undone."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from troth.runtime import Retry, Runtime, Saga, SagaState, Workflow, step


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


class Charge:
    """The first attempts take too long, or raise; the last raises "already charged"."""

    def __init__(self, *attempts):
        self.attempts = list(attempts)

    def __call__(self):
        how = self.attempts.pop(0)
        if how == "slow":
            time.sleep(1.5)
        elif how == "coroutine":
            return self.later()
        raise ValueError("already charged")

    async def later(self):
        raise ValueError("already charged")


@pytest.mark.parametrize(
    ("attempts", "undone"),
    [
        pytest.param(["raise", "raise"], False, id="both raised: it did not happen"),
        pytest.param(["slow", "raise"], True, id="the first ran out of time"),
        pytest.param(["raise", "slow"], True, id="the last ran out of time"),
        pytest.param(["raise", "coroutine"], False, id="raised, the second time when awaited"),
        pytest.param(["slow", "coroutine"], True, id="ran out of time, then raised when awaited"),
        pytest.param(["slow", "raise", "raise"], True, id="long ago"),
    ],
)
@pytest.mark.parametrize("form", ["saga", "workflow"])
def test_what_came_before_the_last_attempt_counts(runtime, form, attempts, undone):
    """As a saga and as a workflow; a replay decides the same."""
    taken_back = []

    def undo():
        taken_back.append(True)

    if form == "saga":
        retry = Retry(attempts=len(attempts), delay=0.001)
        saga = Saga("s").step("a", do=Charge(*attempts), undo=undo, retry=retry, timeout=1.0)
        state = runtime.run_saga(saga, check=False).state
        assert state is (SagaState.ROLLED_BACK if undone else SagaState.FAILED)
    else:
        retry = {"attempts": len(attempts), "delay": "1ms"}
        flow = Workflow("w", step("a", function=Charge(*attempts), undo=undo, retry=retry, timeout="1s"))
        run = runtime.run(flow, check=False)
        assert not runtime.replay(run.id).differs
    assert bool(taken_back) is undone


@pytest.mark.parametrize(
    ("path", "given"),
    [
        pytest.param("result.payment", None, id="a part of the result"),
        pytest.param("steps.b.payment[0]", None, id="the same by its name"),
        pytest.param({"text": "refund ${result.payment}"}, None, id="a text with it"),
        pytest.param("steps.a", "a", id="something else"),
    ],
)
def test_what_an_undo_is_given_of_an_unknown_outcome(runtime, path, given):
    """Null, where it would be a part of an output that nobody knows; and everything before it is undone too."""
    seen = []

    def note(x):
        seen.append(x)

    def slow():
        time.sleep(0.3)
        return {"payment": [1]}

    flow = Workflow(
        "w",
        step("a", function=lambda: "a", undo=lambda: seen.append("undo a")),
        step("b", function=slow, timeout="50ms", undo={"function": note, "inputs": {"x": path}}),
    )
    run = runtime.run(flow, check=False)
    assert (str(run.state), seen) == ("rolled back", [given, "undo a"])
    assert not runtime.replay(run.id).differs


def test_an_undo_whose_inputs_are_nowhere_does_not_keep_the_others_from_being_undone(runtime):
    """It is told as an undo that failed."""
    seen = []
    flow = Workflow(
        "w",
        step("a", function=lambda: "a", undo=lambda: seen.append("undo a")),
        step("b", function=lambda: {"paid": 1}, undo={"function": print, "inputs": {"sep": "result.payment"}}),
        step("c", function=lambda: 1 / 0),
    )
    run = runtime.run(flow, check=False)
    assert (str(run.state), seen) == ("rollback incomplete", ["undo a"])
    assert "`result` has no `payment`" in run.not_undone[0].error.message


def test_a_crash_in_flight_counts(tmp_path):
    """Killed in the first attempt; the second, after the restart, raises."""
    code = """
    import os
    from troth.runtime import Saga, Runtime
    def charge():
        if not os.path.exists("charged"):
            open("charged", "w").close()
            os.kill(os.getpid(), 9)
        raise ValueError("already charged")
    def refund():
        os.remove("charged")
    with Runtime("runs.db") as runtime:
        outcome = runtime.run_saga(Saga("s").step("charge", do=charge, undo=refund), run_id="one", check=False)
    print(outcome.state, outcome.undone)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert first.returncode == -signal.SIGKILL
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert second.stdout == "rolled back ('charge',)\n", second.stderr
    assert not (tmp_path / "charged").exists()
