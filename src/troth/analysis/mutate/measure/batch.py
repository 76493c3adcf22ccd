"""Find which mutants may stand in the copy at the same time."""

from collections import Counter
from collections.abc import Sequence

from troth.analysis.mutate.mutant import Mutant

__all__ = ["batches"]


class _Batch:
    """One batch while it is filled."""

    def __init__(self) -> None:
        self.mutants: list[Mutant] = []
        self.touched: set[str] = set()
        self.names: Counter[str] = Counter()

    def add(self, mutant: Mutant) -> None:
        self.mutants.append(mutant)
        self.touched |= mutant.touches
        self.names[_name(mutant)] += 1


def batches(mutants: Sequence[Mutant], *, size: int) -> list[Sequence[Mutant]]:
    """Put mutants together so that no two of a batch touch the same function, at most `size` in each.

    A checker then sees many mutants in one run. Mutants that lose a call of the same name are spread over the batches,
    since a checker may know the color of a method only from the other places that await it.
    """
    filled = [_Batch() for _ in range(-(-len(mutants) // size))]
    for mutant in mutants:
        open_ = [batch for batch in filled if len(batch.mutants) < size and not batch.touched & mutant.touches]
        if not open_:
            filled.append(_Batch())
            open_ = filled[-1:]
        min(open_, key=lambda batch: (batch.names[_name(mutant)], len(batch.mutants))).add(mutant)
    return [batch.mutants for batch in filled if batch.mutants]


def _name(mutant: Mutant) -> str:
    return mutant.subject.rpartition(".")[2]
