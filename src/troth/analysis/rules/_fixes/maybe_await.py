"""How a call is written that takes both colors: only what can be awaited is awaited."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit
from troth.analysis.rules._fixes.imports import imported

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing

__all__ = ["both_colors"]

_RESULTS = ("result", "outcome", "handled")
_TIMERS = frozenset({"wait_for", "asyncio.wait_for", "shield", "asyncio.shield"})


def both_colors(here: Standing) -> tuple[Edit, ...] | None:
    """`await handler(m)` as a call, and an `await` of what it gives if that can be awaited.

    `here` is the call. Between it and its `await` may stand one that puts a limit to the waiting:
    `await wait_for(handler(m), 5)`.
    """
    waiting = here.around[1] if _timer(here) is not None else here.parent
    statement = here.around[2] if _timer(here) is not None else here.around[1]
    if not isinstance(waiting, ast.Await) or not isinstance(statement, ast.stmt) or here.function is None:
        return None
    lines = here.lines_of(statement)
    used = {node.id for node in ast.walk(here.function) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(here.function) if isinstance(node, ast.arg)}
    name = next((name for name in _RESULTS if name not in used), None)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
    elif not isinstance(statement, ast.Expr | ast.Return):
        return None
    added = imported(here, "inspect")
    if lines is None or name is None or added is None:
        return None
    indent, end, newline = lines
    start, stop = here.offsets(statement)
    if "#" in here.text[start:stop]:
        return None  # a comment inside would go or stand in the wrong place
    inner = f"{indent}\t" if indent.endswith("\t") else f"{indent}    "
    awaited = f"await {_around(here, name)}"
    then = awaited if isinstance(statement, ast.Expr) else f"{name} = {awaited}"
    after = f"{newline}{indent}if inspect.isawaitable({name}):{newline}{inner}{then}"
    after += f"{newline}{indent}return {name}" if isinstance(statement, ast.Return) else ""
    cut = (Edit(here.path, here.end, stop, ""),) if stop > here.end else ()
    return (*added, Edit(here.path, start, here.start, f"{name} = "), *cut, Edit(here.path, end, end, after))


def _timer(here: Standing) -> ast.Call | None:
    """The call that limits the waiting for this one."""
    outer = here.parent
    if isinstance(outer, ast.Call) and outer.args[:1] == [here.node] and ast.unparse(outer.func) in _TIMERS:
        return outer
    return None


def _around(here: Standing, name: str) -> str:
    """What is awaited once the call has given `name`."""
    outer = _timer(here)
    if outer is None:
        return name
    start, end = here.offsets(outer)
    return f"{here.text[start : here.start]}{name}{here.text[here.end : end]}"
