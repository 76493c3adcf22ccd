"""Read a serialized syntax tree byte by byte, and to look up in the text what the tree leaves out."""

import ast
import re
import sys
from itertools import accumulate

from troth.analysis.facts.builder import Reading
from troth.analysis.facts.from_serialized import tags
from troth.analysis.facts.model import At, Node

__all__ = ["EXCEPT", "STRANGE", "WITH", "TreeReader", "UnsupportedTreeError", "is_python", "words"]

STRANGE = 1  # the byte that stands for each one that is not ASCII
EXCEPT = re.compile(rb"[ \t]*(except)\b")
WITH = re.compile(rb"[ \t]*(async|with)\b")

words: dict[bytes, str] = {}  # each with the one object for all its places, in all files


class UnsupportedTreeError(Exception):
    """The file is better read by `ast`."""


def is_python(text: bytes) -> bool:
    """Whether a piece of the text can stand alone."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class TreeReader(Reading):
    """Reads numbers, names and places, from the first byte to the last."""

    def __init__(self, tree: bytes, source: bytes) -> None:
        super().__init__()
        self._tree = tree
        self._at = 0
        self._source = source
        self._has_semicolons = b";" in source
        self._starts: list[int] = []  # of lines, without the newlines before them, once somebody asks
        self._line = 1  # where the last node that was read begins
        self._end_line = 1
        self._first_line = 1  # of the last block that was read
        self._nodes: dict[str, Node] = {}
        self._texts = 0  # strings that were met

    # What the bytes consist of.

    def _tag(self) -> int:
        at = self._at
        self._at = at + 1
        return self._tree[at]

    def _expect(self, tag: int) -> None:
        at = self._at
        self._at = at + 1
        if self._tree[at] != tag:
            raise UnsupportedTreeError(f"{self._tree[at]} where {tag} was expected")

    def _is(self) -> bool:
        at = self._at
        self._at = at + 1
        byte = self._tree[at]
        if byte > 1:
            raise UnsupportedTreeError(f"{byte} where a boolean was expected")
        return byte == 1

    def _short(self) -> int:
        tree, at = self._tree, self._at
        first = tree[at]
        if not first & 1:
            self._at = at + 1
            return (first >> 1) - 10
        if not first & 2:
            self._at = at + 2
            return (tree[at + 1] << 6) + (first >> 2) - 100
        if first & 4:
            raise UnsupportedTreeError("a long number")
        self._at = at + 4
        return (tree[at + 1] << 5) + (tree[at + 2] << 13) + (tree[at + 3] << 21) + (first >> 3) - 10000

    def _skip_short(self) -> None:
        at = self._at
        first = self._tree[at]
        self._at = at + 1 if not first & 1 else at + 2 if not first & 2 else at + 4

    def _integer(self) -> int:
        self._expect(tags.INT)
        return self._short()

    def _number(self) -> int:
        """A number of the program itself, of any size."""
        self._expect(tags.INT)
        if self._tree[self._at] != 15:
            return self._short()
        self._at += 1
        size = self._short()
        start = self._at
        self._at = end = start + (size >> 1)
        value = int.from_bytes(self._tree[start:end], "little")
        return -value if size & 1 else value

    def _word(self) -> str:
        """A name; there is one object for each."""
        at = self._at
        if self._tree[at] != tags.STR:
            raise UnsupportedTreeError("no name")
        self._at = at + 1
        return self._bare_word()

    def _bare_word(self) -> str:
        size = self._short()
        at = self._at
        self._at = end = at + size
        data = self._tree[at:end]
        word = words.get(data)
        if word is None:
            if STRANGE in data:
                raise UnsupportedTreeError("a name that is not ASCII")
            word = words[data] = sys.intern(data.decode())
        return word

    def _skip_text(self) -> None:
        self._expect(tags.STR)
        size = self._short()
        self._at += size

    def _place(self) -> At:
        self._expect(tags.PLACE)
        line = self._short()
        column = self._short()
        end_line = line + self._short()
        end_column = column + self._short()
        self._line = line
        self._end_line = end_line
        return (line, column, end_line, end_column)

    def _whole_place(self) -> At:
        """The place of a statement with others inside it."""
        place = self._place()
        if self._has_semicolons and self._source.startswith(b";", self._offset(place[2], place[3])):
            raise UnsupportedTreeError("a semicolon, which `ast` counts as part of it")
        return place

    def _skip_place(self) -> None:
        """Only the lines are noted; this is the end of every name."""
        tree, at = self._tree, self._at
        if tree[at] != tags.PLACE:
            raise UnsupportedTreeError("no place")
        self._at = at + 1
        line = self._short()
        self._skip_short()
        self._line = line
        self._end_line = line + self._short()
        self._skip_short()

    def _skip_end(self) -> None:
        """The place of a node, and its end."""
        self._skip_place()
        self._expect(tags.END)

    # What the text says.

    def _offset(self, line: int, column: int) -> int:
        if not self._starts:
            self._starts = list(accumulate(map(len, self._source.split(b"\n")), initial=0))
        return self._starts[line - 1] + line - 1 + column

    def _text(self, place: At) -> bytes:
        return self._source[self._offset(place[0], place[1]) : self._offset(place[2], place[3])]

    def _opening(self, word: re.Pattern[bytes], line: int) -> tuple[bytes, int]:
        """The word that opens a clause, in this line or above it, with its line."""
        while line > 0:
            opening = word.match(self._source, self._offset(line, 0))
            if opening is not None:
                return opening[1], line
            line -= 1
        raise UnsupportedTreeError("nothing opens this")

    def _named(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = ("name", name)
        return node
