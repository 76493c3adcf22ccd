"""Tell callbacks of what was written: every entry once, in the order of the log.

A callback that raises is reported in the log and told of the next event all the same; that it raised over such a
report is only logged. A sync callback is called; an async one is awaited on a loop, or run to its end where there is
none. Which it is was decided when it was given. None is called again before it has returned.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from troth.bridge import color_of
from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.conversations.log import CALLBACK_FAILED
from troth.runtime.store import Event, Notifier, StoreError

__all__ = ["Callback", "Callbacks", "checked"]

log = logging.getLogger("troth.conversation")
Callback = Callable[[Event], Any]


def checked(callbacks: Sequence[Callback]) -> tuple[Callback, ...]:
    """Refuse, before anything runs, what could not be called with one event."""
    for callback in callbacks:
        if color_of(callback) not in (Color.SYNC, Color.ASYNC):
            raise MisuseError(
                f"{callback!r} cannot be a callback: its color cannot be determined.\n"
                "It was refused, because it might never be called.\nGive a sync or an async function of one event."
            )
        try:
            signature = inspect.signature(callback)
        except (TypeError, ValueError):
            continue  # written in C: it says nothing about itself
        try:
            signature.bind(None)
        except TypeError as problem:
            raise MisuseError(
                f"{callback!r} cannot be a callback: it would be called with one event, and {problem}.\n"
                "It was refused, because it would fail at every event.\nGive a function of one event."
            ) from problem
    return tuple(callbacks)


class Callbacks:
    """The callbacks of one handle. `tell` may be called from any thread; they hear of it where they are drained."""

    def __init__(
        self,
        callbacks: Sequence[Callback],
        cursor: int,
        read: Callable[[int], Sequence[Event]],
        report: Callable[[str, BaseException], object],
        areport: Callable[[str, BaseException], Awaitable[object]],
    ) -> None:
        self._callbacks = checked(callbacks)
        self.is_sync = all(color_of(callback) is Color.SYNC for callback in self._callbacks)
        self._cursor = cursor
        self._read = read
        self._report = report
        self._areport = areport
        self._lock = threading.Lock()
        self._waiting: dict[int, Event] = {}
        self._calling = threading.Lock()  # held while they are called, by a thread or by a task
        self._caller: int | None = None  # the thread that it is
        self.freed = Notifier()
        """Rings when they are not called any more, wherever they were."""

    @property
    def has_news(self) -> bool:
        """Whether there is something that they have not heard of."""
        return bool(self._waiting)

    def tell(self, events: Sequence[Event]) -> None:
        """Let them hear of `events` at the next opportunity."""
        with self._lock:
            self._waiting.update((event.seq, event) for event in events if event.seq > self._cursor)

    def _next(self) -> Event | None:
        """The next entry of the log that they have not heard of, if there is any that we know of."""
        with self._lock:
            event = self._waiting.pop(self._cursor + 1, None)
            if event is None and self._waiting:
                # Another thread is about to tell of the one before, or another process has written it.
                self._waiting.update((event.seq, event) for event in self._read_on())
                event = self._waiting.pop(min(self._waiting))
            if event is not None:
                self._cursor = event.seq
            return event

    def _read_on(self) -> Sequence[Event]:
        try:
            return self._read(self._cursor)
        except (StoreError, MisuseError) as problem:  # damaged, or closed
            log.warning("A callback is not called for every entry: the log cannot be read: %s", problem)
            return ()

    def drain(self) -> None:
        """Call them, on this thread. If they are being called already, that goes on with what is new."""
        while self._waiting and self._calling.acquire(blocking=False):
            self._caller = threading.get_ident()
            try:
                while (event := self._next()) is not None:
                    self._call_all(event)
            finally:
                self._caller = None
                self._calling.release()
                self.freed.ring()

    async def adrain(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Call them, on this loop, as long as that `goes_on`."""
        while self._waiting and goes_on() and self._calling.acquire(blocking=False):
            self._caller = threading.get_ident()
            try:
                while goes_on() and (event := self._next()) is not None:
                    await self._acall_all(event)
            finally:
                self._caller = None
                self._calling.release()
                self.freed.ring()

    def drain_after_others(self, patience: float) -> None:
        """`drain`; if they are being called elsewhere, when that has come to its end, after `patience` seconds at most.

        Not if that is this very thread: a callback may run a conversation.
        """
        if self._waiting and self._caller != threading.get_ident() and self._calling.acquire(timeout=patience):
            self._calling.release()
        self.drain()

    def _call_all(self, event: Event) -> None:
        for callback in self._callbacks:
            try:
                result = callback(event) if color_of(callback) is Color.SYNC else bridge_run(callback, event)
                if asyncio.iscoroutine(result):
                    bridge_run(result)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as problem:  # noqa: BLE001 - user code; reported, and the run goes on
                if self._is_reported(callback, problem, event):
                    try:
                        self._report(_name(callback), problem)
                    except (StoreError, MisuseError) as unwritten:
                        _not_reported(unwritten)

    async def _acall_all(self, event: Event) -> None:
        for callback in self._callbacks:
            try:
                result = callback(event)
                if hasattr(result, "__await__"):
                    await result
            except asyncio.CancelledError as problem:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                await self._afailed(callback, problem, event)
            except (KeyboardInterrupt, GeneratorExit):  # Ctrl-C is meant for whoever runs the conversation
                raise
            except BaseException as problem:  # noqa: BLE001 - out of a task, SystemExit would end the loop
                await self._afailed(callback, problem, event)

    async def _afailed(self, callback: Callback, problem: BaseException, event: Event) -> None:
        if self._is_reported(callback, problem, event):
            try:
                await self._areport(_name(callback), problem)
            except (StoreError, MisuseError) as unwritten:
                _not_reported(unwritten)

    def _is_reported(self, callback: Callback, problem: BaseException, event: Event) -> bool:
        """Whether the failure is written down: one that always raises would be told of its own failing forever."""
        log.error(
            "The callback %s raised; the event is in the log, and the run continues.", _name(callback), exc_info=problem
        )
        return event.kind != CALLBACK_FAILED


def _name(callback: Callback) -> str:
    return getattr(callback, "__qualname__", repr(callback))


def _not_reported(unwritten: Exception) -> None:
    log.warning("That a callback raised could not be written to the log: %s", unwritten)
