"""Write a table as text: one function, method or name a line, so that a diff of two versions can be read."""

import json
from collections.abc import Iterator, Mapping

__all__ = ["as_text"]

_SHORT = 100  # letters of a class that stands on one line


def as_text(table: Mapping[str, object]) -> str:
    """A table as JSON, in lines: what dicts hold has a line each, what lists hold stays together."""
    return "".join(_lines(table, 0)) + "\n"


def _lines(value: object, depth: int) -> Iterator[str]:
    flat = json.dumps(value, separators=(", ", ": "), sort_keys=True)
    if not isinstance(value, Mapping) or not value or (depth > 1 and len(flat) <= _SHORT):
        yield flat
        return
    margin = " " * depth
    yield "{\n"
    for number, key in enumerate(sorted(value)):
        yield f"{margin} {json.dumps(key)}: "
        yield from _lines(value[key], depth + 1)
        yield ",\n" if number < len(value) - 1 else "\n"
    yield f"{margin}}}"
