"""A loop for a thread of its own that sleeps on a lock while it has nothing to do.

A loop is woken from another thread through a pipe: a write, a poll, two reads, and an extra callback. While it has no
file and no timer to watch, as a portal between two calls, a lock does the same in a fraction of the time.
"""

import selectors
import threading
import time
from typing import Any

from troth.bridge._loops.loop import ThreadLoop

__all__ = ["IdleLoop"]


class IdleLoop(ThreadLoop):
    """A loop whose waiting, where nothing but a call from another thread can end it, is on a lock."""

    _ready: Any  # of asyncio's loop: callbacks to run in the next turn

    def __init__(self) -> None:
        self.is_resting = False
        """It sleeps, and only `call_soon_threadsafe` can wake it."""
        self.resting_since = 0.0
        """When it last fell asleep like that, on the clock of `time.monotonic`."""
        self._bell = threading.Lock()
        self._bell.acquire()
        super().__init__()
        self._poll = self._sight.select
        self._sight.select = self._sleep  # type: ignore[method-assign]

    def _sleep(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None or not self._sight.is_alone:
            return self._poll(timeout)
        # The other thread first appends its callback, then looks whether we rest; we first say that we rest, then look
        # for callbacks. One of the two sees the other, so no call is slept through.
        self.resting_since = time.monotonic()
        self.is_resting = True
        if not self._ready:
            self._bell.acquire()
        self.is_resting = False
        return []

    def _write_to_self(self) -> None:
        if not self.is_resting:
            super()._write_to_self()  # type: ignore[misc]  # what a loop overrides to be woken its own way
            return
        try:
            self._bell.release()
        except RuntimeError:  # somebody else has rung already
            return
