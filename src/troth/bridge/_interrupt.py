"""How Ctrl-C reaches a coroutine that the main thread is waiting for.

`asyncio.run` answers Ctrl-C by cancelling its own main task, which cannot notice while a sync function blocks its
loop: nothing happens. Python's own answer, raising KeyboardInterrupt wherever the main thread is, may strike inside
the event loop and lose a callback. So while the bridge waits, it answers itself: inside user code it raises at once,
inside the loop it cancels the coroutine, whose `finally` blocks run, and a second Ctrl-C always raises.

A handler that the user or a server (uvicorn) installed has a meaning of its own, and stays.
"""

import _signal  # type: ignore[import-not-found]  # the C functions: `signal.signal` spends some 20 µs a call on turning numbers into enums
import asyncio
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from troth.bridge._where import is_machinery

__all__ = ["Interrupt", "catch_interrupts"]

_SIGINT = int(signal.SIGINT)
_RUNNERS_ANSWER = getattr(asyncio.Runner, "_on_sigint", None)


class Interrupt:
    """The answer to Ctrl-C while one call waits."""

    __slots__ = ("_cancel", "_is_second", "_previous", "has_cancelled")

    def __init__(self, cancel: Callable[[], object], previous: Any) -> None:
        self._cancel = cancel
        self._previous = previous
        self._is_second = False
        self.has_cancelled = False
        """The coroutine was cancelled for Ctrl-C, so the call has to end in KeyboardInterrupt."""

    def __call__(self, _: int, frame: FrameType | None) -> None:
        is_second, self._is_second = self._is_second, True
        if is_second or frame is None or not is_machinery(frame):
            raise KeyboardInterrupt
        self.has_cancelled = True
        self._cancel()

    def restore(self) -> None:
        """Put back the answer that was there before."""
        _signal.signal(_SIGINT, self._previous)


def catch_interrupts(cancel: Callable[[], object]) -> Interrupt | None:
    """Answer Ctrl-C with `cancel`, which is called between any two instructions of the main thread.

    None where there is nothing to answer: in other threads, which no signal reaches, or under a handler that has a
    meaning of its own.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return None
    previous = _signal.getsignal(_SIGINT)
    if previous is not signal.default_int_handler and type(previous) is not Interrupt and not _is_runners(previous):
        return None
    answer = Interrupt(cancel, previous)
    _signal.signal(_SIGINT, answer)
    return answer


def _is_runners(handler: object) -> bool:
    return isinstance(handler, partial) and getattr(handler.func, "__func__", None) is _RUNNERS_ANSWER
