"""Find the function or the call under the cursor, its color, and who calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from troth.analysis.facts.model import At
from troth.analysis.findings import Reason
from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.symbols import Class, Function, Module
from troth.analysis.semantics.values import (
    AsyncContext,
    AsyncGenerator,
    Awaitable,
    CallableType,
    ClassObject,
    Coroutine,
    FunctionValue,
    Lambda,
    Value,
    members_of,
)
from troth.color import Color

__all__ = [
    "Gives",
    "Painted",
    "call_at",
    "callers_of",
    "class_on",
    "color_of",
    "function_around",
    "function_on",
    "functions_in",
]

Gives = Literal["coroutine", "generator", "context", "awaitable"]
_AWAITABLES = (Coroutine, AsyncGenerator, AsyncContext, Awaitable)
_KINDS: dict[str, Gives] = {"m": "context", "g": "generator", "a": "coroutine"}  # by the flags of tables


class Painted(NamedTuple):
    """The color of something that is called, what it is called, and why the color is known.

    What is async `gives` something of this kind.
    """

    color: Color
    name: str
    reasons: tuple[Reason, ...] = ()
    gives: Gives = "coroutine"


def functions_in(module: Module) -> Iterator[Function]:
    """All functions and methods of a file."""
    return (module.function(number) for number in range(1, len(module.facts.functions)))


def function_on(module: Module, line: int) -> Function | None:
    """The function whose `def` stands on a line."""
    return next((function for function in functions_in(module) if function.facts.at[0] == line), None)


def class_on(module: Module, line: int) -> Class | None:
    """The class whose `class` stands on a line."""
    classes = (module.cls(number) for number in range(len(module.facts.classes)))
    return next((cls for cls in classes if cls.facts.at[0] == line), None)


def function_around(module: Module, line: int, column: int) -> Function:
    """The innermost function around a place; the module itself at its top level."""
    inside = [function for function in functions_in(module) if _covers(function.facts.at, line, column)]
    return max(inside, key=lambda function: function.facts.at[:2], default=module.function(0))


def call_at(program: Program, module: Module, line: int, column: int) -> Call | None:
    """The innermost call around a place."""
    calls = program.calling.of(function_around(module, line, column))
    inside = [call for call in calls if _covers(call.at, line, column)]
    return max(inside, key=lambda call: (call.at[:2], [-end for end in call.at[2:]]), default=None)


def _covers(at: At, line: int, column: int) -> bool:
    return tuple(at[:2]) <= (line, column) <= tuple(at[2:])


def callers_of(program: Program, function: Function) -> Iterator[Call]:
    """The calls of a function in the project, of those whose target is known."""
    for caller in program.calling.functions_naming({function.name}):
        for call in program.calling.of(caller):
            if call.text.rpartition(".")[2] == function.name and function in targets(call.callee):
                yield call


def targets(value: Value | None) -> list[Function]:
    """The functions of the project that a callee may be."""
    return [
        member.function
        for member in members_of(value)
        if isinstance(member, FunctionValue) and isinstance(member.function, Function)
    ]


def color_of(program: Program, callee: Value | None, text: str) -> Painted:
    """The color of what is called, as far as it is known."""
    painted = [_color_of_value(program, member, text) for member in members_of(callee)]
    colors = {part.color for part in painted}
    if len(colors) == 1:
        return painted[0]
    reasons = tuple(reason for part in painted for reason in part.reasons)
    return Painted(Color.UNKNOWN if Color.UNKNOWN in colors else Color.EITHER, text, reasons)


def color_of_function(program: Program, function: Function) -> Painted:
    """The color of a function of the project."""
    return _color_of_value(program, FunctionValue(function), function.qualname)


def _color_of_value(program: Program, value: Value | None, text: str) -> Painted:
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        return _own(program, value, value.function)
    if isinstance(value, FunctionValue) and isinstance(value.function, LibraryFunction):
        return _library(program, value, value.function)
    if isinstance(value, ClassObject):
        place = value.cls.place if isinstance(value.cls, Class) else (None, None)
        return Painted(Color.SYNC, value.cls.name, (Reason(f"`{value.cls.name}` is a class", *place),))
    if isinstance(value, CallableType):
        is_async = _is_awaitable(value.result)
        color = Color.ASYNC if is_async else Color.UNKNOWN if value.result is None else Color.SYNC
        return Painted(color, text, program.reasons.of_callable(value) if is_async else ())
    if isinstance(value, Lambda):
        return Painted(Color.ASYNC if _is_awaitable(value.evaluate()) else Color.SYNC, "lambda")
    return Painted(Color.UNKNOWN, text)


def _own(program: Program, value: FunctionValue, function: Function) -> Painted:
    effect = program.effects.of(function)
    if effect in ("coroutine", "generator", "context"):
        return Painted(Color.ASYNC, function.qualname, program.reasons.of_own(value, function), effect)
    if effect == "unknown":
        return Painted(Color.UNKNOWN, function.qualname)
    awaitable_results = [_is_awaitable(result) for result in members_of(program.inferred(function))]
    if any(awaitable_results):
        awaitable = next(result for result in members_of(program.inferred(function)) if _is_awaitable(result))
        site = getattr(awaitable, "site", None)
        reasons = program.reasons.of_returning(function, site, "")
        color = Color.ASYNC if all(awaitable_results) else Color.EITHER
        return Painted(color, function.qualname, reasons, _kind_of(awaitable))
    return Painted(Color.SYNC, function.qualname, (Reason(f"`{function.qualname}` is a plain `def`", *function.place),))


def _library(program: Program, value: FunctionValue, function: LibraryFunction) -> Painted:
    if "o" in function.flags:
        return Painted(Color.EITHER, function.qualname)
    if set(function.flags) & set("agmw"):
        kinds = [kind for flag, kind in _KINDS.items() if flag in function.flags]
        reasons = program.reasons.of_library(value, function)
        return Painted(Color.ASYNC, function.qualname, reasons, kinds[0] if kinds else "awaitable")
    package = function.qualname.partition(".")[0]
    return Painted(Color.SYNC, function.qualname, (Reason(f"`{function.qualname}` of {package} is a sync function"),))


def _kind_of(awaitable: Value | None) -> Gives:
    if isinstance(awaitable, AsyncGenerator):
        return "generator"
    if isinstance(awaitable, AsyncContext):
        return "context"
    return "coroutine" if isinstance(awaitable, Coroutine) else "awaitable"


def _is_awaitable(value: Value | None) -> bool:
    return isinstance(value, _AWAITABLES)


def unannotated_callables(program: Program, function: Function) -> Sequence[tuple[str, Painted]]:
    """The parameters of a function that have no annotation and are called in it, each with the color it has there."""
    unannotated = {name for name, param in function.params.items() if param[1] is None}
    called = dict.fromkeys(call.text for call in program.calling.of(function) if call.text in unannotated)
    callables: list[tuple[str, Painted]] = []
    for name in called:
        values = _passed_values(program, function, name)
        painted = {color_of(program, value, name).color for value in values}
        if painted and Color.UNKNOWN not in painted:
            color = painted.pop() if len(painted) == 1 else Color.EITHER
            callables.append((name, Painted(color, name)))
    return callables


def _passed_values(program: Program, function: Function, name: str) -> list[Value | None]:
    """What the callers of a function in the project give to one of its parameters."""
    position = list(function.params).index(name) - (1 if function.owner is not None else 0)
    values: list[Value | None] = []
    for call in callers_of(program, function):
        by_name = [value for keyword, value in call.given if keyword == name]
        in_order = [value for keyword, value in call.given if keyword is None]
        values += by_name or in_order[position : position + 1]
    return values
