"""The syntax of one function, where the facts about it do not say enough."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.source.text import DecodedText

__all__ = ["source_of", "syntax_of"]


def syntax_of(program: Program, function: Function) -> ast.AST:
    """The syntax of a function, with its places in the file; of the module, where that is the function.

    Nothing, where only a newer interpreter can read it.
    """
    return tree_of(source_of(program, function)) or ast.Module([], [])


def source_of(program: Program, function: Function) -> str:
    """The source of a function, at its lines and columns in the file; of the module, where that is the function."""
    text = program.text(function.module.path)
    if function.index == 0:
        return text.value
    first, column, last, _ = function.facts.at
    return _at_its_place(text, first, column, last)


@lru_cache(maxsize=8)  # a function may have ten thousand findings, and the same number of lines
def _at_its_place(text: DecodedText, first: int, column: int, last: int) -> str:
    body = text.lines(first, last)
    if not column:
        return "\n" * (first - 1) + body
    above = "\n" * (first - 2)
    return f"{above}if True:\n{body}"  # an indented function cannot stand alone
