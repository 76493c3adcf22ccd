"""Await each of the coroutines that `map(load, keys)` makes: `[await load(item) for item in keys]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing

__all__ = ["is_mapped", "with_each_awaited"]

_NAMES = ("item", "each", "element")


def is_mapped(here: Standing) -> bool:
    """Whether the place is that of a `map(…)`, which gives many coroutines and cannot be awaited itself."""
    return isinstance(here.node, ast.Call) and isinstance(here.node.func, ast.Name) and here.node.func.id == "map"


def with_each_awaited(here: Standing) -> tuple[Edit, ...] | None:
    """The edits that write a comprehension instead; None where the place cannot await, or the call is more than that."""
    call = here.node
    assert isinstance(call, ast.Call)
    if here.awaited() is None or call.keywords or len(call.args) != 2:
        return None
    function, items = call.args
    if isinstance(function, ast.Starred) or isinstance(items, ast.Starred | ast.NamedExpr):
        return None
    words = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    name = next((name for name in _NAMES if name not in words), None)
    if name is None or not all(isinstance(node, ast.Name | ast.Attribute | ast.Load) for node in ast.walk(function)):
        return None
    callee, iterable = (here.text[slice(*here.offsets(node))] for node in (function, items))
    if isinstance(items, ast.IfExp | ast.Lambda | ast.Yield | ast.YieldFrom):
        iterable = f"({iterable})"
    parent = here.around[0] if here.around else None
    is_listed = (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "list"
        and parent.args == [call]
        and not parent.keywords
    )
    start, end = here.offsets(parent) if is_listed and isinstance(parent, ast.expr) else (here.start, here.end)
    return (Edit(here.path, start, end, f"[await {callee}({name}) for {name} in {iterable}]"),)
