"""Find the function around a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["enclosing"]


def enclosing(program: Program, path: str, at: At) -> Function:
    """The innermost function around a place; the module where there is none."""
    module = program.module(path)
    around = [
        number
        for number, facts in enumerate(module.facts.functions)
        if number and facts.at[:2] <= at[:2] and at[2:] <= facts.at[2:]
    ]
    return module.function(max(around, key=lambda number: module.facts.functions[number].at[:2], default=0))
