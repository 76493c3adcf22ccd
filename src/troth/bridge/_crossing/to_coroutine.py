"""What the caller wants run: one coroutine, made from whatever they gave."""

import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType, FunctionType
from typing import Any, cast

from troth.bridge._color.classify import classify
from troth.bridge._errors import NotRunnableError

__all__ = ["check_seconds", "close_refused", "to_coroutine"]

_IS_ASYNC = inspect.CO_COROUTINE  # found once: these are lines of every crossing


def to_coroutine(work: object, args: tuple[object, ...], asker: str) -> Coroutine[Any, Any, Any]:
    """Make the coroutine to run, or raise a TypeError that names what cannot be one.

    A callable that is not plainly async is called on the loop, inside the coroutine: `asyncio.gather` and its like
    need a running loop to be called at all.
    """
    if type(work) is FunctionType and work.__code__.co_flags & _IS_ASYNC:
        coroutine: Coroutine[Any, Any, Any] = work(*args)
        return coroutine
    if type(work) is CoroutineType or inspect.iscoroutine(work):
        if args:
            close_refused(work)
            raise NotRunnableError(
                f"`{asker}` was given the coroutine {work!r} and {len(args)} arguments, which it cannot take.\n"
                "Nothing ran. Pass the function and its arguments, or the coroutine alone."
            )
        return work
    if inspect.isawaitable(work) and not (callable(work) and args):
        held: Any = _hold(work)
        held.__qualname__ = type(work).__qualname__
        return cast("Coroutine[Any, Any, Any]", held)
    if not callable(work) or inspect.isasyncgenfunction(work):
        raise _nothing_to_run(work, asker)
    beginning: Any = _begin(work, args, asker)
    beginning.__qualname__ = getattr(work, "__qualname__", None) or type(work).__qualname__  # what reports will call it
    return cast("Coroutine[Any, Any, Any]", beginning)


def check_seconds(work: object, asker: str, **limits: object) -> None:
    """Refuse a limit that is not a number of seconds, before anything has begun."""
    for name, limit in limits.items():
        if limit is not None and (not isinstance(limit, int | float) or math.isnan(limit)):
            close_refused(work)
            raise NotRunnableError(f"`{asker}` takes `{name}` in seconds, as a number, and was given {limit!r}.")


def close_refused(work: object) -> None:
    """Close a coroutine that will not run, so that nobody is told later it was never awaited."""
    if inspect.iscoroutine(work):
        work.close()


async def _hold(work: Awaitable[object]) -> object:
    return await work


async def _begin(work: Callable[..., object], args: tuple[object, ...], asker: str) -> object:
    returned = work(*args)
    if not inspect.isawaitable(returned):
        raise _not_awaitable(work, returned, asker)
    return await returned


def _nothing_to_run(work: object, asker: str) -> NotRunnableError:
    if inspect.isasyncgen(work) or hasattr(type(work), "__aiter__") or inspect.isasyncgenfunction(work):
        advice = "it is an async iterable: use `bridge.iterate(...)`"
    elif hasattr(type(work), "__aenter__"):
        advice = "it is an async context manager: use `bridge.enter(...)`"
    else:
        advice = f"{classify(work).because}; pass an async function or a coroutine"
    return NotRunnableError(f"`{asker}` cannot run {work!r}: {advice}.\nNothing ran.")


def _not_awaitable(work: object, returned: object, asker: str) -> NotRunnableError:
    name = getattr(work, "__qualname__", None) or repr(work)
    if hasattr(type(returned), "__aiter__"):
        advice = f"iterate it: `bridge.iterate({name}(...))`"
    elif hasattr(type(returned), "__aenter__"):
        advice = f"enter it: `bridge.enter({name}(...))`"
    else:
        advice = "it is a sync function, and has already run; call it directly"
    return NotRunnableError(
        f"`{asker}` called `{name}`, which returned {returned!r} of type `{type(returned).__name__}`: "
        "that cannot be awaited.\n"
        f"Instead, {advice}."
    )
