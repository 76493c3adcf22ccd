"""Count verdicts: in all, by operator, by shape."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.result import COUNTED, MutantVerdict, Result

__all__ = ["ScoreTally", "tally", "tally_by"]


@dataclass(frozen=True, slots=True)
class ScoreTally:
    """How many mutants met which end. Only caught, elsewhere and survived are counted in `n` and the shares."""

    verdicts: Mapping[MutantVerdict, int]

    @property
    def n(self) -> int:
        """How many mutants say something about the checker or the tests."""
        return sum(self.verdicts.get(verdict, 0) for verdict in COUNTED)

    @property
    def caught(self) -> int:
        """How many were caught (by a checker: on their line)."""
        return self.verdicts.get(MutantVerdict.CAUGHT, 0)

    @property
    def in_function(self) -> int:
        """How many were caught on their line or elsewhere in their function."""
        return self.caught + self.verdicts.get(MutantVerdict.ELSEWHERE, 0)

    @property
    def percent(self) -> float:
        """The share that was caught, in percent; 0 where nothing was counted."""
        return 100 * self.caught / self.n if self.n else 0.0

    @property
    def percent_in_function(self) -> float:
        """The share caught on the line or elsewhere in the function, in percent."""
        return 100 * self.in_function / self.n if self.n else 0.0


def tally(results: Iterable[Result]) -> ScoreTally:
    """Count all results."""
    return ScoreTally(Counter(result.verdict for result in results))


def tally_by(
    attribute: str, order: Sequence[str], mutants: Iterable[Mutant], results: Mapping[str, Result]
) -> dict[str, ScoreTally]:
    """Count by an attribute of the mutants (`shape`, `operator`), in the given order; empty groups are left out."""
    groups: dict[str, list[Result]] = {name: [] for name in order}
    for mutant in mutants:
        if mutant.key in results:
            groups.setdefault(getattr(mutant, attribute), []).append(results[mutant.key])
    return {name: tally(group) for name, group in groups.items() if group}
