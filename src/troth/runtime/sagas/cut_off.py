"""Knows whether an attempt of a step was cut off, although a later one failed by itself.

An attempt that raised is taken at its word: its effect did not happen. One that was cut off (its time was up, its
process died) says nothing, and the attempt after it may well raise "already charged". The engine tells how the last
attempt ended; what came before it is noted on the error here, so that the record has it and a replay decides the same.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import NoReturn

from troth.color import Color
from troth.runtime.engine.current import current_step
from troth.runtime.engine.errors import StepFailedError

__all__ = ["may_have_happened", "watched"]

_NOTE = "An attempt before this one was cut off, so its effect may be there; the step is undone all the same."


def may_have_happened(error: StepFailedError) -> bool:
    """Whether the effect of a step may be there although it failed for good."""
    return error.is_outcome_unknown or _NOTE in str(error.error.get("traceback", ""))


def watched(call: Callable[..., object], color: Color) -> Callable[..., object]:
    """`call`, in its own color, for one step: an error it raises tells whether an attempt before it was cut off."""
    raised: set[int] = set()

    def fail(error: Exception, attempt: int) -> NoReturn:
        if not raised.issuperset(range(1, attempt)):
            error.add_note(_NOTE)
        raised.add(attempt)
        raise error

    async def finish(value: Awaitable[object], attempt: int) -> object:
        try:
            return await value
        except Exception as error:  # noqa: BLE001 -- raised again by `fail`
            fail(error, attempt)

    def wrapper(**arguments: object) -> object:
        attempt = current_step().attempt
        try:
            value = call(**arguments)
        except Exception as error:  # noqa: BLE001
            fail(error, attempt)
        return finish(value, attempt) if inspect.isawaitable(value) else value

    async def awrapper(**arguments: object) -> object:
        attempt = current_step().attempt
        try:
            return await call(**arguments)  # type: ignore[misc]  # ASYNC was the verdict at registration
        except Exception as error:  # noqa: BLE001
            fail(error, attempt)

    return awrapper if color is Color.ASYNC else wrapper
