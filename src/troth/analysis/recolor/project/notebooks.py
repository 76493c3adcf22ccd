"""Find where in the JSON of a notebook each character of its code stands, so that a cell is edited byte for byte."""

import re
from collections.abc import Iterator
from json import JSONDecoder

from troth.analysis.recolor.project.view import View
from troth.analysis.source.read import Problem, parse

__all__ = ["notebook_view", "readable_cells"]

_SPACE = " \t\r\n"
_DECODER = JSONDecoder(strict=False)
_MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.MULTILINE)


def _string(raw: str, at: int) -> tuple[str, int]:
    """The string whose opening quote is at `at`, and where it ends."""
    value, end = _DECODER.raw_decode(raw, at)
    return str(value), end


def notebook_view(path: str, raw: str) -> View | None:
    """The notebook's code; None where it is no notebook of the present format."""
    try:
        cells = [list(cell) for cell in _cells(raw)]
    except (ValueError, IndexError):
        return None  # no JSON
    text = "\n".join(_python("".join(char for char, _ in cell)) for cell in cells) + "\n"
    if not text.strip():
        return None
    places: list[list[int]] = []  # of each line, where each of its characters stands
    for cell in cells:
        line: list[int] = []
        for char, place in cell:
            line.append(place)
            if char == "\n":
                places.append(line)
                line = []
        places.append(line)

    def origin(line: int, column: int) -> int | None:
        if line >= len(places) or not places[line]:
            return None
        row = places[line]
        return row[column] if column < len(row) else None

    def written(text: str) -> str:
        from json import dumps

        return dumps(text, ensure_ascii=False)[1:-1]

    return View(path, path, "notebook", text, origin, written)


def _python(cell: str) -> str:
    """The cell as Python, line by line as it is: magics become `pass`, and what is no Python becomes empty lines."""
    if cell.lstrip().startswith("%%"):
        return "\n" * cell.count("\n")
    # As it is first: a line that starts with `%` may also go on with the expression above it.
    for text in (cell, _MAGIC.sub(r"\1pass", cell)):
        if not isinstance(parse(text.encode("utf-8", "surrogatepass"), top_level_await=True), Problem):
            return text
    return "\n" * cell.count("\n")


def readable_cells(raw: str) -> int:
    """How many code cells are Python."""
    return sum(bool(_python("".join(char for char, _ in cell)).strip()) for cell in _cells(raw))


def _cells(raw: str) -> Iterator[Iterator[tuple[str, int]]]:
    """The characters of each code cell, with their places in the JSON."""
    for start in _items(raw, dict(_members(raw, _skip(raw, 0))).get("cells", -1)):
        cell = dict(_members(raw, start))
        kind, source = cell.get("cell_type", -1), cell.get("source", -1)
        if kind >= 0 and source >= 0 and raw[kind] == '"' and _string(raw, kind)[0] == "code":
            yield _characters(raw, [source] if raw[source] == '"' else list(_items(raw, source)))


def _characters(raw: str, strings: list[int]) -> Iterator[tuple[str, int]]:
    place = 0
    for start in strings:
        place = start + 1
        while raw[place] != '"':
            width = 1
            if raw[place] == "\\":
                width = 6 if raw[place + 1] == "u" else 2
                if width == 6 and raw[place + 2 : place + 4].lower() in ("d8", "d9", "da", "db"):
                    width = 12  # a character beyond the first plane is written as two
            char = _string(f'"{raw[place : place + width]}"', 0)[0]
            yield char, place
            place += width
    if strings:
        yield "", place  # what is put in at the end of a cell goes before its last quote


def _members(raw: str, at: int) -> Iterator[tuple[str, int]]:
    """The keys of the object at `at`, and where their values start."""
    if at < 0 or raw[at] != "{":
        return
    at = _skip(raw, at + 1)
    while raw[at] != "}":
        key, at = _string(raw, at)
        at = _skip(raw, _skip(raw, at) + 1)
        yield key, at
        at = _after_comma(raw, _end(raw, at))


def _items(raw: str, at: int) -> Iterator[int]:
    if at < 0 or raw[at] != "[":
        return
    at = _skip(raw, at + 1)
    while raw[at] != "]":
        yield at
        at = _after_comma(raw, _end(raw, at))


def _end(raw: str, at: int) -> int:
    """Where the value at `at` ends."""
    if raw[at] == '"':
        return _string(raw, at)[1]
    if raw[at] in "{[":
        depth = 0
        while True:
            if raw[at] == '"':
                at = _string(raw, at)[1]
                continue
            depth += (raw[at] in "{[") - (raw[at] in "}]")
            at += 1
            if depth == 0:
                return at
    while at < len(raw) and raw[at] not in ",}]" + _SPACE:
        at += 1
    return at


def _skip(raw: str, at: int) -> int:
    while at < len(raw) and raw[at] in _SPACE:
        at += 1
    return at


def _after_comma(raw: str, at: int) -> int:
    at = _skip(raw, at)
    return _skip(raw, at + 1) if raw[at] == "," else at
