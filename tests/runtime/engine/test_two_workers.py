"""SIGKILL of a worker at every commit and every effect: a worker on another machine goes on, and nothing is lost."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.runtime.engine.test_crash_matrix import HERE, PLACES, effects_of

from troth.runtime.store import RunState, StepState, open_store
from troth.testing.crash import CrashLab

OFTEN = {  # tried by every run of the suite; the others by `make soak`
    ("run.start.written", 1),
    ("step.begin.before", 3),
    ("step.begin.written", 2),
    ("step.begin.after", 5),
    ("step.effect.after", 4),
    ("signal.take.written", 1),
    ("child.start.after", 1),
    ("run.finish.written", 2),
}


def _case(name, nth):
    return pytest.param(name, nth, id=f"{name} #{nth}", marks=() if (name, nth) in OFTEN else pytest.mark.soak)


@pytest.fixture(scope="module")
def lab():
    with CrashLab("two_workers_program:program", HERE) as lab:
        yield lab


@pytest.fixture(scope="module")
def other():
    """The same program in this process, which is another machine for the worker that dies."""
    sys.path.insert(0, str(HERE))
    try:
        import crash_program

        yield crash_program.on
    finally:
        sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def undisturbed(other, postgres_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return other(postgres_server.address(), folder), effects_of(folder)


def recorded(address):
    """What is settled, as place → answer, and the keys of the steps that are done."""
    with open_store(address) as store:
        steps = [step for run in store.runs() for step in store.steps(run.id) if step.state is StepState.DONE]
    return {step.place: step.result for step in steps}, {step.key for step in steps if step.kind == "step"}


@pytest.mark.parametrize(("failpoint", "nth"), [_case(name, nth) for name, nth in PLACES])
def test_another_machine_goes_on(lab, other, undisturbed, postgres_server, tmp_path, failpoint, nth):
    """It ends the runs with the same results; only what was in flight is done once more."""
    expected, effects_expected = undisturbed
    address = postgres_server.address(heartbeat=0.5, lifetime=4)
    Path(tmp_path, "address").write_text(address)
    assert lab.run(tmp_path, failpoint, nth=nth).was_killed, "the program never came there"
    done, keys = recorded(address)
    before = effects_of(tmp_path)
    assert other(address, tmp_path, 90) == expected
    after = effects_of(tmp_path)
    assert set(after) == set(effects_expected)
    repeated = {key: after[key] - effects_expected[key] for key in after if after[key] != effects_expected[key]}
    assert all(count == 1 for count in repeated.values()), repeated
    assert len(repeated) <= 2, f"more was repeated than two branches can have had in flight: {repeated}"
    assert {key: after[key] for key in keys} == {key: before[key] for key in keys}, "a recorded step was done again"
    final, _ = recorded(address)
    assert {place: final[place] for place in done} == done, "an acknowledged answer was lost or changed"
    with open_store(address) as store:
        states = Counter(run.state for run in store.runs())
        assert set(states) <= {RunState.COMPLETED, RunState.CANCELLED}, states
        audited = [event.seq for event in store.events("audit")]
        assert audited == list(range(1, len([key for key in effects_expected if ":flaky" not in key]) + 3))
