"""Tell the objects with `__await__` that have done nothing yet when they are made: dropping one drops its work.

Many start their work when they are made, and let go of it runs all the same. One whose class is wholly known, and whose
`__init__` only sets attributes, does nothing until it is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, INDEX_BASE, KIND
from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import callee_text, decorator_name, last_name
from troth.analysis.facts.nodes import of_kind, walk
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.values import Instance

__all__ = ["is_idle"]

_BARE = frozenset({"Awaitable", "Coroutine", "Generic", "Protocol", "ABC", "object"})
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__call__", "__getattr__"})
_HARMLESS = frozenset(
    {"super", "super().__init__", "isinstance", "dict", "list", "tuple", "set", "str", "int", "float", "bool", "len"}
    | {"ValueError", "TypeError", "field"}
)


def is_idle(program: Inference, instance: Instance, target: Function | None) -> bool:
    """Whether a call that gives `instance` has made it anew, and nothing of its work has begun.

    `target` is the sync function that gives it, if it is not the class itself that is called.
    """
    cls = instance.cls
    if not isinstance(cls, Class) or program.classes.holder(cls, "__await__") is None:
        return False
    is_idle_class = _is_plain_data(cls) if cls.facts.decorators else _does_nothing(program, cls)
    return is_idle_class and (target is None or _makes_it(target, cls))


def _is_plain_data(cls: Class) -> bool:
    """Whether it is a dataclass without a body of its own for making it."""
    if not _MAKING.isdisjoint(cls.methods):
        return False
    decorators = cls.facts.decorators
    has_bases = any(
        last_name(base[INDEX_BASE] if base[KIND] == "index" else base) not in _BARE for base in cls.facts.bases
    )
    return not has_bases and all(decorator_name(decorator) == "dataclass" for decorator in decorators)


def _does_nothing(program: Inference, cls: Class) -> bool:
    for ancestor in program.classes.order(cls):
        if ancestor is None:
            return False
        if not isinstance(ancestor, Class):
            if ancestor.name not in _BARE:
                return False
            continue
        if ancestor is not cls and ancestor.facts.decorators:
            return False
        for name in _MAKING & set(ancestor.methods):
            if name != "__init__":
                return False
            calls = {call for index in ancestor.methods[name] for call in ancestor.module.function(index).facts.calls}
            if not calls <= _HARMLESS:
                return False
    return True


def _makes_it(function: Function, cls: Class) -> bool:
    """Whether all that a sync function does is to make the object and to return it."""
    if function.facts.decorators or function.is_generator:
        return False
    values = list(returned(function.body()))
    makes = [value for value in values if _is_made(value, cls)]
    calls: list[Node] = list(of_kind(function.body(), "call"))
    return (
        bool(values)
        and len(makes) == len(values) == len(calls)
        and not any(node[KIND] in {"def", "lambda", "comp"} for node in walk(body_of(function.facts)))
    )


def _is_made(value: Node, cls: Class) -> bool:
    return value[KIND] == "call" and callee_text(value[CALL_FUNC]).rpartition(".")[2] in {cls.name, "cls"}
