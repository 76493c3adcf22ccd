"""Hold a wait to a time, at no cost where nothing has to be waited for.

A timer for each piece of a body and each chunk of a stream costs more than the piece itself, and nearly all of them are
there, or are taken, at once.
"""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

__all__ = ["within"]

T = TypeVar("T")


async def within(deadline: float, awaitable: Awaitable[T]) -> T:
    """What `awaitable` gives, if that comes before `deadline`, by the loop's clock; else `TimeoutError`.

    What can be had at once is given, whatever the time is.
    """
    steps = awaitable.__await__()
    try:
        waited = next(steps)
    except StopIteration as done:
        value: T = done.value
        return value
    async with asyncio.timeout_at(deadline):
        return await _Begun(steps, waited)


class _Begun(Generic[T]):
    """An awaitable that waits for `waited` already."""

    def __init__(self, steps: Generator[Any, Any, T], waited: Any) -> None:
        self._steps = steps
        self._waited = waited

    def __await__(self) -> Generator[Any, Any, T]:
        waited = self._waited
        while True:
            try:
                yield waited
            except BaseException as problem:  # noqa: BLE001  it is for whoever waits within
                try:
                    waited = self._steps.throw(problem)
                except StopIteration as done:
                    value: T = done.value
                    return value
            else:
                return (yield from self._steps)
