"""Say what the code does with a variable that holds an awaitable, and on which line.

Facts have no places for names, so that the walk says only that `data` was subscripted. The line is looked up here, for
the few that become findings.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.rules._syntax_position import standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident, Misuse

__all__ = ["reasons_of_use"]

_TESTED = frozenset(
    {(ast.If, "test"), (ast.While, "test"), (ast.IfExp, "test"), (ast.Assert, "test"), (ast.comprehension, "ifs")}
    | {(ast.BoolOp, "values"), (ast.UnaryOp, "operand")}
)
_LOOPED = frozenset({(ast.For, "iter"), (ast.AsyncFor, "iter"), (ast.comprehension, "iter")})
_ENTERED = frozenset({(ast.withitem, "context_expr")})
_PLACES: Mapping[str, frozenset[tuple[type[ast.AST], str]]] = {
    "condition": _TESTED,
    "perhaps condition": _TESTED,
    "comparison": frozenset({(ast.Compare, "left"), (ast.Compare, "comparators"), (ast.Match, "subject")}),
    "subscript": frozenset({(ast.Subscript, "value")}),
    "attribute": frozenset({(ast.Attribute, "value")}),
    "iteration": _LOOPED,
    "async iteration": _LOOPED,
    "arithmetic": frozenset(
        {
            (ast.BinOp, "left"),
            (ast.BinOp, "right"),
            (ast.UnaryOp, "operand"),
            (ast.AugAssign, "value"),
            (ast.AugAssign, "target"),
        }
    ),
    "unpacking": frozenset({(ast.Assign, "value"), (ast.Starred, "value")}),
    "text": frozenset({(ast.FormattedValue, "value"), (ast.Assert, "msg"), (ast.BinOp, "right")}),
    "with": _ENTERED,
    "async with": _ENTERED,
}
_MOST = 2  # uses that are told
_KINDS = {"future": "a future", "generator": "an async generator"}
_MISUSED = {
    "alternative": "a value that is written out on the other path",
    "condition": "tested for truth",
    "perhaps condition": "tested for truth",
    "comparison": "compared",
    "attribute": "asked for an attribute",
    "subscript": "subscripted",
    "iteration": "looped over",
    "async iteration": "looped over with `async for`",
    "arithmetic": "used in an operation",
    "unpacking": "unpacked",
    "text": "turned into text",
    "argument": "given away as a result",
    "returned inside": "returned in a collection of results",
    "with": "entered with `with`",
    "async with": "entered with `async with`",
}


def reasons_of_use(program: Program, incident: LossIncident) -> tuple[Reason, ...]:
    """What the code does with the variable that holds the awaitable."""
    path = incident.site.function.module.path
    kind = _KINDS.get(incident.site.awaitable, "a coroutine")
    reasons = []
    for misuse in incident.misuses:
        text = f"`{incident.variable}` is {_MISUSED.get(misuse.kind, 'used as a result')}"
        if misuse.kind == "attribute":
            text = f"`{incident.variable}.{misuse.text}` is read"
        elif misuse.kind in {"text", "argument", "handed over"} and misuse.text:
            text = f"`{incident.variable}` is given to {misuse.text}"
        reasons.append(Reason(f"{text} although it is {kind}", path, _line(program, incident, misuse)))
    return tuple(dict.fromkeys(reasons))[:_MOST]


def _line(program: Program, incident: LossIncident, misuse: Misuse) -> int:
    """The line of the use; the line of the call where the tree shows none."""
    if misuse.at != incident.site.at:
        return misuse.at[0]
    return _line_of_use(program, incident, misuse.kind) or misuse.at[0]


def _line_of_use(program: Program, incident: LossIncident, kind: str) -> int | None:
    """The first line below the call at which the variable is used as a misuse of this kind says."""
    site = incident.site
    position = standing(program, site.function.module.path, site.at)
    if position is None:
        return None
    end = (position.node.end_lineno or position.node.lineno, position.node.end_col_offset or 0)
    names = _names_in(position.function or position.around[-1], _PLACES.get(kind, frozenset()))
    lines = [name.lineno for name in names if name.id == incident.variable and (name.lineno, name.col_offset) >= end]
    return min(lines, default=None)


def _names_in(tree: ast.AST, places: frozenset[tuple[type[ast.AST], str]]) -> Iterator[ast.Name]:
    """The names that stand directly in one of these fields of these nodes."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if (type(parent), field) in places:
                yield from (
                    part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.Name)
                )
