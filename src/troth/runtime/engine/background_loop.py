"""Find where runs live that nobody waits for: on the user's loop, or on a loop in a thread of the engine's own."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from troth import bridge

__all__ = ["BackgroundLoop"]

log = logging.getLogger("troth.engine")

_PATIENCE = 5.0  # seconds that the end of one task is waited for


class BackgroundLoop:
    """Keeps every task it was given until it ends, and can end them all."""

    def __init__(self, name: str = "troth-engine") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._portal: bridge.Portal | None = None
        self._portal_loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def after_fork(self) -> None:
        """In the child: the parent's tasks and thread are not here."""
        self._lock = threading.Lock()
        self._portal = None
        self._portal_loop = None
        self._tasks = set()

    def settle(
        self, work: Callable[[], Coroutine[Any, Any, Any]], name: str, ended: Callable[[], None] | None = None
    ) -> None:
        """Let `work()` live on the engine's own loop. From any thread, without waiting."""
        loop = self._own_loop()
        loop.call_soon_threadsafe(self.settle_here, work, name, ended, loop)

    def settle_here(
        self,
        work: Callable[[], Coroutine[Any, Any, Any]],
        name: str,
        ended: Callable[[], None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Let `work()` live on the loop that runs here. `ended` is told of its end, also if it never began."""
        task = (loop or asyncio.get_running_loop()).create_task(work(), name=name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, ended=ended))

    def _ended(self, task: "asyncio.Task[Any]", ended: Callable[[], None] | None) -> None:
        self._tasks.discard(task)
        if ended is not None:
            ended()
        if not task.cancelled() and task.exception() is not None:
            log.error("%s ended with an internal error of the engine.", task.get_name(), exc_info=task.exception())

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._portal_loop is None:
                self._portal = bridge.Portal(name=self._name)
                self._portal_loop = self._portal.run(_this_loop)
            return self._portal_loop

    def close(self) -> None:
        """End every task: those on our own loop are waited for, those on a user's loop are only asked to."""
        with self._lock:
            portal, self._portal, self._portal_loop = self._portal, None, None
        for task in list(self._tasks):
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        if portal is not None:
            portal.close()

    def end(self, *names: str) -> None:
        """End the tasks of these names, and wait for those on our own loop."""
        endings = []
        for task in [task for task in list(self._tasks) if task.get_name() in names]:
            ended = threading.Event()
            task.get_loop().call_soon_threadsafe(_cancel, task, ended)
            endings.append(ended)
        if threading.current_thread().name != self._name:
            for ended in endings:
                ended.wait(_PATIENCE)

    async def end_here(self) -> None:
        """End the tasks on this loop, and wait for them."""
        loop = asyncio.get_running_loop()
        mine = [task for task in self._tasks if task.get_loop() is loop and task is not asyncio.current_task()]
        for task in mine:
            task.cancel()
        if mine:
            await asyncio.wait(mine)


def _cancel(task: "asyncio.Task[Any]", ended: threading.Event) -> None:
    task.add_done_callback(lambda _: ended.set())
    task.cancel()


async def _this_loop() -> asyncio.AbstractEventLoop:
    await asyncio.sleep(0)
    return asyncio.get_running_loop()
