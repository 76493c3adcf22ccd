"""Decide whether what a checker newly says is about a given mutant."""

import re
from collections.abc import Mapping, Sequence

from troth.analysis.mutate.checkers.checker import Checker
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator
from troth.analysis.mutate.result import MutantVerdict, Result
from troth.analysis.mutate.source.splice import Spliced

__all__ = ["judge"]


def judge(
    mutant: Mutant, new: Sequence[Sighting], changed: Mapping[str, Spliced], operator: Operator, checker: Checker
) -> Result:
    """Caught is a new finding of the right kind on the mutant's line; one elsewhere in the function is told apart.

    What was said on the line but is of another kind is kept with a survivor, because that is what the user would have
    read there.
    """
    spliced = changed[mutant.path]
    marked = {line for start, end in mutant.marks for line in spliced.lines(start, end)}
    home = spliced.lines(*mutant.home)
    at_home = [sighting for sighting in new if sighting.path == mutant.path and sighting.line in home]
    right = [sighting for sighting in at_home if _is_right(sighting, operator, checker)]
    on_line = [sighting for sighting in right if sighting.line in marked]
    if on_line:
        return Result(mutant.key, MutantVerdict.CAUGHT, _as_lines(on_line))
    if right:
        return Result(mutant.key, MutantVerdict.ELSEWHERE, _as_lines(right))
    return Result(
        mutant.key, MutantVerdict.SURVIVED, _as_lines([sighting for sighting in at_home if sighting.line in marked])
    )


def _is_right(sighting: Sighting, operator: Operator, checker: Checker) -> bool:
    if checker.name:
        kind = operator.kinds.get(checker.name)
        return kind is not None and kind.covers(sighting.code, sighting.message)
    return not checker.kind or re.search(checker.kind, f"{sighting.code} {sighting.message}") is not None


def _as_lines(sightings: Sequence[Sighting]) -> tuple[str, ...]:
    return tuple(f"line {sighting.line}: {f'{sighting.code} {sighting.message}'.strip()}" for sighting in sightings)
