"""Turn places in a text into positions of the protocol, and back.

The protocol counts columns in the units of an encoding that client and server agree on, mostly UTF-16; analysis counts
characters.
"""

from bisect import bisect_right
from collections.abc import Sequence
from io import StringIO
from itertools import accumulate

from lsprotocol.types import Position, PositionEncodingKind, Range

from troth.analysis.findings import Span

__all__ = ["Positions", "split"]

UTF16 = PositionEncodingKind.Utf16.value


def split(text: str) -> list[str]:
    """The lines of a text with their ends, as Python and the protocol end them; the last one has no end.

    `str.splitlines` also ends lines at form feeds and the like, and would miscount.
    """
    lines = list(StringIO(text, newline=""))
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines


def units(text: str, encoding: str) -> int:
    """How long a text is in the units of an encoding."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def characters(text: str, count: int, encoding: str) -> int:
    """How many characters of a text its first `count` units are; a count inside of a character means its start."""
    if text.isascii() or encoding == "utf-32":
        return min(count, len(text))
    passed = 0
    for number, character in enumerate(text):
        passed += units(character, encoding)
        if passed > count:
            return number
    return len(text)


class Positions:
    """The positions of one text."""

    def __init__(self, lines: Sequence[str], encoding: str = UTF16) -> None:
        self._lines = lines
        self._encoding = encoding
        self._starts = list(accumulate(map(len, lines), initial=0))

    def position(self, offset: int) -> Position:
        """The position of a character, counted from 0 through the text."""
        line = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return Position(line, units(self._lines[line][: offset - self._starts[line]], self._encoding))

    def offset(self, position: Position) -> int:
        """The character at a position; one beyond the end of its line, or of the text, means that end."""
        if position.line >= len(self._lines):
            return self._starts[-1]
        line = self._lines[position.line]
        return self._starts[position.line] + characters(_body(line), position.character, self._encoding)

    def place(self, position: Position) -> tuple[int, int]:
        """Line and column of a position as facts count them: lines from 1, columns in UTF-8 bytes from 0."""
        line = _body(self._lines[position.line]) if position.line < len(self._lines) else ""
        before = line[: characters(line, position.character, self._encoding)]
        return position.line + 1, len(before.encode("utf-8", "surrogatepass"))

    def at(self, line: int, byte_column: int) -> Position:
        """The position of a place as facts count it."""
        text = self._line(line)
        before = text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore")
        return Position(max(line - 1, 0), units(before, self._encoding))

    def range_of(self, span: Span) -> Range:
        """The range of a finding; one without an extent is drawn to the end of its line."""
        start = self._of(span.line, span.column)
        end = self._of(span.end_line, span.end_column)
        if (end.line, end.character) <= (start.line, start.character):
            end = Position(start.line, max(units(_body(self._line(span.line)), self._encoding), start.character))
        return Range(start, end)

    def line_range(self, line: int) -> Range:
        """A line from its first letter to its end; lines count from 1."""
        text = _body(self._line(line))
        number = max(line - 1, 0)
        indent = len(text) - len(text.lstrip())
        return Range(
            Position(number, units(text[:indent], self._encoding)), Position(number, units(text, self._encoding))
        )

    def range(self, start: int, end: int) -> Range:
        """The range between two characters, counted from 0 through the text."""
        return Range(self.position(start), self.position(end))

    def _of(self, line: int, column: int) -> Position:
        return Position(max(line - 1, 0), units(_body(self._line(line))[: max(column - 1, 0)], self._encoding))

    def _line(self, line: int) -> str:
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""


def _body(line: str) -> str:
    return line.rstrip("\r\n")
