"""What the callers of a function give to a parameter that says nothing about itself.

Asked only where it matters: a method with the name of an async one is called on the parameter, or on the attribute it
was put into. All callers of the project have to agree on one class; what they give is a guess all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    INDEX_BASE,
    INDEX_KEY,
    ITEMS,
    KIND,
    NAME_ID,
)
from troth.analysis.facts.model import PARAM_ANNOTATION, PARAM_KIND
from troth.analysis.facts.names import decorator_name, last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.semantics.resolve.color_checks import asks_for_color
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    OF_CLASS,
    Awaitable,
    CallableType,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    Union,
    Value,
    members_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.resolve.library import LibraryClass
    from troth.analysis.semantics.summary import Call

__all__ = ["Passed"]

_MOST_CLASSES = 3  # of which a function that makes them gives one
_MOST_CALLERS = 12  # a name that more functions call is hardly one function's own, and walking them all costs too much


class Passed:
    """Asks callers; every answer is kept once it is final."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._known: MutableMapping[tuple[Function, str], Value | None] = program.answers()
        self._asking: set[tuple[Function, str]] = set()

    def behind(self, node: Node, function: Function | None, wanted: str) -> Value | None:
        """What a name or an attribute of `self` holds, by what callers gave; `wanted` is the method called on it."""
        if function is None or wanted not in self._program.async_names:
            return None
        if node[KIND] == "name":
            around: Function | None = function
            while around is not None:
                param = around.params.get(node[NAME_ID])
                if param is not None:
                    return self.to(around, node[NAME_ID]) if _says_nothing(param[1]) else None
                around = around.parent
        elif node[KIND] == "attr" and node[ATTR_BASE] == ("name", "self"):
            owner = function.class_around
            for name, index, annotation, value in () if owner is None else owner.facts.self_attributes:
                if name == node[ATTR_NAME] and annotation is None and value is not None and value[KIND] == "name":
                    setter = owner.module.function(index)  # type: ignore[union-attr]
                    param = setter.params.get(value[NAME_ID])
                    return None if param is None or not _says_nothing(param[1]) else self.to(setter, value[NAME_ID])
        return None

    def to(self, function: Function, name: str) -> Value | None:
        """The object that every caller gives to the parameter `name`."""
        key = (function, name)
        if key in self._known:
            return self._known[key]
        if key in self._asking:
            self._program.too_early()
            return None
        self._asking.add(key)
        try:
            value, is_final = self._ask(function, name)
        finally:
            self._asking.discard(key)
        if is_final:
            self._known[key] = value
        return value

    def _ask(self, function: Function, name: str) -> tuple[Value | None, bool]:
        values = self._given(function, name)
        if not values:
            return None, values is not None
        classes: set[Class | LibraryClass] = {m.cls for v in values for m in members_of(v) if isinstance(m, Instance)}
        if not 0 < len(classes) <= _MOST_CLASSES or sum(v is not None for v in values) * 2 <= len(values):
            return None, True
        if len(classes) > 1 and not (all(isinstance(v, Union) for v in values) or all(map(_is_of_project, values))):
            return None, True  # each gives another, and of some nothing is known
        if any(isinstance(m, External) for v in values for m in members_of(v)):
            return None, True  # somebody gives an object of a library, of which nobody knows the class
        why = (f"the callers of `{function.qualname}` give it {OF_CLASS}", *function.place)
        return union([Instance(cls, (), why, guess=True) for cls in sorted(classes, key=lambda cls: cls.name)]), True

    def _given(self, function: Function, name: str) -> list[Value | None] | None:
        """What each call of the project gives to a parameter; None as long as a caller is being walked."""
        owner, called = function.owner, {function.name}
        if (
            owner is not None and function.name == "__init__"
        ):  # that of subclasses, too, where they have none of their own
            children = self._program.classes.children(owner)
            called = {owner.name, *(child.name for child in children if "__init__" not in child.methods)}
        callers = list(self._program.index.functions_naming(called))
        if not callers or len(callers) > _MOST_CALLERS:
            return []
        values: list[Value | None] = []
        for caller in callers:
            if self._program.is_walking(caller):
                return None  # what it gives is not known yet
            values += [
                _argument(call, function, name)
                for call in self._program.summary(caller).calls
                if self._is_of(call, function)
            ]
        return values

    def _is_of(self, call: Call, function: Function) -> bool:
        for member in members_of(call.callee):
            if isinstance(member, FunctionValue) and member.function is function:
                return True
            if isinstance(member, ClassObject) and isinstance(member.cls, Class) and function.name == "__init__":
                initializer = self._program.classes.member(member.cls, "__init__", member)
                if isinstance(initializer, FunctionValue) and initializer.function is function:
                    return True
        return False

    def called(self, name: str, function: Function) -> Value | None:
        """What an async function calls, where it is a parameter: a coroutine function, if every caller gives one."""
        param = function.params.get(name)
        if param is None or param[PARAM_KIND] in {"*", "**"} or not _may_be_any_function(param[PARAM_ANNOTATION]):
            return None
        key = (function, f"{name}()")
        if key in self._known:
            return self._known[key]
        if key in self._asking:
            self._program.too_early()
            return None
        self._asking.add(key)
        try:
            given = self._given(function, name)
        finally:
            self._asking.discard(key)
        if given is None:
            return None
        value = None
        if given and all(map(_makes_a_coroutine, given)) and not _asks_or_sets(function, name):
            how = f"every caller of `{function.qualname}` gives an `async def` for `{name}`"
            value = CallableType(Awaitable(None), how)
        self._known[key] = value
        return value

    def wrapped(self, function: Function, name: str) -> Value | None:
        """What a decorator of the project is given: a coroutine function, if all that it decorates are."""
        params = [p for p in function.facts.params if p[0] not in {"self", "cls"}]
        if not params or params[0][0] != name:
            return None
        decorator = function.parent or function
        is_outer = decorator is function
        decorated = [
            f
            for f in self._program.index.decorated_with(decorator.name)
            if self._is_put_on(decorator, f, is_outer=is_outer)
        ]
        if not decorated or not all(f.is_async and not f.is_generator for f in decorated):
            return None
        return CallableType(Awaitable(None), f"every function that `{decorator.name}` decorates is `async def`")

    def _is_put_on(self, decorator: Function, function: Function, *, is_outer: bool) -> bool:
        """Whether it decorates the function; the outer one gets it only where it is not given something else first."""
        for node in function.facts.decorators:
            if decorator_name(node) == decorator.name and not (is_outer and node[KIND] == "call" and node[CALL_ARGS]):
                value = self._program.effects.decorator(function, node)
                if isinstance(value, FunctionValue) and value.function is decorator:
                    return True
        return False


def _says_nothing(annotation: Node | None) -> bool:
    """Whether a parameter has no annotation, or one that lets in anything."""
    return annotation is None or (annotation[KIND] in {"name", "attr"} and last_name(annotation) in {"Any", "object"})


def _may_be_any_function(annotation: Node | None) -> bool:
    """Whether an annotation does not tell what calling the parameter gives."""
    if annotation is not None and annotation[KIND] == "index":
        parts = annotation[INDEX_KEY][ITEMS] if annotation[INDEX_KEY][KIND] == "tuple" else ()
        return last_name(annotation[INDEX_BASE]) == "Callable" and bool(parts) and _says_nothing(parts[-1])
    return _says_nothing(annotation) or last_name(annotation) == "Callable"  # type: ignore[arg-type]


def _makes_a_coroutine(value: Value | None) -> bool:
    called = value.function if isinstance(value, FunctionValue) else None
    return isinstance(called, Function) and called.is_async and not called.is_generator and not called.facts.decorators


def _asks_or_sets(function: Function, name: str) -> bool:
    """Whether a function asks which color it was given, or puts something else in the place of the parameter."""
    return any(map(asks_for_color, function.facts.calls)) or any(
        ("name", name) in statement[ASSIGN_TARGETS] for statement in of_kind(function.body(), "assign")
    )


def _is_of_project(value: Value | None) -> bool:
    return isinstance(value, Instance) and isinstance(value.cls, Class)


def _argument(call: Call, function: Function, name: str) -> Value | None:
    params = [p[0] for p in function.facts.params if p[3] in {"", "/"}]
    if params and function.owner is not None and not function.decorated_with("staticmethod"):
        params = params[1:]
    for position, (keyword, value) in enumerate(call.given):
        if keyword == name or (keyword is None and position < len(params) and params[position] == name):
            return value
    return None
