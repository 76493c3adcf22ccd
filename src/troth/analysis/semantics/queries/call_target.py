"""Find which function of the project takes the arguments of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.infer.virtual_dispatch import overridden_at_all
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue

if TYPE_CHECKING:
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.values import Value

__all__ = ["called_body", "is_unchanged"]

_HEAD = 400  # characters in which the head of a class ends, however many bases it has
_HARMLESS_BASES = ("builtins.", "typing.", "abc.", "collections.")


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


def is_unchanged(program: Program, target: object) -> bool:
    """Whether calling `target` surely makes the coroutine of its body: nothing stands between the two.

    A decorator may do as it likes with it; so may a metaclass, a decorator of its class, and a base that nobody knows.
    """
    if not isinstance(target, Function) or not target.is_async or target.is_generator or target.facts.decorators:
        return False
    if target.owner is None:
        return True
    for ancestor in program.classes.order(target.owner):
        if isinstance(ancestor, LibraryClass):
            if not ancestor.qualified.startswith(_HARMLESS_BASES):
                return False
        elif not isinstance(ancestor, Class) or ancestor.facts.decorators or _has_metaclass(program, ancestor):
            return False
    return True


def _has_metaclass(program: Program, cls: Class) -> bool:
    head = program.text(cls.module.path).cut(*cls.facts.at)[:_HEAD].partition(":\n")[0]
    return "metaclass" in head and "ABCMeta" not in head
