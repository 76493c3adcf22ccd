"""Misjudged callable.

What it finds: `iscoroutinefunction(x)` where `x` is something it says False of although calling it gives a coroutine: an
object with an async `__call__`, a lambda or a plain function that returns a coroutine, an async function behind a plain
wrapper.
Why it matters: the code takes the branch for plain functions, calls it, and drops the coroutine: the work never happens.
How to repair: call it and ask what came back: `inspect.isawaitable(result)`; or `troth.bridge.color_of(x)`.
How sure the fix is: none is offered; the branch that follows has to change too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.program.calling import names_of
from troth.analysis.program.colors import calling_makes_a_coroutine
from troth.analysis.program.entities import Function
from troth.analysis.program.values import FunctionValue, Instance, Lambda
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.program import Program
    from troth.analysis.program.values import Value

CASES = [
    Case(
        "a callable object",
        bad="import inspect\nclass Handler:\n    async def __call__(self): ...\ndef is_async(handler: Handler):\n    return inspect.iscoroutinefunction(handler)  # here\n",
    ),
    Case(
        "a plain function that hands a coroutine on",
        bad="import asyncio\nasync def load(): ...\ndef start():\n    return load()\ndef main():\n    if asyncio.iscoroutinefunction(start):  # here\n        return 1\n",
    ),
    Case(
        "an async function",
        good="import inspect\nasync def load(): ...\ndef main():\n    return inspect.iscoroutinefunction(load)\n",
    ),
    Case(
        "its `__call__`",
        good="import inspect\nclass Handler:\n    async def __call__(self): ...\ndef is_async(handler: Handler):\n    return inspect.iscoroutinefunction(handler.__call__)\n",
    ),
    Case("anything", good="import inspect\ndef main(f):\n    return inspect.iscoroutinefunction(f)\n"),
    Case(
        "a plain function",
        good="import inspect\ndef load():\n    return 1\ndef main():\n    return inspect.iscoroutinefunction(load)\n",
    ),
]

_QUESTIONS = frozenset(
    {"asyncio.iscoroutinefunction", "asyncio.coroutines.iscoroutinefunction", "inspect.iscoroutinefunction"}
)


@rule("T409", "misjudged-callable", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Questions that get the wrong answer."""
    for caller in program.calling.asked_naming({"iscoroutinefunction"}):
        if any("__call__" in callee for callee in caller.facts.calls) or _is_test(caller):
            continue
        for call in program.calling.of(caller):
            if call.given and any(name in _QUESTIONS for name in names_of(call.callee)):
                value = call.given[0][1]
                what = _misjudged(program, value)
                if what and "__call__" not in _text(program, caller):
                    message = f"`{call.text}(…)` says False of {what}, although calling it gives a coroutine"
                    yield tell_at(
                        program, "T409", "misjudged-callable", caller, call.at, message, sure=False,
                        reasons=(_reason(value, caller),), subject=call.text,
                    )  # fmt: skip


def _is_test(function: Function) -> bool:
    return "test" in function.module.path


def _text(program: Program, function: Function) -> str:
    return program.text(function.module.path).cut(*function.facts.at).replace("async def __call__", "")


def _misjudged(program: Program, value: Value | None) -> str:
    """What it is, if the question gets the wrong answer; "" if not."""
    if not calling_makes_a_coroutine(program, value):
        return ""
    if isinstance(value, Instance):
        return f"an object of `{value.cls.name}`"
    if isinstance(value, Lambda):
        return "a lambda"
    if isinstance(value, FunctionValue) and isinstance(value.function, Function) and not value.function.is_async:
        return (
            ""
            if value.function.facts.decorators
            else f"`{value.function.name}`, a plain function that returns a coroutine"
        )
    return ""


def _reason(value: Value | None, caller: Function) -> Reason:
    if isinstance(value, Instance):
        return Reason(
            f"`{value.cls.name}.__call__` is `async def`, which the question does not look at",
            *getattr(value.cls, "place", caller.place),
        )
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        return Reason(f"`{value.function.qualname}` is `def` and returns a coroutine", *value.function.place)
    return Reason("the lambda returns a coroutine", *caller.place)
