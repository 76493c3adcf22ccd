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
        first = {"one": self.one} if self.is_in_one else {}
        return {"path": self.path, **first, **({"other": self.other} if self.is_in_other else {})}


def diff(first: RunReport, second: RunReport) -> list[Difference]:
    """Every difference between two runs, in the order of the workflow. Times are not compared."""
    return [
        *_compare("workflow", first.workflow, second.workflow),
        *_compare("inputs", dict(first.inputs), dict(second.inputs)),
        *_compare_steps(first, second),
        *_compare("state", str(first.state), str(second.state)),
        *_compare("output", first.output, second.output),
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
    ended = sorted((step for step in run.steps if step.ended_at is not None), key=lambda step: step.ended_at or 0.0)
    if place is not None:
        last = _find(run, place)
        ended = [step for step in ended if (step.ended_at or 0.0) <= (last.ended_at or 0.0)]
    steps: dict[str, object] = {}
    for step in ended:
        if step.is_undo and step.error is None:
            steps.pop(step.undoes, None)
        elif not step.is_undo and not step.is_block and step.error is None:
            steps[step.place] = step.output
    return {"inputs": dict(run.inputs), "steps": steps}


def _find(run: RunReport, place: str) -> StepReport:
    for step in run.steps:
        if step.place == place and step.ended_at is not None:
            return step
    ended = [step.place for step in run.steps if step.ended_at is not None]
    raise MisuseError(
        f"The run {run.id!r} has no step {place!r} that has ended. {did_you_mean(place, ended, kind='step')}"
    )


def _compare_steps(first: RunReport, second: RunReport) -> Iterator[Difference]:
    mine = {step.place: step for step in first.steps}
    theirs = {step.place: step for step in second.steps}
    for place in [*mine, *(place for place in theirs if place not in mine)]:
        path = f"steps.{place}"
        before, after = mine.get(place), theirs.get(place)
        if before is None or after is None:
            yield _missing(path, before, after)
            continue
        yield from _compare(f"{path} (state)", str(before.state), str(after.state))
        yield from _compare(path, before.output, after.output)


def _missing(path: str, before: StepReport | None, after: StepReport | None) -> Difference:
    first, second = (None if step is None else str(step.state) for step in (before, after))
    return Difference(f"{path} (state)", first, second, is_in_one=before is not None, is_in_other=after is not None)


def _compare(path: str, first: object, second: object) -> Iterator[Difference]:
    if first is _ABSENT or second is _ABSENT:
        in_first, in_second = first is not _ABSENT, second is not _ABSENT
        yield Difference(
            path, first if in_first else None, second if in_second else None, is_in_one=in_first, is_in_other=in_second
        )
    elif isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in [*first, *(key for key in second if key not in first)]:
            yield from _compare(f"{path}.{key}", first.get(key, _ABSENT), second.get(key, _ABSENT))
    elif isinstance(first, list) and isinstance(second, list):
        for index in range(max(len(first), len(second))):
            before = first[index] if index < len(first) else _ABSENT
            after = second[index] if index < len(second) else _ABSENT
            yield from _compare(f"{path}[{index}]", before, after)
    elif first != second or type(first) is not type(second):
        yield Difference(path, first, second)
