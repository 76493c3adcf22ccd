"""Knows what the body of an unannotated function shows about its result."""

import ast
from collections.abc import Iterator
from typing import Literal

from tools.knowledge.sources import Def

__all__ = ["own_nodes", "passed_on", "promised", "returned_values", "yields"]

_FUTURE_MAKERS = {
    "create_future", "ensure_future", "create_task", "gather", "run_in_executor", "shield", "wrap_future",
    "deferToThread", "maybeDeferred", "Future", "async_create_task", "async_add_executor_job",
}  # fmt: skip


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What belongs to the function itself, not to functions inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        yield child
        yield from own_nodes(child)


def yields(node: ast.AST) -> bool:
    """Whether the function is a generator."""
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node))


def returned_values(node: Def) -> list[ast.expr]:
    """The expressions it returns; none for a generator."""
    if yields(node):
        return []
    returns = [inner for inner in own_nodes(node) if isinstance(inner, ast.Return)]
    return [inner.value for inner in returns if inner.value is not None]


def passed_on(node: Def) -> tuple[str, ...]:
    """`self.other(...)` in every `return`: the names of those methods; nothing where one return is something else."""
    names = []
    for value in returned_values(node):
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                names.append(name)
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)):
                names.append(f"super.{name}")
            case ast.Name(id="NotImplemented"):
                continue
            case _:
                return ()
    return tuple(dict.fromkeys(names))


def promised(node: Def) -> Literal["w", "o", ""]:
    """`w`: every result is visibly a future; `o`: some are; empty: nothing says so."""
    values = returned_values(node)
    if not values:
        return ""
    stored: dict[str, list[ast.expr]] = {}
    for inner in own_nodes(node):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                if isinstance(target, ast.Name):
                    stored.setdefault(target.id, []).append(inner.value)
    shown = [_makes_future(value, stored) for value in values]
    if all(shown):
        return "w"
    return "o" if any(shown) else ""


def _makes_future(value: ast.expr, stored: dict[str, list[ast.expr]]) -> bool:
    if isinstance(value, ast.Name):
        return any(_makes_future(inner, {}) for inner in stored.get(value.id, []))
    if not isinstance(value, ast.Call):
        return False
    maker = value.func
    name = maker.attr if isinstance(maker, ast.Attribute) else maker.id if isinstance(maker, ast.Name) else ""
    return name in _FUTURE_MAKERS
