"""Knows what differs between two runs: their inputs, the state each step left, and the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from troth.runtime.workflows.report import RunReport, StepReport

__all__ = ["Difference", "diff"]

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two runs differ, and what each has there; `is_in_one` and `is_in_other` say who has anything."""

    path: str
    one: object
    other: object
    is_in_one: bool = True
    is_in_other: bool = True


def diff(one: RunReport, other: RunReport) -> list[Difference]:
    """Every difference between two runs, in the order of the workflow. Times are not compared."""
    return [
        *_compare("workflow", one.workflow, other.workflow),
        *_compare("inputs", dict(one.inputs), dict(other.inputs)),
        *_compare_steps(one, other),
        *_compare("state", str(one.state), str(other.state)),
        *_compare("output", one.output, other.output),
    ]


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
