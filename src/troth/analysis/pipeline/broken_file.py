"""Keep the findings of a file that cannot be parsed for the moment, outside of the part that was typed in.

They were found in its last whole text. What stands before the first and after the last line that differs is the same
text at another place; what lies between is the broken part, and nothing is said of it.
"""

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import NamedTuple

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.source.lines import decode

__all__ = ["outside_of_broken"]


class _Move(NamedTuple):
    """Where the lines and characters of the last whole text are now: as before, further on, or in the broken part."""

    first: int  # the broken part in the last whole text: its first line, and the first line after it
    after: int
    lines: int  # by how many lines what follows has moved
    start: int  # the same in characters
    end: int
    characters: int

    def line(self, first: int, last: int | None = None) -> int | None:
        """By how much the lines have moved; None where one is in the broken part."""
        if (last or first) < self.first:
            return 0
        return self.lines if first >= self.after else None

    def edit(self, edit: Edit) -> Edit | None:
        """The same edit in the text of now."""
        if edit.end <= self.start:
            return edit
        if edit.start < self.end:
            return None
        return edit._replace(start=edit.start + self.characters, end=edit.end + self.characters)


def outside_of_broken(findings: Iterable[Finding], broken: Mapping[str, tuple[bytes, bytes | None]]) -> list[Finding]:
    """The findings at their places of now; `broken` are the last whole texts and the texts of now, by path."""
    moves = {
        path: _moved(decode(whole), decode(now))
        for path, (whole, now) in broken.items()
        if now is not None and not path.endswith(".ipynb")
    }
    return [moved for finding in findings if (moved := _placed(finding, moves, broken)) is not None]


def _moved(whole: str, now: str) -> _Move:
    before, after = (list(StringIO(text, newline="")) for text in (whole, now))  # as Python ends lines
    shorter = min(len(before), len(after))
    head = next((number for number in range(shorter) if before[number] != after[number]), shorter)
    tail = next(
        (number for number in range(shorter - head) if before[-1 - number] != after[-1 - number]), shorter - head
    )
    start = sum(map(len, before[:head]))
    end = len(whole) - sum(map(len, before[len(before) - tail :]))
    return _Move(head + 1, len(before) - tail + 1, len(after) - len(before), start, end, len(now) - len(whole))


def _placed(finding: Finding, moves: Mapping[str, _Move], broken: Mapping[str, object]) -> Finding | None:
    if broken.keys().isdisjoint(finding.paths):
        return finding
    span = finding.span
    if span.path in moves:
        by = moves[span.path].line(span.line, span.end_line)
        if by is None:
            return None
        span = span._replace(line=span.line + by, end_line=span.end_line + by)
    elif span.path in broken:
        return None
    reasons = tuple(_reason(reason, moves) for reason in finding.reasons)
    return finding._replace(span=span, reasons=reasons, fix=_fix(finding.fix, moves, broken))


def _reason(reason: Reason, moves: Mapping[str, _Move]) -> Reason:
    if reason.path not in moves or reason.path is None or reason.line is None:
        return reason
    by = moves[reason.path].line(reason.line)
    return Reason(reason.text) if by is None else reason._replace(line=reason.line + by)


def _fix(fix: Fix | None, moves: Mapping[str, _Move], broken: Mapping[str, object]) -> Fix | None:
    if fix is None:
        return None
    edits = []
    for edit in fix.edits:
        moved = moves[edit.path].edit(edit) if edit.path in moves else (None if edit.path in broken else edit)
        if moved is None:
            return None
        edits.append(moved)
    return fix._replace(edits=tuple(edits))
