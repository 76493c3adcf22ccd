"""Knows which function of the project takes the arguments of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.program.entities import Class, Function
from troth.analysis.program.overriding import overridden_at_all
from troth.analysis.program.values import ClassObject, FunctionValue

if TYPE_CHECKING:
    from troth.analysis.program.link import Program
    from troth.analysis.program.values import Value

__all__ = ["called_body"]


def called_body(program: Program, callee: Value | None) -> tuple[Function, int] | None:
    """The function that takes the arguments, and how many of its parameters are taken already.

    For a class that is its constructor. None where another body than the one that is seen may run.
    """
    if isinstance(callee, ClassObject) and isinstance(callee.cls, Class):
        for ancestor in program.classes.order(callee.cls):
            if not isinstance(ancestor, Class):
                return None
            if "__init__" in ancestor.methods:
                return ancestor.module.function(ancestor.methods["__init__"][-1]), 1
        return None
    if not isinstance(callee, FunctionValue) or not isinstance(callee.function, Function):
        return None
    function = callee.function
    if function.is_abstract or overridden_at_all(program, function, callee.receiver):
        return None
    bound = callee.receiver is not None and function.owner is not None and not function.decorated_with("staticmethod")
    return function, 1 if bound else 0
