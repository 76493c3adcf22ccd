"""Find which calls a function makes whenever it is called.

What stands in a branch, in a handler or in a function inside is made sometimes; who calls the function cannot be told
that it always happens. The body of a loop counts: it was written to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    AT,
    BODY,
    FOR_BODY,
    FOR_ITER,
    ITEMS,
    KIND,
    TEST,
    TRY_BODY,
    TRY_FINAL,
    TRY_ORELSE,
    WITH_BODY,
    WITH_ITEMS,
)
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
        if up_to and statement[KIND] == "if" and any(inner[0] in up_to for block in statement[2:4] for inner in block):
            break
    return frozenset(places)


def _statement(statement: Node, places: set[At]) -> None:
    kind = statement[0]
    if kind in {"def", "class", "import", "scope", "match"}:
        return
    if kind == "if":
        _expression(statement[TEST], places)
    elif kind == "try":
        for block in (statement[TRY_BODY], statement[TRY_ORELSE], statement[TRY_FINAL]):
            _block(block, places)
    elif kind == "while":
        _expression(statement[TEST], places)
        _block(statement[BODY], places)
    elif kind == "for":
        _expression(statement[FOR_ITER], places)
        _block(statement[FOR_BODY], places)
    elif kind == "with":
        for entered, _ in statement[WITH_ITEMS]:
            _expression(entered, places)
        _block(statement[WITH_BODY], places)
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
        _expression(node[TEST], places)
        return
    if kind in {"and", "or"}:
        _expression(node[ITEMS][0], places)
        return
    if kind == "call":
        places.add(node[AT])
    for part in children(node):
        _expression(part, places)
