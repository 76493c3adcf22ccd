"""How a step's function is called: within the run's budget, with its output checked, in its own color."""

import inspect
from collections.abc import Awaitable, Callable
from typing import NoReturn

from troth.color import Color
from troth.runtime.workflows.document.contracts import Contract
from troth.runtime.workflows.execute.agent_calls import CONTRACT, parsed
from troth.runtime.workflows.execute.failures import check_answer, check_output
from troth.runtime.workflows.execute.usage import SPENDING, Spending
from troth.runtime.workflows.link.linker import Callee

__all__ = ["call_for", "failing"]


def call_for(
    callee: Callee,
    output: Contract | None,
    step: str,
    begin: Callable[[], None] | None = None,
    spending: Spending | None = None,
) -> Callable[..., object]:
    """The callable that the engine is to call with the step's inputs as keyword arguments.

    `begin` comes first and may refuse; `spending` is where an agent's use is counted.
    """
    call = callee.action.call
    if output is None and begin is None and spending is None and not callee.is_agent:
        return call

    def checked(value: object) -> object:
        if callee.is_agent:
            value = parsed(value, output)
            check_answer(step, output, value)
        else:
            check_output(step, output, value)
        return value

    async def later(value: Awaitable[object]) -> object:
        return checked(await value)

    if callee.action.color is Color.ASYNC:

        async def acall(**arguments: object) -> object:
            if begin is not None:
                begin()
            token, contract = SPENDING.set(spending), CONTRACT.set(output)
            try:
                return checked(await call(**arguments))  # type: ignore[misc]  # ASYNC was the verdict when it was linked
            finally:
                SPENDING.reset(token)
                CONTRACT.reset(contract)

        return acall

    def scall(**arguments: object) -> object:
        if begin is not None:
            begin()
        value = call(**arguments)
        if inspect.isawaitable(value):  # a lambda that returns a coroutine: the engine awaits what comes back
            return later(value)
        return checked(value)

    return scall


def failing(error: Exception) -> Callable[[], NoReturn]:
    """A function that raises `error`."""

    def fail() -> NoReturn:
        raise error

    return fail
