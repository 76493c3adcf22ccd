"""Show a mutant: the lines before and after, with what stands around them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.source.splice import Spliced, by_path, splice
from troth.analysis.mutate.source.text import SourceText

__all__ = ["excerpt"]

_AROUND = 2


def excerpt(mutant: Mutant, sources: Mapping[str, SourceText]) -> list[str]:
    """Numbered lines, `-` before what goes and `+` before what comes; pieces that lie apart are parted by `...`."""
    rows: list[str] = []
    for path, edits in by_path(mutant.edits).items():
        spliced = splice(sources[path], edits)
        for cluster in _clusters(spliced, edits):
            if rows:
                rows.append("  ...")
            rows.extend(_rows(spliced, cluster))
    return rows


def _clusters(spliced: Spliced, edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Edits so near to each other that their surroundings touch."""
    cluster: list[Edit] = []
    for edit in edits:
        if cluster and spliced.before.line_of(edit.start) - spliced.before.line_of(cluster[-1].end) > 2 * _AROUND:
            yield cluster
            cluster = []
        cluster.append(edit)
    if cluster:
        yield cluster


def _rows(spliced: Spliced, cluster: Sequence[Edit]) -> Iterator[str]:
    before, after = spliced.before, spliced.after
    first, last = before.line_of(cluster[0].start), before.line_of(cluster[-1].end)
    earlier = sum(_growth(before, edit) for edit in spliced.edits if edit.start < cluster[0].start)
    inside = sum(_growth(before, edit) for edit in cluster)
    old = [before.line(number) for number in range(first, last + 1)]
    new = [after.line(number) for number in range(first + earlier, last + earlier + inside + 1)]
    for number in range(max(1, first - _AROUND), first):
        yield f"  {number:>5} | {before.line(number)}"
    yield from _changed(first, first + earlier, old, new)
    for number in range(last + 1, min(before.line_count(), last + _AROUND) + 1):
        yield f"  {number:>5} | {before.line(number)}"


def _changed(old_at: int, new_at: int, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """The changed lines, without those at either end that are the same."""
    same_head = 0
    while same_head < min(len(old), len(new)) and old[same_head] == new[same_head]:
        same_head += 1
    same_tail = 0
    while same_tail < min(len(old), len(new)) - same_head and old[-1 - same_tail] == new[-1 - same_tail]:
        same_tail += 1
    for index in range(same_head):
        yield f"  {old_at + index:>5} | {old[index]}"
    for index in range(same_head, len(old) - same_tail):
        yield f"- {old_at + index:>5} | {old[index]}"
    for index in range(same_head, len(new) - same_tail):
        yield f"+ {new_at + index:>5} | {new[index]}"
    for index in range(len(old) - same_tail, len(old)):
        yield f"  {old_at + index:>5} | {old[index]}"


def _growth(before: SourceText, edit: Edit) -> int:
    """By how many lines the edit makes the file longer."""
    old = before.line_of(edit.end) - before.line_of(edit.start)
    return replace(before, text=edit.text).line_count() - 1 - old
