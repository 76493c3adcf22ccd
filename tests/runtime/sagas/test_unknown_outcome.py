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
            time.sleep(0.3)
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
        saga = Saga("s").step("a", do=Charge(*attempts), undo=undo, retry=retry, timeout=0.1)
        assert runtime.run_saga(saga, check=False).state is SagaState.ROLLED_BACK
    else:
        retry = {"attempts": len(attempts), "delay": "1ms"}
        flow = Workflow("w", step("a", function=Charge(*attempts), undo=undo, retry=retry, timeout="100ms"))
        run = runtime.run(flow, check=False)
        assert not runtime.replay(run.id).differs
    assert bool(taken_back) is undone


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
