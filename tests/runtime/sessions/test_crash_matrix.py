"""SIGKILL at every commit of sessions: what was acknowledged holds, the chain is valid, a kill under way is finished."""

from collections import Counter
from pathlib import Path

import pytest

from troth.runtime.sessions import commit_points
from troth.testing.crash import CrashLab

POINTS = [getattr(commit_points, name) for name in commit_points.__all__]
QUICK = {*(point.after for point in POINTS), "session.kill.written", "session.kill_answer.written"}
PLACES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for point in POINTS for name in point.failpoints
]
QUICK_FROM_A_LOOP = {"session.kill.written", "session.answer.after", "session.end.after", "session.tool.written"}
FROM_A_LOOP = [
    pytest.param(name, marks=() if name in QUICK_FROM_A_LOOP else pytest.mark.soak)
    for point in POINTS
    for name in point.failpoints
]


@pytest.fixture(scope="module")
def loop_lab():
    with CrashLab("session_crash_program:aprogram", Path(__file__).parent) as lab:
        yield lab


@pytest.fixture(scope="module")
def lab():
    with CrashLab("session_crash_program:program", Path(__file__).parent) as lab:
        yield lab


@pytest.mark.parametrize("failpoint", [*PLACES, "step.begin.after", "run.finish.written"])
def test_killed_there_it_goes_on(lab, tmp_path, failpoint):
    """The same program, killed once and started again, comes to the same end; no undo happens twice."""
    check(lab, tmp_path, failpoint)


@pytest.mark.parametrize("failpoint", FROM_A_LOOP)
def test_called_from_a_loop(loop_lab, tmp_path, failpoint):
    """The same where the calls are awaited on a loop."""
    check(loop_lab, tmp_path, failpoint)


def check(lab, tmp_path, failpoint):
    assert lab.run(tmp_path, failpoint).was_killed, "the program never came there"
    answer = lab.run(tmp_path).answer
    assert answer == {
        "state": "archived",
        "verdict": "valid",
        "kill": True,
        "agents": {"a": "killed", "b": "present"},
    }
    path = tmp_path / "effects"
    effects = Counter(path.read_text().splitlines()) if path.exists() else Counter()
    undone = {name: count for name, count in effects.items() if name.startswith("undo") and count > 1}
    assert undone == {}
