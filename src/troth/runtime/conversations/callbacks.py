"""Knows how to tell callbacks of what was written, in order, on the conversation's own thread.

A callback that raises is reported in the log and told of the next event all the same; that it raised over such a
report is only logged. A sync callback is called; an
async one is awaited on a loop, or run to its end where there is none. Which it is was decided when it was given.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from troth.bridge import color_of
from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.conversations.log import CALLBACK_FAILED
from troth.runtime.store import Event

__all__ = ["Callbacks", "checked"]

log = logging.getLogger("troth.conversation")
Callback = Callable[[Event], Any]


def checked(callbacks: Sequence[Callback]) -> tuple[Callback, ...]:
    """Refuse, before anything runs, what could not be called with one event."""
    import inspect

    for callback in callbacks:
        if color_of(callback) not in (Color.SYNC, Color.ASYNC):
            raise MisuseError(
                f"{callback!r} cannot be a callback: its color cannot be told.\n"
                "It might never be called, so it was refused.\nGive a plain or an async function of one event."
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
    """The callbacks of one run. `tell` may be called from any thread; they hear of it where `drain` is called."""

    def __init__(self, callbacks: Sequence[Callback], report: Callable[[str, BaseException], object]) -> None:
        self._callbacks = callbacks
        self._report = report
        self._waiting: deque[Event] = deque()

    def tell(self, event: Event) -> None:
        """Let them hear of `event` at the next opportunity."""
        if self._callbacks:
            self._waiting.append(event)

    def drain(self) -> None:
        """Call them, on this thread."""
        while self._waiting:
            event = self._waiting.popleft()
            for callback in self._callbacks:
                try:
                    result = callback(event) if color_of(callback) is Color.SYNC else bridge_run(callback, event)
                    if asyncio.iscoroutine(result):
                        bridge_run(result)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as problem:  # noqa: BLE001 - user code; reported, and the run goes on
                    self._failed(callback, problem, event)

    async def adrain(self) -> None:
        """Call them, on this loop."""
        while self._waiting:
            event = self._waiting.popleft()
            for callback in self._callbacks:
                try:
                    result = callback(event)
                    if hasattr(result, "__await__"):
                        await result
                except asyncio.CancelledError as problem:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    self._failed(callback, problem, event)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as problem:  # noqa: BLE001 - out of a task, SystemExit would end the loop
                    self._failed(callback, problem, event)

    def _failed(self, callback: Callback, problem: BaseException, event: Event) -> None:
        name = getattr(callback, "__qualname__", repr(callback))
        log.error("The callback %s raised; the event is in the log, and the run goes on.", name, exc_info=problem)
        if event.kind != CALLBACK_FAILED:  # one that always raises would be told of its own failing for ever
            self._report(name, problem)
