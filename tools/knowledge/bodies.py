"""What the body of an unannotated function shows about its result."""

import ast
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tools.knowledge.sources import Def

__all__ = ["passed_on", "promised", "returned_values", "yields"]

_FUTURE_MAKERS = {
    "create_future", "ensure_future", "run_in_executor", "wrap_future", "deferToThread", "maybeDeferred",
    "async_create_task", "async_add_executor_job",
}  # fmt: skip
_OF_A_LOOP = {"create_task", "gather", "shield", "Future"}  # others use these words too: only on `asyncio` or a loop


@dataclass(frozen=True, slots=True)
class Body:
    """What one look at a function's own statements shows; functions inside it are not its own."""

    is_generator: bool
    returned: tuple[ast.expr, ...]
    stored: dict[str, list[ast.expr]]


@cache
def body_of(node: Def) -> Body:
    """Looked at once: the same function is judged with and without what was seen of the package."""
    is_generator = False
    returned: list[ast.expr] = []
    stored: dict[str, list[ast.expr]] = {}
    waiting: list[ast.AST] = [*reversed(node.body)]
    while waiting:
        inner = waiting.pop()
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                continue
            case ast.Yield() | ast.YieldFrom():
                is_generator = True
            case ast.Return(value=ast.expr() as value):
                returned.append(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                stored.setdefault(name, []).append(value)
            case _:
                pass
        waiting += reversed(list(ast.iter_child_nodes(inner)))
    return Body(is_generator, tuple(returned), stored)


def yields(node: Def) -> bool:
    """Whether the function is a generator."""
    return body_of(node).is_generator


def returned_values(node: Def) -> tuple[ast.expr, ...]:
    """The expressions it returns; none for a generator."""
    body = body_of(node)
    return () if body.is_generator else body.returned


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
    stored = body_of(node).stored
    shown = [_makes_future(value, stored) for value in values]
    if all(shown):
        return "w"
    return "o" if any(shown) else ""


def _makes_future(value: ast.expr, stored: dict[str, list[ast.expr]]) -> bool:
    if isinstance(value, ast.Name):
        return any(_makes_future(inner, {}) for inner in stored.get(value.id, []))
    if not isinstance(value, ast.Call):
        return False
    *receiver, name = ast.unparse(value.func).split(".")
    if name in _OF_A_LOOP:
        return bool(receiver) and ("loop" in receiver[-1] or receiver[0] == "asyncio")
    return name in _FUTURE_MAKERS
