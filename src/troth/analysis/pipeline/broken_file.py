"""Keep the findings of a file that cannot be parsed for the moment, outside of the parts that were typed in.

They were found in its last whole text. Lines that are the same in both texts are the same text at another place; what
lies between them is broken, and nothing is said of it. More than one place may differ: somebody who has left a bracket
open goes on with an import at the top.
"""

from collections.abc import Iterable, Mapping
from io import StringIO
from itertools import accumulate
from typing import NamedTuple

from troth.analysis.edits.same_lines import same_lines
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.source.lines import decode

__all__ = ["outside_of_broken"]


class _Block(NamedTuple):
    """Lines that both texts have: where they stand in the last whole text, and how far they have moved."""

    first: int  # the first line, counted from 1, and the first line after it
    after: int
    lines: int
    start: int  # the same in characters
    end: int
    characters: int


class _Move:
    """Where the lines and characters of the last whole text are now; those in broken parts are nowhere."""

    def __init__(self, blocks: list[_Block]) -> None:
        self._blocks = blocks

    def line(self, first: int, last: int) -> int | None:
        """By how much these lines have moved; None where a line in them was typed in."""
        for block in self._blocks:
            if block.first <= first and last < block.after:
                return block.lines
        return None

    def edit(self, edit: Edit) -> Edit | None:
        """The same edit in the text of now."""
        for block in self._blocks:
            if block.start <= edit.start and edit.end <= block.end:
                return edit._replace(start=edit.start + block.characters, end=edit.end + block.characters)
        return None


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
    starts = [list(accumulate(map(len, text_lines), initial=0)) for text_lines in (before, after)]
    blocks = []
    for old, new, count in same_lines(before, after):
        start, end = starts[0][old], starts[0][old + count]
        blocks.append(_Block(old + 1, old + count + 1, new - old, start, end, starts[1][new] - start))
    return _Move(blocks)


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
    by = moves[reason.path].line(reason.line, reason.line)
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
