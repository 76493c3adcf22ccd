"""Do one piece of work after the other, in a thread of its own.

Analysis is not made for several threads, and the loop has to hear of the next keystroke while it goes on. The thread
is a daemon: a server that is told to leave does not wait for an answer that nobody wants any more.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from troth.lsp.sessions.collector import Collector

__all__ = ["WorkerThread"]

T = TypeVar("T")


class WorkerThread:
    """A queue of work and the thread that does it."""

    def __init__(self) -> None:
        self.collector = Collector()
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], T]) -> T:
        """The result of `work`. If the caller is cancelled before it begins, it is never done."""
        if self._thread is None:
            self.collector.take_over()
            self._thread = threading.Thread(target=self._run, name="troth-analysis", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def result(value: T) -> None:
            if not future.done():
                future.set_result(value)

        def problem(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        def job() -> None:
            if future.cancelled():
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has left meanwhile
                try:
                    value = work()
                except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits
                    loop.call_soon_threadsafe(problem, error)
                else:
                    loop.call_soon_threadsafe(result, value)

        self._waiting.put(job)
        return await future

    def _run(self) -> None:
        while True:
            self._waiting.get()()
