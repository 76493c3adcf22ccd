"""How a loop and a `with` are written asynchronously where they stand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._syntax_position import standing
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Safety
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

__all__ = ["async_for_fix", "async_with_fix"]

_READ_AT_ONCE = frozenset({"list", "set", "tuple", "sorted", "frozenset", "sum", "min", "max", "any", "all"})
_NAMES = ("item", "one", "each")


def async_for_fix(program: Program, incident: LossIncident) -> Fix | None:
    """`async for` where a plain loop or comprehension reads an async generator; a list where it is read at once."""
    site = incident.site
    safety: Safety = "sure" if incident.sure and site.sure else "likely"
    if site.awaitable == "iterable":
        return _loop_itself(program, incident, safety)
    position = standing(program, site.function.module.path, site.at)
    if position is None or not _may_wait(position):
        return None
    for expression, parent in _readers(position, incident.variable):
        edits = _loop(position, expression, parent)
        if edits is not None:
            return Fix("use `async for`", safety if len(edits) == 1 else "likely", edits)
        if isinstance(parent, ast.Call) and expression is position.node:
            edits = _collected(position, parent)
            return Fix("collect it with `async for`", "likely", edits) if edits is not None else None
    return None


def _loop_itself(program: Program, incident: LossIncident, safety: Safety) -> Fix | None:
    """`async` before the `for` that the incident is about; none for a comprehension, which says it further inside."""
    path = incident.site.function.module.path
    text = program.text(path)
    start = text.offset(*incident.at[:2])
    if not (incident.site.function.is_async or _is_top_of_cell(incident)) or not text.value.startswith("for ", start):
        return None
    return Fix("use `async for`", safety, (Edit(path, start, start, "async "),))


def async_with_fix(program: Program, incident: LossIncident) -> Fix | None:
    """`async with`, where all that the statement enters is entered asynchronously."""
    path = incident.site.function.module.path
    text = program.text(path)
    statement = _statement(text.value, (incident.at[0], incident.at[1]))
    if statement is None or not (incident.site.function.is_async or _is_top_of_cell(incident)):
        return None
    first, *expressions = (ast.unparse(_entered(entered.context_expr)) for entered in statement.items)
    if any(expression != first for expression in expressions):
        return None  # what else is entered may have no `__aenter__`
    start = text.offset(*incident.at[:2])
    safety: Safety = "sure" if incident.sure and incident.site.sure else "likely"
    return Fix("use `async with`", safety, (Edit(path, start, start, "async "),))


def _may_wait(here: Standing) -> bool:
    """Whether the code around it runs in an `async def`, or at the top of a notebook's cell."""
    for child, parent in zip((here.node, *here.around), here.around, strict=False):
        if isinstance(parent, ast.Lambda) and child is parent.body:
            return False
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return isinstance(parent, ast.AsyncFunctionDef) and child in parent.body
    return here.path.endswith(".ipynb")


def _readers(here: Standing, variable: str) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Who reads the generator: what it stands in, or the one loop over the variable that holds it."""
    if not variable or here.function is None:
        yield here.node, here.parent
        return
    loops = [
        node
        for node in ast.walk(here.function)
        if isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.iter, ast.Name)
        and node.iter.id == variable
    ]
    bound = [
        node
        for node in ast.walk(here.function)
        if isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Store)
    ]
    if len(loops) == len(bound) == 1:
        yield loops[0].iter, loops[0]


def _loop(here: Standing, expression: ast.expr, parent: ast.AST) -> tuple[Edit, ...] | None:
    if isinstance(parent, ast.For) and parent.iter is expression:
        start, _ = here.offsets(parent)
        return (Edit(here.path, start, start, "async "),)
    if not isinstance(parent, ast.comprehension) or parent.iter is not expression or parent.is_async:
        return None
    holder = _parent_of(here, parent)
    brackets: tuple[Edit, ...] | None = ()
    if isinstance(holder, ast.GeneratorExp):  # an async one cannot be read as before; a list can
        brackets = here.as_list(holder, _parent_of(here, holder))
    target, _ = here.offsets(parent.target)
    head = here.text[:target].rstrip("( \t\r\n")
    if brackets is None or not head.endswith("for"):
        return None
    at = len(head) - len("for")
    return (*brackets, Edit(here.path, at, at, "async "))


def _parent_of(here: Standing, node: ast.AST) -> ast.AST:
    """What a node of the same function is part of."""
    around = here.function or here.around[-1]
    return next(inner for inner in ast.walk(around) if any(child is node for child in ast.iter_child_nodes(inner)))


def _collected(here: Standing, reader: ast.Call) -> tuple[Edit, ...] | None:
    """`list(pages())` as `[item async for item in pages()]`."""
    if reader.args != [here.node] or reader.keywords or not isinstance(reader.func, ast.Name):
        return None
    used = {node.id for node in ast.walk(here.node) if isinstance(node, ast.Name)}
    name = next((name for name in _NAMES if name not in used), None)
    if reader.func.id not in _READ_AT_ONCE or name is None:
        return None
    start, end = here.offsets(reader) if reader.func.id == "list" else (here.start, here.end)
    if reader.func.id == "list" and here.text[here.end : end - 1].strip():
        return None  # a comment or a trailing comma, which a list would keep
    return (
        Edit(here.path, start, here.start, f"[{name} async for {name} in "),
        Edit(here.path, here.end, end, "]"),
    )


def _statement(source: str, at: tuple[int, int]) -> ast.With | None:
    tree = tree_of(source)
    statements = (
        node
        for node in (() if tree is None else ast.walk(tree))
        if isinstance(node, ast.With) and (node.lineno, node.col_offset) == at
    )
    return next(statements, None)


def _entered(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_top_of_cell(incident: LossIncident) -> bool:
    function = incident.site.function
    return function.index == 0 and function.module.path.endswith(".ipynb")
