"""Find where in a notebook's JSON text a character of its code stands, so that it can be changed and no other byte."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from troth.analysis.source.notebook import read_notebook

__all__ = ["NotebookText", "notebook_text"]

_TOKEN = re.compile(r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[\[\]{},:])|(?P<other>[^\s\[\]{},:"]+))')
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)

Key = str | int
Place = tuple[int, int]  # of one character, as the JSON writes it


class NotebookText(NamedTuple):
    """The places of the characters of each line of the code that `read_notebook` gives, and of the line's end.

    None for lines that it changed.
    """

    lines: tuple[tuple[Place, ...] | None, ...]
    starts: tuple[int, ...]  # of the lines, in characters of that code

    def start(self, line: int, column: int) -> int | None:
        """Where in the JSON a character begins, by its line and column from 0; None where it is not in the JSON."""
        places = self.lines[line] if line < len(self.lines) else None
        return places[column][0] if places is not None and column < len(places) else None

    def place(self, start: int, end: int) -> Place | None:
        """Where the JSON says what the code says from `start` to `end`; None where it cannot be told exactly."""
        first, last = self._at(start), self._at(end)
        if first is None or last is None or first[0] != last[0]:
            return None  # over several lines there may be quotes, commas and whatever else between
        places = self.lines[first[0]]
        if places is None:
            return None
        begin = places[first[1]][0]
        return begin, places[last[1] - 1][1] if last[1] > first[1] else begin

    def _at(self, offset: int) -> tuple[int, int] | None:
        from bisect import bisect_right

        line = bisect_right(self.starts, offset) - 1
        places = self.lines[line] if line < len(self.lines) else None
        column = offset - self.starts[line]
        return (line, column) if places is not None and column < len(places) else None


def notebook_text(data: bytes) -> NotebookText | None:
    """The text of a notebook, character by character; None where it is written in a way that we do not know."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None  # JSON may be UTF-16 as well, and is read so; edits count the characters of UTF-8
    code = read_notebook(data).source.split("\n")
    lines: list[tuple[Place, ...] | None] = []
    for cell in _cells(text):
        if not cell:  # its source is an empty list
            lines.append(None)
            continue
        quote = cell[-1][1] - 1  # what is put in at the end of the cell goes before its last quote
        written = [
            (json.loads(f'"{character[0]}"'), character[1])
            for string in cell
            for character in _characters(text, *string)
        ]
        line: list[tuple[str, Place]] = []
        for character, place in [*written, ("\n", (quote, quote))]:
            if character != "\n":
                line.append((character, place))
                continue
            at = place[0]
            if line and line[-1][0] == "\r":
                at = line.pop()[1][0]
            if line:
                at = line[-1][1][1]
            says = "".join(letter for letter, _ in line)
            number = len(lines)
            same = number < len(code) and code[number] == says
            lines.append((*(place for _, place in line), (at, at)) if same else None)
            line = []
    starts = [0]
    for code_line in code:
        starts.append(starts[-1] + len(code_line) + 1)
    return NotebookText(tuple(lines), tuple(starts)) if len(lines) == len(code) - 1 else None


def _characters(text: str, start: int, end: int) -> Iterator[tuple[str, Place]]:
    for character in _CHARACTER.finditer(text, start + 1, end - 1):
        yield character[0], character.span()


def _cells(text: str) -> Iterator[list[Place]]:
    """The strings that each code cell's source is made of, in order."""
    kinds: dict[tuple[Key, ...], str] = {}
    sources: dict[tuple[Key, ...], list[Place]] = {}
    order: list[tuple[Key, ...]] = []
    for path, value in _strings(text):
        where = _cell_of(path)
        if where is None:
            continue
        if where not in sources:
            sources[where] = []
            order.append(where)
        inner = path[len(where) :]
        if inner == ("cell_type",):
            kinds[where] = json.loads(text[value[0] : value[1]])
        elif inner[0] in ("source", "input") and len(inner) <= 2:
            sources[where].append(value)
    yield from (sources[where] for where in order if kinds.get(where) == "code")


def _cell_of(path: tuple[Key, ...]) -> tuple[Key, ...] | None:
    """The way to the cell that a string lies in, in the present format and in the one with worksheets."""
    if len(path) > 2 and path[0] == "cells":
        return path[:2]
    if len(path) > 4 and path[0] == "worksheets" and path[2] == "cells":
        return path[:4]
    return None


def _strings(text: str) -> Iterator[tuple[tuple[Key, ...], Place]]:
    """Every string that is a value, with the way that leads to it."""
    path: list[Key | None] = []  # None where an object waits for its next key
    at = 1 if text.startswith("\ufeff") else 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        if token["string"] is not None:
            if path and path[-1] is None:
                path[-1] = json.loads(token["string"])
            else:
                yield tuple(key for key in path if key is not None), token.span("string")
        elif token["mark"] in ("{", "["):
            path.append(None if token["mark"] == "{" else 0)
        elif token["mark"] in ("}", "]"):
            path.pop()
        elif token["mark"] == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None
