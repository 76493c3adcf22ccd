"""SIGKILL at every commit, and at every effect: nothing acknowledged is lost, nothing recorded is done again."""

from collections import Counter
from pathlib import Path

import pytest

from troth.runtime.engine import commit_points
from troth.runtime.engine.invoke.invocation import STEP_EFFECT
from troth.runtime.store import RunState, SqliteStore, StepState
from troth.runtime.store.sqlite.store import STORE_MIGRATE
from troth.testing.crash import CrashLab

HERE = Path(__file__).parent
SEVERAL = {"step.begin": range(2, 8), "step.effect": range(2, 6), "run.finish": range(2, 4), "branch.end": range(2, 3)}
OF_THIS_ENGINE = [name for name in commit_points.__all__ if name != "RUN_RECORD"]  # which runs on Temporal alone reach
POINTS = [STORE_MIGRATE, *(getattr(commit_points, name) for name in OF_THIS_ENGINE), STEP_EFFECT]
PLACES = [(name, nth) for point in POINTS for name in point.failpoints for nth in (1, *SEVERAL.get(point.name, ()))]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("crash_program:program", HERE) as lab:
        yield lab


@pytest.fixture(scope="module")
def undisturbed(lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    trial = lab.run(folder)
    effects = Counter((folder / "effects").read_text().splitlines())
    return trial.answer, effects


def recorded(folder):
    """What is settled, as place → answer, and the keys of the steps that are done."""
    with SqliteStore(folder / "troth.db") as store:
        steps = [step for run in store.runs() for step in store.steps(run.id) if step.state is StepState.DONE]
    return {step.place: step.result for step in steps}, {step.key for step in steps if step.kind == "step"}


def effects_of(folder):
    path = folder / "effects"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*place, id=f"{place[0]} #{place[1]}") for place in PLACES])
def test_killed_there_it_goes_on(lab, undisturbed, tmp_path, failpoint, nth):
    """The same program, killed once at that place and started again, gives the same results with the same effects."""
    expected, effects_expected = undisturbed
    assert lab.run(tmp_path, failpoint, nth=nth).was_killed, "the program never came there"
    done, keys = recorded(tmp_path)
    before = effects_of(tmp_path)
    again = lab.run(tmp_path)
    assert again.answer == expected
    after = effects_of(tmp_path)
    assert set(after) == set(effects_expected)
    repeated = {key: after[key] - effects_expected[key] for key in after if after[key] != effects_expected[key]}
    assert all(count == 1 for count in repeated.values()), repeated
    assert len(repeated) <= 2, f"more was repeated than two branches can have had in flight: {repeated}"
    assert {key: after[key] for key in keys} == {key: before[key] for key in keys}, "a recorded step was done again"
    final, _ = recorded(tmp_path)
    assert {place: final[place] for place in done} == done, "an acknowledged answer was lost or changed"
    with SqliteStore(tmp_path / "troth.db") as store:
        assert {run.state for run in store.runs()} <= {RunState.COMPLETED, RunState.CANCELLED}
        audited = [event.payload for event in store.events("audit")]
        assert len(audited) == len([key for key in effects_expected if ":flaky" not in key]) + 2
