"""What an expression can stand for: instances, classes, functions, coroutines, or several of these.

`None` (Python's) always means unknown, and unknown stays unknown. The classes are plain rather than frozen dataclasses
because hundreds of thousands are made in a run; nobody changes one after it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.incident import Site
    from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
    from troth.analysis.semantics.symbols import Class, Function, Module

__all__ = [
    "NONE",
    "OF_CLASS",
    "AsyncContext",
    "AsyncGenerator",
    "Awaitable",
    "AwaitableContext",
    "AwaitableObject",
    "Builtin",
    "CallableType",
    "ClassObject",
    "Coroutine",
    "External",
    "FunctionValue",
    "Instance",
    "Lambda",
    "ModuleValue",
    "Nothing",
    "SuperOf",
    "Table",
    "TupleOf",
    "Union",
    "Value",
    "Why",
    "members_of",
    "says_something",
    "union",
]

OF_CLASS = "{class}"
"""Where `Why` names the class: "`store` is {class} (annotated in `load`)"."""
# Why an instance is believed to be of its class: a sentence with `OF_CLASS` in it, and the place that shows it.
Why = tuple[str, str, int]


class Value:
    """Anything but unknown."""

    __slots__ = ()


class Nothing(Value):
    """The value None."""

    __slots__ = ()


NONE = Nothing()


class Instance(Value):
    """An object of a class of the project or of a library; `args` are its type arguments where known."""

    __slots__ = ("args", "cls", "guess", "why")

    def __init__(
        self,
        cls: Class | LibraryClass,
        args: tuple[Value | None, ...] = (),
        why: Why | None = None,
        *,
        guess: bool = False,
    ) -> None:
        self.cls = cls
        self.args = args
        self.why = why
        self.guess = guess


class Builtin(Value):
    """An object of a builtin type: `str`, `dict`, `list`, … None of their methods is a coroutine function."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Value | None, ...] = ()) -> None:
        self.name = name
        self.args = args


class TupleOf(Value):
    """A tuple whose items are known one by one."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Value | None, ...]) -> None:
        self.items = items


class Table(Value):
    """A dict display: what stands under which constant key."""

    __slots__ = ("by_key", "values")

    def __init__(self, by_key: dict[str, Value | None], values: tuple[Value | None, ...]) -> None:
        self.by_key = by_key
        self.values = values


class ClassObject(Value):
    """A class itself."""

    __slots__ = ("cls",)

    def __init__(self, cls: Class | LibraryClass) -> None:
        self.cls = cls


class FunctionValue(Value):
    """A function, or a method bound to its receiver."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Function | LibraryFunction, receiver: Value | None = None) -> None:
        self.function = function
        self.receiver = receiver


class SuperOf(Value):
    """What `super()` gives in a method of `cls`."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Class, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver


class External(Value):
    """Something that comes from a library of which nothing is known, by the path that leads to it."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Lambda(Value):
    """A lambda, with the scope it was written in."""

    __slots__ = ("body", "evaluate")

    def __init__(self, body: Node, evaluate: Callable[[], Value | None]) -> None:
        self.body = body
        self.evaluate = evaluate


class CallableType(Value):
    """Something callable of which only the result is known, and how."""

    __slots__ = ("how", "result")

    def __init__(self, result: Value | None, how: str = "") -> None:
        self.result = result
        self.how = how


class ModuleValue(Value):
    """A module of the project, or of a library by its dotted name."""

    __slots__ = ("module", "name")

    def __init__(self, name: str, module: Module | None = None) -> None:
        self.name = name
        self.module = module


class Coroutine(Value):
    """A coroutine object: the awaitable of a call that nobody has awaited yet."""

    __slots__ = ("evaluate", "site")

    def __init__(self, site: Site | None, evaluate: Callable[[], Value | None]) -> None:
        self.site = site
        self.evaluate = evaluate


class AwaitableObject(Coroutine):
    """An object with `__await__` of its own, where every other site awaits what this callee gives."""

    __slots__ = ("instance",)

    def __init__(self, site: Site | None, evaluate: Callable[[], Value | None], instance: Instance) -> None:
        super().__init__(site, evaluate)
        self.instance = instance


class AsyncGenerator(Value):
    """What calling an async generator function gives."""

    __slots__ = ("evaluate", "site")

    def __init__(self, site: Site | None, evaluate: Callable[[], Value | None]) -> None:
        self.site = site
        self.evaluate = evaluate


class AsyncContext(Value):
    """What calling an `@asynccontextmanager` function gives."""

    __slots__ = ("evaluate", "site")

    def __init__(self, site: Site | None, evaluate: Callable[[], Value | None]) -> None:
        self.site = site
        self.evaluate = evaluate


class AwaitableContext(AsyncContext):
    """What `session.get()` of a library gives: to be awaited or to be entered, with the same result."""

    __slots__ = ()


class Awaitable(Value):
    """Something else that can be awaited.

    `kind` is "task", "future", "lazy" for what does nothing unless it is awaited, or "" for what is only annotated.
    """

    __slots__ = ("kind", "result", "site")

    def __init__(self, result: Value | None, kind: str = "", site: Site | None = None) -> None:
        self.result = result
        self.kind = kind
        self.site = site


class Union(Value):
    """One of several values; a member may be unknown."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[Value | None, ...]) -> None:
        self.members = members


_TOO_MANY = 40  # beyond this nothing useful can be said about all of them


def says_something(annotated: Value | None) -> bool:
    """Whether an annotation tells what may be behind it: `Any` and `Any | None` leave that to what is assigned."""
    return any(member is not None and not isinstance(member, Nothing) for member in members_of(annotated))


def union(values: Iterable[Value | None]) -> Value | None:
    """One of `values`; the single one where they are all the same, unknown where all are unknown."""
    values = list(values)
    if not values:
        return None
    first = values[0]
    for value in values:
        if value is not first:
            break
    else:
        return first
    members: list[Value | None] = []
    for value in values:
        for member in value.members if type(value) is Union else (value,):
            for later in members:  # plain loops: this is asked for nearly every value
                if member is later or (type(member) is type(later) and _same(member, later)):
                    break
            else:
                members.append(member)
                if len(members) > _TOO_MANY:
                    return None  # at once: a table of a thousand entries would be compared a million times
    if not members or all(m is None for m in members):
        return None
    if len(members) == 1:
        return members[0]
    return Union(tuple(members))


def members_of(value: Value | None) -> tuple[Value | None, ...]:
    """The alternatives of `value`; itself where there is only one."""
    return value.members if isinstance(value, Union) else (value,)


def _has_same_items(one: Any, other: Any) -> bool:
    """Whether two receivers are no dicts or lists with other contents: `rows.values` of an empty and a filled one."""
    if one is other or not isinstance(one, Builtin | Table) or not isinstance(other, Builtin | Table):
        return True
    return type(one) is type(other) and _same(one, other)


def _same(one: Any, other: Any) -> bool:
    """Whether two values of one kind, which are not the same object, say the same."""
    kind = type(one)
    if kind is Instance:
        return one.cls is other.cls and bool(one.args == other.args)
    if kind is Builtin:
        return one.name == other.name and bool(one.args == other.args)
    if kind is FunctionValue:
        return one.function is other.function and _has_same_items(one.receiver, other.receiver)
    if kind is ClassObject:
        return one.cls is other.cls
    if kind is External:
        return bool(one.path == other.path)
    if kind is ModuleValue:
        return bool(one.name == other.name)
    if isinstance(one, Coroutine | AsyncGenerator | AsyncContext):
        return one.site is not None and one.site is other.site
    return False
