"""Decide whether a run is to be cancelled, and reaches the async steps that are in flight for it."""

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["Cancellation"]


class Cancellation:
    """The cancellation of one run. A sync step cannot be stopped from outside: there it arrives when it returns."""

    __slots__ = ("_tasks", "is_asked")

    def __init__(self) -> None:
        self.is_asked = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def ask(self) -> None:
        """Cancel what is in flight. From any thread."""
        self.is_asked = True
        for task in list(self._tasks):
            with contextlib.suppress(RuntimeError):  # that loop is closed: nothing is in flight there any more
                task.get_loop().call_soon_threadsafe(self._cancel, task)

    def _cancel(self, task: "asyncio.Task[Any]") -> None:
        if task in self._tasks:
            task.cancel()

    def enter(self, task: "asyncio.Task[Any]") -> None:
        """Count `task` as in flight."""
        self._tasks.add(task)

    def leave(self, task: "asyncio.Task[Any]") -> None:
        """It is not any more."""
        self._tasks.discard(task)
