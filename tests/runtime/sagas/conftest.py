"""A driver small enough to be read at a glance: it answers what a decision asks for, and there is no loop anywhere."""

import pytest

from troth.runtime.engine.commands import Step
from troth.runtime.engine.errors import RunCancelledError, StepFailedError


def failed(ask: Step, outcome: str = "failed", type_: str = "ValueError", message: str = "no") -> StepFailedError:
    return StepFailedError(ask.name, "1", {"outcome": outcome, "type": type_, "message": message})


def drive(decision, answer):
    """Send the decision what `answer(ask)` returns, throw what it raises; gives back the result and the asks' names."""
    asked = []
    try:
        ask = next(decision)
        while True:
            asked.append(ask.name)
            try:
                value = answer(ask)
            except (StepFailedError, RunCancelledError) as error:
                ask = decision.throw(error)
            else:
                ask = decision.send(value)
    except StopIteration as done:
        return done.value, asked


@pytest.fixture(name="drive")
def drive_fixture():
    return drive


@pytest.fixture(name="failed")
def failed_fixture():
    return failed
