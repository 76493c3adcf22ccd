"""How sync code enters an async context manager."""

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from troth.bridge._errors import NotRunnableError
from troth.bridge._long_lived_task import LeftEarly, LongLivedTask

__all__ = ["enter"]

T = TypeVar("T")


def enter(manager: AbstractAsyncContextManager[T, bool | None], /) -> AbstractContextManager[T, bool | None]:
    """Enter `manager` with a plain `with`, wherever `bridge.run` works.

    It is entered and left in one task of one loop. Between the two, its loop turns only while `bridge.run` or another
    part of the bridge works in this thread, unless this is a worker thread, whose home loop never stops.
    """
    if not (hasattr(type(manager), "__aenter__") and hasattr(type(manager), "__aexit__")):
        raise NotRunnableError(
            f"`bridge.enter` needs something that `async with` accepts, and {manager!r} is not.\nNothing ran."
        )
    return _Entered(manager)


class _Entered(AbstractContextManager[T, bool | None], Generic[T]):
    """A sync context manager around an asynchronous one."""

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None]) -> None:
        self._manager = manager
        self._residents: list[LongLivedTask] = []  # one for each time it is entered, as often as the manager allows

    def __enter__(self) -> T:
        resident = LongLivedTask(self._farewell)
        try:
            value: T = resident.ask(self._manager.__aenter__)
        except BaseException:
            resident.leave()
            raise
        self._residents.append(resident)
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool | None:
        resident = self._residents.pop()
        try:
            suppressed: bool | None = resident.ask(lambda: self._manager.__aexit__(kind, error, traceback))
        except LeftEarly as departure:
            reason = departure.reason
        else:
            return suppressed
        finally:
            resident.leave()
        if reason is None or (error is not None and isinstance(reason, asyncio.CancelledError)):
            return None  # nothing to tell, or nothing beside what the block itself raised
        raise reason

    async def _farewell(self, request: asyncio.CancelledError) -> None:
        """Leave as a block does in which the cancellation arrives: a timeout or a task group knows it for its own."""
        if not await self._manager.__aexit__(type(request), request, request.__traceback__):
            raise request
