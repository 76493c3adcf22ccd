"""What differs: between two runs, and between two moments of one run.

The state of a run at a moment is its inputs and the outputs of the steps that were done by then and not undone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from troth.errors import MisuseError
from troth.runtime.workflows.document.problems import did_you_mean
from troth.runtime.workflows.record.report import RunReport, StepReport

__all__ = ["Difference", "diff", "diff_between", "state_after"]

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two things differ, what each has there, and whether it has anything."""

    path: str
    one: object
    other: object
    is_in_one: bool = True
    is_in_other: bool = True

    def as_json(self) -> dict[str, object]:
        """For machines. Who has nothing there has no key."""
        here = {"one": self.one} if self.is_in_one else {}
        return {"path": self.path, **here, **({"other": self.other} if self.is_in_other else {})}


def diff(one: RunReport, other: RunReport) -> list[Difference]:
    """Every difference between two runs, in the order of the workflow. Times are not compared."""
    return [
        *_compare("workflow", one.workflow, other.workflow),
        *_compare("inputs", dict(one.inputs), dict(other.inputs)),
        *_compare_steps(one, other),
        *_compare("state", str(one.state), str(other.state)),
        *_compare("output", one.output, other.output),
    ]


def diff_between(run: RunReport, since: str | None = None, until: str | None = None) -> list[Difference]:
    """How the state of one run changed from the end of the step `since` to the end of the step `until`.

    Without `since` it is the state before the first step, without `until` the one that there is now.
    """
    before = {"inputs": dict(run.inputs), "steps": {}} if since is None else state_after(run, since)
    after = state_after(run, until)
    return [*_compare("inputs", before["inputs"], after["inputs"]), *_compare("steps", before["steps"], after["steps"])]


def state_after(run: RunReport, place: str | None = None) -> dict[str, dict[str, object]]:
    """The state of a run at the end of the step at `place`; without one, as it is now."""
    ended = sorted((one for one in run.steps if one.ended_at is not None), key=lambda one: one.ended_at or 0.0)
    if place is not None:
        last = _find(run, place)
        ended = [one for one in ended if (one.ended_at or 0.0) <= (last.ended_at or 0.0)]
    steps: dict[str, object] = {}
    for one in ended:
        if one.is_undo and one.error is None:
            steps.pop(one.undoes, None)
        elif not one.is_undo and not one.is_block and one.error is None:
            steps[one.place] = one.output
    return {"inputs": dict(run.inputs), "steps": steps}


def _find(run: RunReport, place: str) -> StepReport:
    for one in run.steps:
        if one.place == place and one.ended_at is not None:
            return one
    ended = [one.place for one in run.steps if one.ended_at is not None]
    raise MisuseError(
        f"The run {run.id!r} has no step {place!r} that has ended. {did_you_mean(place, ended, kind='step')}"
    )


def _compare_steps(one: RunReport, other: RunReport) -> Iterator[Difference]:
    mine = {step.place: step for step in one.steps}
    theirs = {step.place: step for step in other.steps}
    for place in [*mine, *(place for place in theirs if place not in mine)]:
        path = f"steps.{place}"
        left, right = mine.get(place), theirs.get(place)
        if left is None or right is None:
            yield _missing(path, left, right)
            continue
        yield from _compare(f"{path} (state)", str(left.state), str(right.state))
        yield from _compare(path, left.output, right.output)


def _missing(path: str, left: StepReport | None, right: StepReport | None) -> Difference:
    one, other = (None if step is None else str(step.state) for step in (left, right))
    return Difference(f"{path} (state)", one, other, is_in_one=left is not None, is_in_other=right is not None)


def _compare(path: str, one: object, other: object) -> Iterator[Difference]:
    if one is _ABSENT or other is _ABSENT:
        here, there = one is not _ABSENT, other is not _ABSENT
        yield Difference(path, one if here else None, other if there else None, is_in_one=here, is_in_other=there)
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in [*one, *(key for key in other if key not in one)]:
            yield from _compare(f"{path}.{key}", one.get(key, _ABSENT), other.get(key, _ABSENT))
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            left = one[index] if index < len(one) else _ABSENT
            right = other[index] if index < len(other) else _ABSENT
            yield from _compare(f"{path}[{index}]", left, right)
    elif one != other or type(one) is not type(other):
        yield Difference(path, one, other)
