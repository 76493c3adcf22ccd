"""Find where awaitables are in a value: in its alternatives and in the containers it consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.values import (
    AsyncContext,
    AsyncGenerator,
    Awaitable,
    Builtin,
    CallableType,
    ClassObject,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    Lambda,
    ModuleValue,
    Nothing,
    SuperOf,
    Table,
    TupleOf,
    Union,
    Value,
    members_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = [
    "AWAITABLES",
    "NEVER",
    "as_one",
    "awaitables",
    "has_dict",
    "holds_awaitable",
    "is_awaitable",
    "is_future",
    "is_mixed",
    "is_sure",
    "may_be_awaited",
]


_DEEPEST = 4  # containers in containers
AWAITABLES = (Coroutine, AsyncGenerator, AsyncContext)
# Values that neither are awaitables nor hold any.
NEVER = frozenset({FunctionValue, Instance, External, ClassObject, ModuleValue, Nothing, Lambda, CallableType, SuperOf})


def awaitables(value: Value | None, depth: int = 0) -> Iterator[Coroutine | AsyncGenerator | AsyncContext | Awaitable]:
    """The awaitables in `value`, in its alternatives and in the containers it consists of."""
    if value is None or depth > _DEEPEST:
        return
    if isinstance(value, AWAITABLES) or (type(value) is Awaitable and value.site is not None):
        yield value
    elif isinstance(value, Union):
        for member in value.members:
            yield from awaitables(member, depth + 1)
    elif isinstance(value, Builtin):
        for member in value.args:
            yield from awaitables(member, depth + 1)
    elif isinstance(value, TupleOf):
        for member in value.items:
            yield from awaitables(member, depth + 1)
    elif isinstance(value, Table):
        for member in value.values:
            yield from awaitables(member, depth + 1)


def is_awaitable(value: Value | None) -> bool:
    """Whether `value` itself is an awaitable whose result nobody has without awaiting it."""
    return isinstance(value, AWAITABLES) or is_future(value)


def is_future(value: Value | None) -> bool:
    """Whether `value` is an awaitable that is kept whether somebody awaits it or not."""
    return type(value) is Awaitable and value.site is not None and value.site.awaitable == "future"


def holds_awaitable(value: Value | None) -> bool:
    """Whether there is any awaitable in `value`."""
    return value is not None and type(value) not in NEVER and _holds_one(value, 0)


def _holds_one(value: Value, depth: int) -> bool:
    """The same as asking `promises` for the first one, in less time: this is asked of nearly every value."""
    if isinstance(value, AWAITABLES):
        return True
    kind = type(value)
    parts: tuple[Value | None, ...]
    if kind is Union:
        parts = value.members  # type: ignore[attr-defined]
    elif kind is Builtin:
        parts = value.args  # type: ignore[attr-defined]
    elif kind is TupleOf:
        parts = value.items  # type: ignore[attr-defined]
    elif kind is Table:
        parts = value.values  # type: ignore[attr-defined]
    else:
        return kind is Awaitable and value.site is not None  # type: ignore[attr-defined]
    if depth < _DEEPEST:
        for part in parts:
            if part is not None and type(part) not in NEVER and _holds_one(part, depth + 1):
                return True
    return False


def may_be_awaited(value: Value | None) -> bool:
    """Whether there is something in `value` that could be awaited, be it that no call was seen to make it."""
    if isinstance(value, Union | TupleOf | Table | Builtin):
        parts = (
            value.members
            if isinstance(value, Union)
            else value.items
            if isinstance(value, TupleOf)
            else value.values
            if isinstance(value, Table)
            else value.args
        )
        return any(map(may_be_awaited, parts))
    return isinstance(value, (*AWAITABLES, Awaitable))


def is_sure(value: Value | None) -> bool:
    """Whether every alternative is an awaitable, or nothing at all."""
    if not isinstance(value, Union):
        return True
    return all(isinstance(m, Nothing) or is_awaitable(m) for m in value.members)


def is_mixed(value: Value | None) -> bool:
    """Whether a list or tuple holds awaitables beside other things."""
    items = (
        value.items
        if isinstance(value, TupleOf)
        else members_of(value.args[0])
        if isinstance(value, Builtin) and value.args
        else ()
    )
    return any(isinstance(i, AWAITABLES) for i in items) and not all(isinstance(i, AWAITABLES) for i in items)


def has_dict(value: Value | None) -> bool:
    """Whether there is a dict in `value`, or in the list that it is, with an awaitable in it."""
    if isinstance(value, Builtin) and value.name in {"list", "tuple", "set"} and value.args:
        return any(has_dict(m) for m in members_of(value.args[0]))
    return (isinstance(value, Table) or (isinstance(value, Builtin) and value.name == "dict")) and holds_awaitable(
        value
    )


def as_one(value: Value | None) -> Builtin | None:
    """A builtin collection; one that was filled on some of several paths is one collection all the same."""
    if isinstance(value, Builtin):
        return value
    members = members_of(value)
    first = members[0]
    if not isinstance(first, Builtin) or not all(isinstance(m, Builtin) and m.name == first.name for m in members):
        return None
    return Builtin(first.name, (union([m.args[0] for m in members if isinstance(m, Builtin) and m.args]),))
