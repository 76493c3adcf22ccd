"""Read a store from a loop without holding the loop up: a file at once, a database on a thread.

A short look at a file takes microseconds, less than a thread would. A database may take as long as the network to it
does, or as its failover, and everybody else on the loop would wait with whoever asks.
"""

import asyncio
import contextlib
import contextvars
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from troth.runtime.store.port import Store

__all__ = ["aread"]

T = TypeVar("T")

_AT_ONCE = 8  # threads for a store: as many as a database has connections that read
_IDLE = 1.0  # seconds after which a thread that is asked nothing ends, so that none has to be closed


async def aread(store: Store, question: Callable[[], T]) -> T:
    """What `question` answers, which reads `store` and nothing else. It is called here, or on a thread.

    Cancelled, it ends at once: a database that does not answer holds up nobody who has stopped waiting. The thread
    ends with the database's answer, which is dropped, or with the process.
    """
    if not store.is_shared:
        return question()
    asked = _Question(question, asyncio.get_running_loop())
    _threads_of(store).ask(asked)
    await asked.answered
    return asked.outcome()


class _Question(Generic[T]):
    """One question. Its outcome is kept, not put into the future: that would refuse a StopIteration, and hang."""

    __slots__ = ("_context", "_error", "_loop", "_question", "_value", "answered")

    def __init__(self, question: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self._question = question
        self._context = contextvars.copy_context()  # a Context is entered once at a time, and the caller is in its own
        self._loop = loop
        self._value: Any = None
        self._error: BaseException | None = None
        self.answered: asyncio.Future[None] = loop.create_future()

    def ask(self) -> None:
        """Ask it on this thread, unless nobody waits for the answer any more."""
        if self.answered.done():
            return
        try:
            self._value = self._context.run(self._question)
        except BaseException as error:  # noqa: BLE001  it belongs to whoever awaits the answer
            self._error = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            self._loop.call_soon_threadsafe(_answer, self.answered)

    def outcome(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # the traceback holds this frame
        value: T = self._value
        return value


def _answer(answered: "asyncio.Future[None]") -> None:
    if not answered.done():
        answered.set_result(None)


class _ReadThreads:
    """The threads that read one store for loops. Daemons: the end of a program does not wait for a database."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._condition = threading.Condition()
        self._waiting: deque[_Question[Any]] = deque()
        self._threads = 0
        self._idle = 0

    def ask(self, question: "_Question[Any]") -> None:
        with self._condition:
            self._waiting.append(question)
            if self._idle >= len(self._waiting):
                self._condition.notify()
            elif self._threads < _AT_ONCE:
                self._start()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="troth-read", daemon=True).start()
        except RuntimeError:  # the system has no thread left: those that are there go on
            if self._threads == 0:
                self._waiting.pop()
                raise
        else:
            self._threads += 1

    def _work(self) -> None:
        while (question := self._next()) is not None:
            question.ask()
            del question  # it may be all that keeps the store

    def _next(self) -> "_Question[Any] | None":
        with self._condition:
            self._idle += 1
            self._condition.wait_for(lambda: self._waiting, _IDLE)
            self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


_of_stores: "weakref.WeakKeyDictionary[Store, _ReadThreads]" = weakref.WeakKeyDictionary()


def _threads_of(store: Store) -> _ReadThreads:
    threads = _of_stores.get(store)
    if threads is None or threads.pid != os.getpid():  # a forked child has none of its parent's threads
        threads = _of_stores[store] = _ReadThreads()
    return threads
