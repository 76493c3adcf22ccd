"""Knows which recorded answers are taken back: those a run ended on, to resume it; those from a step on, to fork it."""

from collections.abc import Sequence

from troth.errors import MisuseError
from troth.runtime.engine.errors import CannotResumeError
from troth.runtime.store import RunRecord, StepRecord, StepState
from troth.runtime.store.records import Place

__all__ = ["to_ask_again", "trunk_step"]


def trunk_step(run_id: str, steps: Sequence[StepRecord], before: int | str) -> int:
    """The number of the trunk step that `before` names."""
    trunk = [step for step in steps if not step.place.branch]
    found = [step.place.seq for step in trunk if before in {step.name, step.place.seq}]
    if len(found) == 1:
        return found[0]
    asked = ", ".join(f"{step.place.seq} {step.name}" for step in trunk) or "none"
    why = "is not one of its steps" if not found else "is the name of several of its steps; give a number"
    raise MisuseError(f"Run {run_id!r} was not forked: {before!r} {why}. Its steps: {asked}.")


def to_ask_again(run: RunRecord, steps: Sequence[StepRecord]) -> list[StepRecord]:
    """The steps whose recorded answer ended the run: taken back, so that the decision asks anew."""
    failed = [step for step in steps if step.state in {StepState.FAILED, StepState.CANCELLED}]
    if not failed:
        return []
    first = failed[0].place
    later = [
        step
        for step in steps
        if step.state is StepState.DONE
        and step.kind == "step"
        and not step.place.branch
        and step.place.seq > _trunk(first)
    ]
    if later:
        raise CannotResumeError(
            f"Run {run.id!r} cannot go on from step {first}, where it stopped: after that, its decision did "
            f"{', '.join(repr(step.name) for step in later)}, which would be repeated.\n"
            f"It was left as it is. `engine.fork({run.id!r}, {_trunk(first)})` begins a new run from there."
        )
    return failed


def _trunk(place: Place) -> int:
    return int(place.branch.split(".")[0]) if place.branch else place.seq
