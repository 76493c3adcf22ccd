"""Find which parameters of a function or class are slots for async callbacks: what they are given is awaited."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from troth.analysis.mutate.source.module import FunctionNode

__all__ = ["CallbackSlot", "slots_of"]


@dataclass(frozen=True, slots=True)
class CallbackSlot:
    """A parameter whose argument is called and awaited; `position` counts without `self`."""

    callee: str
    position: int | None
    keyword: str


def slots_of(node: FunctionNode | ast.ClassDef) -> Iterator[CallbackSlot]:
    """The slots of one definition: of a function that awaits `parameter()`, or of a class that keeps it on `self`."""
    if isinstance(node, ast.ClassDef):
        yield from _constructor_slots(node)
        return
    awaited = {func.id for func in _awaited(node) if isinstance(func, ast.Name)}
    yield from _parameters(node, node.name, awaited)


def _constructor_slots(node: ast.ClassDef) -> Iterator[CallbackSlot]:
    """Parameters that `__init__` keeps on `self` and that some method of the class calls and awaits."""
    awaited = {_own_attribute(func) for func in _awaited(node)} - {None}
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            parameters = {
                assign.value.id
                for assign in ast.walk(method)
                if isinstance(assign, ast.Assign)
                and isinstance(assign.value, ast.Name)
                and any(_own_attribute(goal) in awaited for goal in assign.targets)
            }
            yield from _parameters(method, node.name, parameters)


def _awaited(node: ast.AST) -> Iterator[ast.expr]:
    """What is called right behind an `await`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Await) and isinstance(inner.value, ast.Call):
            yield inner.value.func


def _own_attribute(node: ast.AST) -> str | None:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _parameters(node: FunctionNode, callee: str, names: set[str]) -> Iterator[CallbackSlot]:
    positional = [*node.args.posonlyargs, *node.args.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    for position, parameter in enumerate(positional):
        if parameter.arg in names:
            yield CallbackSlot(callee, position, parameter.arg)
    for parameter in node.args.kwonlyargs:
        if parameter.arg in names:
            yield CallbackSlot(callee, None, parameter.arg)
