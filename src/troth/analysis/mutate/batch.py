"""Knows which mutants may stand in the copy at the same time."""

from collections.abc import Iterable, Sequence

from troth.analysis.mutate.mutant import Mutant

__all__ = ["batches"]


def batches(mutants: Iterable[Mutant], *, size: int) -> list[Sequence[Mutant]]:
    """Put mutants together so that no two of a batch touch the same function, at most `size` in each.

    A checker then sees many mutants in one run. Each goes into the first batch with room that has nothing of its own,
    and mutants of one file are spread as the order gives it: files are independent of that.
    """
    filled: list[tuple[list[Mutant], set[str]]] = []
    for mutant in mutants:
        for batch, touched in filled:
            if len(batch) < size and not touched & mutant.touches:
                batch.append(mutant)
                touched.update(mutant.touches)
                break
        else:
            filled.append(([mutant], set(mutant.touches)))
    return [batch for batch, _ in filled]
