"""Find which calls a function makes whenever it is called.

What stands in a branch, in a handler or in a function inside is made sometimes; who calls the function cannot be told
that it always happens. The body of a loop counts: it was written to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.model import body_of
from troth.analysis.facts.nodes import children

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from troth.analysis.facts.model import At, FunctionFacts, Node

__all__ = ["always_called"]


def always_called(function: FunctionFacts, *, up_to: Collection[str] = ()) -> frozenset[At]:
    """The places of the calls that are always made; `up_to` ends at the first `if …: return`, say."""
    places: set[At] = set()
    for statement in body_of(function):
        _statement(statement, places)
        if up_to and statement[0] == "if" and any(inner[0] in up_to for block in statement[2:4] for inner in block):
            break
    return frozenset(places)


def _statement(statement: Node, places: set[At]) -> None:
    kind = statement[0]
    if kind in {"def", "class", "import", "scope", "match"}:
        return
    if kind == "if":
        _expression(statement[1], places)
    elif kind == "try":
        for block in (statement[1], statement[3], statement[4]):
            _block(block, places)
    elif kind == "while":
        _expression(statement[1], places)
        _block(statement[2], places)
    elif kind == "for":
        _expression(statement[3], places)
        _block(statement[4], places)
    elif kind == "with":
        for entered, _ in statement[2]:
            _expression(entered, places)
        _block(statement[3], places)
    else:
        for part in children(statement):
            _expression(part, places)


def _block(statements: Iterable[Node], places: set[At]) -> None:
    for statement in statements:
        _statement(statement, places)


def _expression(node: Node, places: set[At]) -> None:
    kind = node[0]
    if kind == "lambda":
        return
    if kind == "ifexp":
        _expression(node[1], places)
        return
    if kind in {"and", "or"}:
        _expression(node[1][0], places)
        return
    if kind == "call":
        places.add(node[-1])
    for part in children(node):
        _expression(part, places)
