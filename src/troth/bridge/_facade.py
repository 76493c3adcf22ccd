"""How a function gets a face of the other color.

The face has its function's name, docstring and signature, with annotations already resolved, but no `__wrapped__`:
frameworks look through that, find the other color behind it, and call the face the wrong way.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

from troth.bridge._call import call
from troth.bridge._color.classify import classify
from troth.bridge._errors import NotRunnableError
from troth.bridge._run import run

__all__ = ["aio", "sync"]

P = ParamSpec("P")
T = TypeVar("T")


def sync(
    function: Callable[P, Awaitable[T]],
    /,
    *,
    timeout: float | None = None,
    strict: bool = False,
    deadlock_after: float | None = None,
) -> Callable[P, T]:
    """Give an async function a sync face: calling it is `bridge.run` of the function. Usable as a decorator."""
    _check(function, "sync")

    def face(*args: P.args, **kwargs: P.kwargs) -> T:
        work = partial(function, *args, **kwargs)
        return run(work, timeout=timeout, strict=strict, deadlock_after=deadlock_after)

    return _dress(face, function)


def aio(function: Callable[P, T], /, *, thread: bool = True) -> Callable[P, Awaitable[T]]:
    """Give a sync function an async face: awaiting it is `bridge.call` of the function. Usable as a decorator."""
    _check(function, "aio")

    async def face(*args: P.args, **kwargs: P.kwargs) -> T:
        return await call(partial(function, *args, **kwargs), thread=thread)

    return _dress(face, function)


def _check(function: object, asker: str) -> None:
    if callable(function) and not inspect.isasyncgenfunction(function):
        return
    verdict = classify(function)
    if inspect.iscoroutine(function):
        function.close()
    raise NotRunnableError(f"`bridge.{asker}` cannot wrap {function!r}: {verdict.because}.\nInstead, {verdict.advice}.")


def _dress(face: Callable[P, T], function: Callable[..., object]) -> Callable[P, T]:
    # `functools.update_wrapper` would also copy the function's `__dict__`, and with it the mark that says "async".
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        value = getattr(function, name, None)
        if value is not None:
            setattr(face, name, value)
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError:  # an annotation that only a type checker can resolve
        signature = inspect.signature(function)
    except ValueError:  # a builtin that keeps its signature to itself
        return face
    face.__signature__ = signature  # type: ignore[attr-defined]
    hints = {name: each.annotation for name, each in signature.parameters.items() if each.annotation is not each.empty}
    if signature.return_annotation is not signature.empty:
        hints["return"] = signature.return_annotation
    face.__annotations__ = hints
    return face
