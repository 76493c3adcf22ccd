"""A file's text: how it is decoded, and where in it a line and column of the syntax tree are."""

import io
from itertools import accumulate

from troth.analysis.source import encoding

__all__ = ["DecodedText", "decode"]


def decode(data: bytes) -> str:
    """The text of a Python file, by its byte order mark and its coding line. Raises as Python would.

    Line ends stay as they are: offsets into this text are offsets into the file.
    """
    return encoding.decode(data).text


class DecodedText:
    """A decoded file; its lines are found when somebody asks for one: many are only searched for a word."""

    __slots__ = ("_split_lines", "value")

    def __init__(self, value: str) -> None:
        self.value = value
        self._split_lines: tuple[list[str], list[int]] | None = None

    def _lines_and_starts(self) -> tuple[list[str], list[int]]:
        if self._split_lines is None:
            lines = _split(self.value)
            self._split_lines = lines, list(accumulate(map(len, lines), initial=0))
        return self._split_lines

    def column(self, line: int, byte_column: int) -> int:
        """The column in characters, from 0, of a column in UTF-8 bytes."""
        lines, _ = self._lines_and_starts()
        if line > len(lines):
            return byte_column
        text = lines[line - 1]
        if line == 1 and text.startswith("\ufeff"):
            return len(text[1:].encode()[:byte_column].decode(errors="ignore")) + 1
        if text.isascii():
            return byte_column
        return len(text.encode()[:byte_column].decode(errors="ignore"))

    def offset(self, line: int, byte_column: int) -> int:
        """The place in the whole text, in characters from 0."""
        _, starts = self._lines_and_starts()
        return starts[min(line, len(starts)) - 1] + self.column(line, byte_column)

    def cut(self, line: int, column: int, end_line: int, end_column: int) -> str:
        """The text between two places."""
        return self.value[self.offset(line, column) : self.offset(end_line, end_column)]

    def lines(self, first: int, last: int) -> str:
        """The lines from `first` to `last`, both with their ends."""
        _, starts = self._lines_and_starts()
        return self.value[starts[min(first, len(starts)) - 1] : starts[min(last, len(starts) - 1)]]

    def line(self, number: int) -> str:
        """One line with its end, "" beyond the last."""
        lines, _ = self._lines_and_starts()
        return lines[number - 1] if 0 < number <= len(lines) else ""


def _split(value: str) -> list[str]:
    # Only these three end a line for Python; str.splitlines knows more (form feed, U+2028) and would miscount.
    if "\r" not in value:
        return [f"{line}\n" for line in value.split("\n")]
    return list(io.StringIO(value, newline=""))
