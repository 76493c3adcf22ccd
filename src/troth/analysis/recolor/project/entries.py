"""Find where objects of a class are entered by `with`, once the class is to be entered by `async with`."""

import ast
from collections.abc import Collection, Iterator

from troth.analysis.recolor.project.tree import Tree
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Instance, Nothing, Value, members_of

__all__ = ["ASYNC_NAMES", "entries", "is_entering", "whose_entry"]

ASYNC_NAMES = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def is_entering(function: Function) -> bool:
    """Whether a method is called by `with`."""
    return function.name in ASYNC_NAMES and function.owner is not None and not function.is_async


def entries(tree: Tree) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Everything that is entered, and the statement or the call that enters it."""
    for node in list(tree.parents):
        if isinstance(node, ast.With):
            for item in node.items:
                yield item.context_expr, node
        elif isinstance(node, ast.Call) and node.args and _is_stack(node.func):
            yield node.args[0], node


def _is_stack(callee: ast.expr) -> bool:
    return isinstance(callee, ast.Attribute) and callee.attr == "enter_context"


def whose_entry(
    program: Program, value: Value | None, wanted: Collection[Function]
) -> tuple[bool, bool, list[Function]]:
    """Whether something else may be entered, whether that is unknown, and which of `wanted` enter the object."""
    ours: list[Function] = []
    is_other = is_unknown = False
    for member in members_of(value):
        if isinstance(member, Nothing):
            continue
        cls = member.cls if isinstance(member, Instance) else None
        if member is None or (isinstance(member, Instance) and member.guess):
            is_unknown = True
            continue
        order = program.classes.order(cls) if isinstance(cls, Class) else ()
        owner = next((base for base in order if isinstance(base, Class) and "__enter__" in base.methods), None)
        functions = [function for function in wanted if owner is not None and function.owner is owner]
        ours += functions
        is_other = is_other or not functions
    return is_other, is_unknown, ours
