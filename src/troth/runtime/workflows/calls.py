"""Knows how a step's function is called: within the run's time, with its output checked, in its own color."""

import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from troth.color import Color
from troth.runtime.workflows.agents import Turn
from troth.runtime.workflows.contracts import Contract
from troth.runtime.workflows.failures import BudgetExceededError, check_output
from troth.runtime.workflows.link import Callee

__all__ = ["call_for", "failing"]


def call_for(callee: Callee, output: Contract | None, step: str, deadline: float | None) -> Callable[..., object]:
    """The callable that the engine is to call with the step's inputs as keyword arguments."""
    call = callee.action.call
    if callee.is_turn:
        call = functools.partial(_turn, call) if callee.action.color is not Color.ASYNC else _async_turn(call)
    if output is None and deadline is None:
        return call
    if callee.action.color is Color.ASYNC:

        async def acall(**arguments: object) -> object:
            _within(deadline)
            value = await call(**arguments)  # type: ignore[misc]  # ASYNC was the verdict when it was linked
            check_output(step, output, value)
            return value

        return acall

    def scall(**arguments: object) -> object:
        _within(deadline)
        value = call(**arguments)
        if inspect.isawaitable(value):  # a lambda that returns a coroutine: the engine awaits what comes back
            return _checked_later(value, step, output)
        check_output(step, output, value)
        return value

    return scall


async def _checked_later(value: Awaitable[object], step: str, output: Contract | None) -> object:
    awaited = await value
    check_output(step, output, awaited)
    return awaited


def failing(error: Exception) -> Callable[[], NoReturn]:
    """A function that raises `error`."""

    def fail() -> NoReturn:
        raise error

    return fail


def _turn(step: Callable[[Turn], object], **inputs: object) -> object:
    return step(Turn(inputs))


def _async_turn(astep: Callable[..., object]) -> Callable[..., object]:
    async def turn(**inputs: object) -> object:
        return await astep(Turn(inputs))  # type: ignore[misc]

    return turn


def _within(deadline: float | None) -> None:
    if deadline is not None and time.time() > deadline:
        raise BudgetExceededError("The run has used up the time of its budget.")
