"""Find which rules there are, and what each says of itself, from the text of their files: none of them is imported.

A rule brings with it the whole program that it asks, which takes as long to import as a small project to check; and
most runs only want to know which rules there are, because nothing has changed since the last one.
"""

import os
import re
from functools import cache
from typing import NamedTuple

__all__ = ["Entry", "catalog", "documentation_of"]

_MARK = b"\n@rule("  # found in no time; an expression over all the text would take longer than reading it
_DECLARED = re.compile(rb'\n@rule\(\s*"(TR\d+)",\s*"([\w-]+)"([^\n]*(?:\n    [^\n]*)*)')


class Entry(NamedTuple):
    """A rule as it is declared: `@rule("TR101", "unawaited-coroutine", cases=CASES)`."""

    code: str
    name: str
    is_default: bool
    module: str
    file: str


@cache
def catalog() -> tuple[Entry, ...]:
    """Every rule, by code; a test holds this and the rules themselves together."""
    home = os.path.dirname(__file__)  # noqa: PTH120  some fifty files, at every start
    entries: list[Entry] = []
    for family in sorted(os.listdir(home)):  # noqa: PTH208
        folder = f"{home}/{family}"
        if family.startswith("_") or "." in family:
            continue
        for name in os.listdir(folder):  # noqa: PTH208
            if name.endswith(".py") and not name.startswith("_"):
                entries += _declared(f"{__package__}.{family}.{name[:-3]}", f"{folder}/{name}")
    return tuple(sorted(entries))


def _declared(module: str, file: str) -> list[Entry]:
    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
        text = opened.read()
    entries: list[Entry] = []
    at = text.find(_MARK)
    while at >= 0:
        if (match := _DECLARED.match(text, at)) is not None:
            is_default = b"default=False" not in match[3]
            entries.append(Entry(match[1].decode(), match[2].decode(), is_default, module, file))
        at = text.find(_MARK, at + 1)
    return entries


def documentation_of(entry: Entry) -> str:
    """The docstring of the module that declares a rule."""
    with open(entry.file, encoding="utf-8") as opened:  # noqa: PTH123
        text = opened.read()
    end = text.find('"""', 3)
    if not text.startswith('"""') or end < 0 or "\\" in text[:end]:
        import ast  # late: hardly any page needs more than its quotes taken off

        return ast.get_docstring(ast.parse(text), clean=False) or ""
    return text[3:end]
