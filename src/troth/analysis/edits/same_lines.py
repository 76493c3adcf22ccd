"""Find the lines that two versions of a text have in common."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["same_lines"]


def same_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int]]:
    """The runs of lines that both texts have, in order: where they begin in each, and how many they are.

    Begin and end of the texts are compared first. Between them, lines that occur once in each text are found again, as
    a patience diff does, with what is the same around them: that takes no longer than to read the texts.
    """
    shorter = min(len(before), len(after))
    head = next((number for number in range(shorter) if before[number] != after[number]), shorter)
    tail = next(
        (number for number in range(shorter - head) if before[-1 - number] != after[-1 - number]), shorter - head
    )
    old_end, new_end = len(before) - tail, len(after) - tail
    runs = [(0, 0, head)]
    old, new = head, head  # where what is still to be compared begins
    for old_line, new_line in _in_order(_unique(before, head, old_end), _unique(after, head, new_end)):
        if old_line < old or new_line < new:
            continue
        first, last = 0, 1
        while (
            old_line - first > old
            and new_line - first > new
            and before[old_line - first - 1] == after[new_line - first - 1]
        ):
            first += 1
        while (
            old_line + last < old_end
            and new_line + last < new_end
            and before[old_line + last] == after[new_line + last]
        ):
            last += 1
        runs.append((old_line - first, new_line - first, first + last))
        old, new = old_line + last, new_line + last
    runs.append((old_end, new_end, tail))
    return runs


def _unique(text_lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """The lines of a part that occur in it once, and where."""
    counts = Counter(text_lines[start:end])
    return {text_lines[number]: number for number in range(start, end) if counts[text_lines[number]] == 1}


def _in_order(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[int, int]]:
    """The most lines of both that come in the same order in both, as pairs of their places."""
    pairs = [(old, after[line]) for line, old in before.items() if line in after]
    ends: list[int] = []  # by length of a chain, the smallest place in the second text at which one ends
    last: list[int] = []  # the pair that it ends with
    earlier: list[int] = []  # by pair, the one before it in its chain
    for number, (_, new) in enumerate(pairs):
        length = bisect_left(ends, new)
        earlier.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [new]
        last[length : length + 1] = [number]
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = earlier[number]
    return chain[::-1]
