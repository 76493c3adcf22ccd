"""What color a function has that is handed over instead of being called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import KIND
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable, is_no_awaitable
from troth.analysis.semantics.infer.virtual_dispatch import hands_on_otherwise, overridden_otherwise
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Coroutine, FunctionValue, Instance, Lambda, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.values import Value

__all__ = ["arguments_of", "calling_gives_nothing_to_await", "calling_makes_a_coroutine", "definition_of"]


def calling_makes_a_coroutine(program: Program, value: Value | None) -> bool:
    """Whether whoever calls `value` gets a coroutine, whichever alternative it is."""
    if isinstance(value, Union):
        return all(calling_makes_a_coroutine(program, member) for member in value.members)
    if isinstance(value, Lambda):
        return isinstance(value.evaluate(), Coroutine)
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        called = program.classes.member(value.cls, "__call__", value)
        return isinstance(called, FunctionValue) and calling_makes_a_coroutine(program, called)
    if not isinstance(value, FunctionValue):
        return False
    function = value.function
    if not isinstance(function, Function):
        return "a" in function.flags and "o" not in function.flags
    if overridden_otherwise(program, function, value.receiver):
        return False
    effect = program.effects.of(function)
    return effect == "coroutine" or (
        effect == "plain" and not function.is_abstract and isinstance(program.calls.result(value), Coroutine)
    )


def calling_gives_nothing_to_await(program: Program, value: Value | None) -> bool:
    """Whether whoever calls `value` certainly gets something that cannot be awaited."""
    if isinstance(value, Lambda):
        return is_no_awaitable(value.evaluate(), program)
    if not isinstance(value, FunctionValue) or not isinstance(value.function, Function):
        return False
    function = value.function
    if overridden_otherwise(program, function, value.receiver) or hands_on_otherwise(program, function, value.receiver):
        return False
    return gives_no_awaitable(program, function)


def definition_of(value: Value | None) -> Function | None:
    """The function of the project that `value` stands for; None for lambdas, objects and libraries."""
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        return value.function
    return None


def arguments_of(call: Call) -> Iterator[tuple[str, Node, Value | None]]:
    """The arguments of a call that are written out: position or keyword, as written, and what it stands for."""
    place = 0
    for position, node in enumerate(call.node[2]):
        if node[KIND] == "star":
            return  # positions after it are anybody's guess
        yield str(position), node, call.given[place][1]
        place += 1
    for keyword, node in call.node[3]:
        if keyword is not None:
            yield keyword, node, call.given[place][1]
        place += 1
