"""How a run of very many rounds or items is shown: the first, the last, and whatever is not simply done."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from troth.runtime.workflows.record.report import RunReport, StepReport, StepWord

__all__ = ["folded"]

_INDEX = re.compile(r"\[(\d+)\]")
_MOST = 24  # rounds or items of one block that are shown without folding
_FIRST, _LAST = 8, 4
_ODD = 12  # at most so many of those in between that are not simply done


def folded(run: RunReport) -> RunReport:
    """`run` with the rounds and items left out that nobody would read; a row says how many."""
    parts = {place: index for step in run.steps for place, index in _parts(step)}
    sizes = Counter(block for block, _ in {(place[: place.rindex("[")], index) for place, index in parts.items()})
    many = {block: size for block, size in sizes.items() if size > _MOST}
    if not many:
        return run
    odd = _odd(run.steps, many)
    left_out = {
        place
        for place, index in parts.items()
        if (block := place[: place.rindex("[")]) in many and _FIRST <= index < many[block] - _LAST and place not in odd
    }
    return replace(run, steps=tuple(_with_gaps(run.steps, left_out)))


def _parts(step: StepReport) -> Iterator[tuple[str, int]]:
    """Every round or item that `step` lies in, with its number: `l[3].a` lies in `l[3]`. So does its undo."""
    place = step.undoes or step.place
    for index in _INDEX.finditer(place):
        yield place[: index.end()], int(index[1])


def _odd(steps: Iterable[StepReport], many: Iterable[str]) -> set[str]:
    """Rounds and items with something in them that is not simply done; the first few of each block."""
    blocks = set(many)
    places_of: dict[str, dict[str, None]] = {}
    for step in steps:
        if step.state in (StepWord.DONE, StepWord.NOT_TAKEN, StepWord.NOT_REACHED, StepWord.UNDONE):
            continue
        for place, _ in _parts(step):
            if place[: place.rindex("[")] in blocks:
                places_of.setdefault(place[: place.rindex("[")], {})[place] = None
    return {place for places in places_of.values() for place in list(places)[:_ODD]}


def _with_gaps(steps: Sequence[StepReport], left_out: set[str]) -> Iterator[StepReport]:
    gap: list[StepReport] = []
    for step in steps:
        if any(place in left_out for place, _ in _parts(step)):
            if gap and (gap[0].is_undo, gap[0].depth) != (step.is_undo, min(step.depth, gap[0].depth)):
                yield _gap(gap)
                gap = []
            gap.append(step)
            continue
        if gap:
            yield _gap(gap)
            gap = []
        yield step
    if gap:
        yield _gap(gap)


def _gap(steps: Sequence[StepReport]) -> StepReport:
    """One row for many."""
    states = Counter(str(step.state) for step in steps)
    words = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    first, last = steps[0], steps[-1]
    begins, ends = next(_parts(first))[0], list(_parts(last))[-1][0]
    return StepReport(
        f"{'undo ' if first.is_undo else ''}{begins} … {ends}",
        "undo" if first.is_undo else "",
        first.state,
        first.depth,
        words,
        is_block=True,
        is_undo=first.is_undo,
        way=first.way,
    )
