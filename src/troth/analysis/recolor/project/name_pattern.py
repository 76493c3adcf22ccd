"""Which names a string can be that is put together while the program runs: `"handle_" + kind`, `f"handle_{kind}"`."""

import ast
import re

__all__ = ["FEWEST", "PUT_TOGETHER", "literal_length", "name_pattern"]

FEWEST = 3  # characters of a name that say something about it, whoever is asked for it
# A text in which an attribute is fetched by such a name: it need not say the name itself.
PUT_TOGETHER = re.compile(r"""\bgetattr\([^,\n]+,\s*(?:f["']|["'][^"'\n]*["']\s*[+%.]|[\w.()\[\]"']+\s*\+)""")


def name_pattern(node: ast.expr) -> re.Pattern[str] | None:
    """A pattern for the names that `node` may give; None where nothing in it is written down."""
    parts = _parts(node)
    return None if not any(parts) else re.compile("".join(".*" if part is None else re.escape(part) for part in parts))


def literal_length(node: ast.expr) -> int:
    """How many characters of the name are written down."""
    return sum(len(part) for part in _parts(node) if part is not None)


def _parts(node: ast.expr) -> list[str | None]:
    """The pieces of a name from left to right, None for those that are not known before the program runs."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_parts(left), *_parts(right)]
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return _split(r"%\(\w+\)[a-z]|%[a-z]", text)
        case ast.JoinedStr(values=values):
            return [part for value in values for part in _parts(value)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            return _split(r"\{[^{}]*\}", text)
        case _:
            return [None]


def _split(placeholder: str, text: str) -> list[str | None]:
    pieces: list[str | None] = []
    for literal in re.split(placeholder, text):
        pieces += [literal, None]
    return pieces[:-1]
