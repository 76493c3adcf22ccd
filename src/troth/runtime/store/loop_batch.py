"""What the tasks of one loop commit in one of its turns."""

import asyncio
import contextlib
from typing import Any

from troth.runtime.store.sqlite.writer import Unit

__all__ = ["LoopBatch"]


class LoopBatch:
    """Pieces of work that one loop has asked for, and the futures of those who await them."""

    __slots__ = ("_futures", "_loop", "is_large", "units")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._futures: list[asyncio.Future[None]] = []
        self.units: list[Unit[Any]] = []
        self.is_large = False

    def add(self, unit: Unit[Any]) -> asyncio.Future[None]:
        """One more; the future is done once the unit is settled."""
        future = self._loop.create_future()
        self.units.append(unit)
        self._futures.append(future)
        return future

    def resolve(self, error: BaseException | None = None) -> None:
        """Tell those who await, on the loop."""
        for future in self._futures:
            if not future.done():
                future.set_result(None) if error is None else future.set_exception(error)

    def resolve_threadsafe(self, error: BaseException | None = None) -> None:
        """`resolve` from any thread."""
        with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there any more
            self._loop.call_soon_threadsafe(self.resolve, error)
