"""How Ctrl-C reaches a coroutine that the main thread is waiting for.

`asyncio.run` answers Ctrl-C by cancelling its own main task, which cannot notice while a sync function blocks its
loop: nothing happens. Python's own answer, raising KeyboardInterrupt wherever the main thread is, may strike inside
the event loop and lose a callback. So while the bridge waits, it answers itself: inside user code it raises at once,
inside the loop it cancels the coroutine, whose `finally` blocks run, and a second Ctrl-C always raises.

A handler that the user or a server (uvicorn) installed has a meaning of its own, and stays. But a server acts on it in
its loop, which cannot turn while a call blocks it; so there the second Ctrl-C also cancels the coroutine.
"""

import _signal  # type: ignore[import-not-found]  # the C functions: `signal.signal` spends some 20 µs a call on turning numbers into enums
import asyncio
import os
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
_main_thread: int | None = None


class Interrupt:
    """The answer to Ctrl-C while one call waits."""

    __slots__ = ("_cancel", "_is_over", "_loop", "_previous", "_strikes", "has_cancelled")

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], object], previous: Any) -> None:
        self._loop = loop
        self._cancel = cancel
        self._previous = previous
        self._is_over = False
        self._strikes = 0
        self.has_cancelled = False
        """The coroutine was cancelled for Ctrl-C, so the call has to end in KeyboardInterrupt."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:  # somebody kept this answer and put it back later; it has nothing to say any more
            self._previous(number, frame)
            return
        self._strikes += 1
        if self._strikes > 1 or frame is None or not is_machinery(frame):
            raise KeyboardInterrupt
        self.has_cancelled = True
        self._loop.call_soon_threadsafe(self._cancel)

    @property
    def is_final(self) -> bool:
        """It was pressed a second time: nothing is waited for any more."""
        return self._strikes > 1

    def restore(self) -> None:
        """Put back the answer that was there before, unless the coroutine has put one of its own there."""
        self._is_over = True
        if _signal.getsignal(_SIGINT) is self:
            _signal.signal(_SIGINT, self._previous)


class PassedOn(Interrupt):
    """The answer where somebody else's handler has a meaning of its own, and a loop that is blocked meanwhile."""

    __slots__ = ()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._strikes += 1
        if not self._is_over and self._strikes > 1:
            self._loop.call_soon_threadsafe(self._cancel)
        self._previous(number, frame)

    @property
    def is_final(self) -> bool:
        return False


def catch_interrupts(
    loop: asyncio.AbstractEventLoop, cancel: Callable[[], object], *, blocks_loop: bool
) -> Interrupt | None:
    """Answer Ctrl-C with `cancel`, called on `loop`.

    None where there is nothing to answer: in other threads, which no signal reaches, or under a handler that has a
    meaning of its own and no loop is blocked.
    """
    if threading.get_ident() != _main_thread:
        return None
    previous = _signal.getsignal(_SIGINT)
    if previous is signal.default_int_handler or type(previous) is Interrupt or _is_runners(previous):
        answer = Interrupt(loop, cancel, previous)
    elif blocks_loop and callable(previous):
        answer = PassedOn(loop, cancel, previous)
    else:
        return None
    try:
        _signal.signal(_SIGINT, answer)
    except ValueError:  # the main thread of a subinterpreter, which no signal reaches either
        return None
    return answer


def _find_main_thread() -> None:
    """In a forked child, the thread that forked is the main one."""
    global _main_thread  # noqa: PLW0603 - it changes with a fork alone; asking each time is a tenth of a crossing
    _main_thread = threading.main_thread().ident


_find_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_find_main_thread)  # after the hook of `threading`, which was imported before


def _is_runners(handler: object) -> bool:
    return isinstance(handler, partial) and getattr(handler.func, "__func__", None) is _RUNNERS_ANSWER
