"""Put edits into a text, and where each line of the result came from."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from troth.analysis.edits.apply import apply
from troth.analysis.findings import Edit
from troth.analysis.mutate.source.text import SourceText

__all__ = ["Spliced", "by_path", "splice"]


@dataclass(frozen=True)
class Spliced:
    """A text before and after its edits."""

    before: SourceText
    after: SourceText
    edits: tuple[Edit, ...]

    @cached_property
    def _shifts(self) -> tuple[list[int], list[int], list[int]]:
        """Per edit: where it starts in the result, where it ends there, and where it ends in the original."""
        starts, ends, olds = [], [], []
        shift = 0
        for edit in self.edits:
            starts.append(edit.start + shift)
            ends.append(edit.start + shift + len(edit.text))
            olds.append(edit.end)
            shift += len(edit.text) - (edit.end - edit.start)
        return starts, ends, olds

    def forward(self, offset: int) -> int:
        """Where the original character at `offset` stands now; if it was replaced, the end of what replaced it."""
        shift = 0
        for edit in self.edits:
            if edit.start > offset:
                break
            if edit.end > offset:
                return edit.start + shift + len(edit.text)
            shift += len(edit.text) - (edit.end - edit.start)
        return offset + shift

    def lines(self, start: int, end: int) -> range:
        """The lines on which the original characters `start` to `end` stand now."""
        last = self.forward(max(end - 1, start))  # not of `end`: what was put in there stands behind the range
        return range(self.after.line_of(self.forward(start)), self.after.line_of(last) + 1)

    def original_line(self, line: int) -> int:
        """The original line that became `line`; for a line that was put in, the line it was put in at."""
        if not 1 <= line <= self.after.line_count():
            return line  # checkers report at line 0, or past the end, what belongs to the file as a whole
        starts, ends, olds = self._shifts
        # The end of the line decides, not its start: text put in before a statement pushes the statement down, and
        # the statement is what findings on the line speak of.
        offset = self.after.line_starts[line - 1] + len(self.after.line(line))
        at = bisect_right(starts, offset) - 1
        if at < 0:
            return self.before.line_of(offset)
        if offset < ends[at]:
            return self.before.line_of(self.edits[at].start)
        return self.before.line_of(olds[at] + offset - ends[at])


def splice(source: SourceText, edits: Iterable[Edit]) -> Spliced:
    """Put `edits` into `source`; equal ones count once, and no two may overlap."""
    ordered = tuple(sorted(set(edits)))
    return Spliced(source, replace(source, text=apply(source.text, ordered)), ordered)


def by_path(edits: Iterable[Edit]) -> dict[str, Sequence[Edit]]:
    """The edits of each file, in order of path."""
    groups: dict[str, list[Edit]] = {}
    for edit in sorted(set(edits)):
        groups.setdefault(edit.path, []).append(edit)
    return dict(groups)
