"""How an argument is written that takes coroutines, or a function, in the way its taker wants it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._syntax_position import standing

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

__all__ = ["handed_over", "starred"]

_WITH_A_STAR = "give them one by one, with a `*`"
# They call what they are given with the arguments that follow it.
_RUNNERS = ("trio.", "anyio.")  # whose `run` does so, too
_PASSING_ON = frozenset({"start_soon", "start", "add_task", "call_soon", "call_soon_threadsafe", "to_thread", "submit"})


def starred(program: Program, incident: LossIncident) -> Fix | None:
    """`gather(*[load(1), load(2)])`, told of the first coroutine in the collection alone: one star is enough."""
    declared = _written(program, incident)
    if declared is None or not declared.around:
        return None
    inner: ast.AST = declared.node
    for enclosing in declared.around:
        if isinstance(enclosing, ast.Call):
            return _star(declared, inner, enclosing)
        if not isinstance(enclosing, ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return None
        items = enclosing.elts if isinstance(enclosing, ast.List | ast.Tuple | ast.Set) else [enclosing.elt]
        if items[0] is not inner:
            return None
        inner = enclosing
    return None


def _star(here: Standing, collection: ast.AST, call: ast.Call) -> Fix | None:
    if collection not in call.args or not isinstance(collection, ast.expr):
        return None
    start = here.source.offset(collection.lineno, collection.col_offset)
    end = here.source.offset(collection.end_lineno or 0, collection.end_col_offset or 0)
    opening = here.source.offset(call.func.end_lineno or 0, call.func.end_col_offset or 0)
    if isinstance(collection, ast.GeneratorExp) and start == opening:  # its brackets are those of the call
        edits: tuple[Edit, ...] = (Edit(here.path, start + 1, start + 1, "*("), Edit(here.path, end, end, ")"))
        return Fix(_WITH_A_STAR, "likely", edits)
    return Fix(_WITH_A_STAR, "sure", (Edit(here.path, start, start, "*"),))


def handed_over(program: Program, incident: LossIncident) -> Fix | None:
    """`start_soon(load, 1)`: the function, and what it is to be called with."""
    declared = _written(program, incident)
    call = declared.node if declared is not None else None
    if declared is None or not isinstance(call, ast.Call) or not isinstance(declared.parent, ast.Call) or call.keywords:
        return None
    taker, name = declared.parent, declared.parent.func
    last = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
    passes_on = last in _PASSING_ON or (
        last == "run" and incident.taker is not None and incident.taker.name.startswith(_RUNNERS)
    )
    if not passes_on or not taker.args or taker.args[-1] is not call or not call.args:
        return None
    if any(isinstance(argument, ast.Starred) for argument in (*call.args, *taker.args)):
        return None
    opening = declared.source.offset(call.func.end_lineno or 0, call.func.end_col_offset or 0)
    first = declared.source.offset(call.args[0].lineno, call.args[0].col_offset)
    last_end = declared.source.offset(call.args[-1].end_lineno or 0, call.args[-1].end_col_offset or 0)
    between, behind = declared.text[opening:first], declared.text[last_end : declared.end]
    if between.strip() != "(" or behind.strip() != ")":
        return None  # comments, brackets of its own
    edits = (Edit(declared.path, opening, first, ", "), Edit(declared.path, last_end, declared.end, ""))
    return Fix("hand over the function and its arguments", "likely", edits)


def _written(program: Program, incident: LossIncident) -> Standing | None:
    path = incident.site.function.module.path
    return None if path.endswith(".ipynb") else standing(program, path, incident.site.at)
