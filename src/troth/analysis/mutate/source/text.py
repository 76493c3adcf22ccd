"""A file's text exactly as it lies on disk: its encoding, its lines and how they end.

Mutants are text edits, and undoing one has to give back the original bytes. So the text is decoded without touching
line ends, and a file whose bytes do not survive decoding and encoding is refused rather than rewritten a little.
"""

import ast
import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from troth.analysis.source.encoding import Decoded
from troth.analysis.source.encoding import decode as decode_bytes

__all__ = ["SourceText", "UnreadableError", "decode"]

_MARK = "\ufeff"
# What Python's own tokenizer takes for a line end. `str.splitlines` knows more (form feeds, U+2028) and would put
# every later offset on the wrong line.
_LINE_END = re.compile(r"\r\n|\r|\n")


class UnreadableError(Exception):
    """The file is not text that Python can read; the message says why."""


@dataclass(frozen=True)
class SourceText:
    """One file of the project; `path` is relative to its root, with forward slashes on every system."""

    path: str
    text: str
    original: Decoded

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset of the first character of each line, in order."""
        return (0, *(end.end() for end in _LINE_END.finditer(self.text)))

    @cached_property
    def newline(self) -> str:
        """The line end this file uses; the first one decides."""
        first = _LINE_END.search(self.text)
        return first.group() if first else "\n"

    def line_of(self, offset: int) -> int:
        """The number, from 1, of the line on which the character at `offset` stands."""
        return bisect_right(self.line_starts, offset)

    def line(self, number: int) -> str:
        """The text of one line without its end."""
        start = self.line_starts[number - 1]
        end = _LINE_END.search(self.text, start)
        return self.text[start : end.start() if end else len(self.text)]

    def line_count(self) -> int:
        """How many lines there are."""
        return len(self.line_starts)

    def encode(self) -> bytes:
        """The bytes of the file."""
        return self.original.encode(self.text)

    def parse(self) -> ast.Module:
        """The syntax tree; raises `UnreadableError` where this Python cannot read the text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string is not our news
            try:
                return ast.parse(self.text.removeprefix(_MARK))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
                raise UnreadableError(f"{type(problem).__name__}: {problem}") from problem


def decode(path: str, data: bytes) -> SourceText:
    """Decode a file the way Python does, by its byte order mark or coding comment."""
    try:
        decoded = decode_bytes(data)
        faithful = decoded.encode(decoded.text) == data
    except (SyntaxError, LookupError, UnicodeError) as problem:
        raise UnreadableError(f"{type(problem).__name__}: {problem}") from problem
    if not faithful:
        raise UnreadableError(f"its bytes do not survive decoding and encoding as {decoded.encoding}")
    return SourceText(path, decoded.text, decoded)
