"""SIGKILL at the commits and effects of workflows and sagas: started again, every run finishes or is undone."""

from collections import Counter
from pathlib import Path

import pytest

from troth.runtime.store import SqliteStore, StepState
from troth.testing.crash import CrashLab

HERE = Path(__file__).parent
ARRIVALS = {
    "run.start": 3,
    "step.begin": 24,
    "step.effect": 22,
    "branch.end": 6,
    "wait.begin": 1,
    "run.finish": 3,
}
PLACES = [
    (f"{point}.{side}", nth)
    for point, count in ARRIVALS.items()
    for side in (("before", "after") if point == "step.effect" else ("before", "written", "after"))
    for nth in range(1, count + 1)
]
SHORT = [place for place in PLACES if place[1] in (1, 2, 5, 9, 14, 17, 21)]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("crash_program:program", HERE) as opened:
        yield opened


@pytest.fixture(scope="module")
def undisturbed(lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return lab.run(folder).answer, effects_of(folder)


def effects_of(folder):
    path = folder / "effects"
    return Counter(path.read_text(encoding="utf-8").splitlines()) if path.exists() else Counter()


def world_of(effects):
    """What is left when the undos have had their say, run by run."""
    done, undone = set(), set()
    for line in effects:
        key, what, name = line.split(" ")[0], line.split(" ")[-2], line.split(" ")[-1]
        (done if what == "do" else undone).add((key.split(":")[0], name))
    return done - undone


def done_keys(folder):
    path = folder / "troth.db"
    if not path.exists():
        return set()
    with SqliteStore(path) as store:
        rows = [row for run in store.runs() for row in store.steps(run.id)]
    return {row.key for row in rows if row.kind == "step" and row.state is StepState.DONE}


def check(lab, undisturbed, folder, failpoint, nth):
    answer, effects = undisturbed
    if not lab.run(folder, failpoint, nth=nth).was_killed:
        pytest.skip("the program does not come there so often")
    keys, before = done_keys(folder), effects_of(folder)
    assert lab.run(folder).answer == answer, "it neither finished nor was it undone as it would have been"
    after = effects_of(folder)
    assert set(after) == set(effects)
    repeated = {line for line in after if after[line] > effects[line]}
    assert all(after[line] <= effects[line] + 1 for line in repeated)
    assert len(repeated) <= 2, f"only what was in flight may happen twice: {repeated}"
    kept = {line for line in before if line.split(" ")[0] in keys}
    assert {line: after[line] for line in kept} == {line: before[line] for line in kept}, "a recorded step was repeated"
    assert world_of(after) == world_of(effects)


@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*one, id=f"{one[0]} #{one[1]}") for one in SHORT])
def test_killed_there_it_finishes_or_is_undone(lab, undisturbed, tmp_path, failpoint, nth):
    """The same answers, the same world, nothing recorded done twice, every undo once."""
    check(lab, undisturbed, tmp_path, failpoint, nth)


@pytest.mark.soak
@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*one, id=f"{one[0]} #{one[1]}") for one in PLACES])
def test_killed_anywhere(lab, undisturbed, tmp_path, failpoint, nth):
    """Every arrival at every commit and effect."""
    check(lab, undisturbed, tmp_path, failpoint, nth)
