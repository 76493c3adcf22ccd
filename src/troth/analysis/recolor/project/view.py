"""How a piece of Python stands in the file it comes from: a whole file, a notebook, a page, a docstring.

Everything is analysed as Python; an edit found there is brought back to the place in the file it came from.
"""

import ast
import warnings
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from troth.analysis.findings import Edit

__all__ = ["Kind", "SourceView", "whole_file"]

Kind = Literal["code", "notebook", "markdown", "docstring"]
Origin = Callable[[int, int], int | None]


@dataclass(frozen=True, slots=True, eq=False)
class SourceView:
    """Python text. `name` is its path in the program, `path` the file it comes from.

    `origin` gives the place in that file of a line and a column, both from 0 and in characters; None where the text is
    not in the file. `written` turns text that is put in into what the file needs there.
    """

    name: str
    path: str
    kind: Kind
    text: str
    origin: Origin | None = None
    written: Callable[[str], str] = str
    _starts: list[int] = field(default_factory=list, repr=False)

    def place(self, offset: int) -> int | None:
        """Where in the file a place of the text is."""
        if self.origin is None:
            return offset
        if not self._starts:
            self._starts.append(0)
            for position, char in enumerate(self.text):
                if char == "\n":
                    self._starts.append(position + 1)
        line = bisect_right(self._starts, offset) - 1
        return self.origin(line, offset - self._starts[line])

    def edit(self, start: int, end: int, text: str) -> Edit | None:
        """The change of the file that changes this text so; None if it cannot be said there."""
        if start == end:
            place = self.place(start)
            return None if place is None else Edit(self.path, place, place, self.written(text))
        first, last = self.place(start), self.place(end)
        return None if first is None or last is None else Edit(self.path, first, last, self.written(text))

    def tree(self) -> ast.Module | None:
        """Its syntax tree; None where there is none."""
        flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if self.kind != "code" else 0)
        source = self.text.removeprefix("\ufeff")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # As text, not as bytes: a coding line in it speaks of the file, and the file is decoded already.
                tree = compile(source, self.path, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        assert isinstance(tree, ast.Module)
        return tree


def whole_file(path: str, text: str) -> SourceView:
    """A Python file as it is; a byte order mark counts as a character of the file."""
    return SourceView(path, path, "code", text)
