"""Tell the time of the database on this machine, whatever this machine's own clock says.

The database is asked once in a while; in between, the time that has passed here is added. Two workers whose clocks
differ by an hour so agree on what time it is. Whether an owner is alive is never decided by this: the statement that
takes a lease looks at the clock itself.
"""

import threading
import time
from collections.abc import Callable
from functools import partial

__all__ = ["DatabaseClock"]

_passed: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Counts on while the machine sleeps, where there is such a clock."""

_GOOD_FOR = 60.0  # seconds after which a quick answer of the database counts no more than a slow one


class DatabaseClock:
    """What time it is at the database. `set` is called with what it answered, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead: float | None = None
        self._width = 0.0
        self._set_at = 0.0

    def __call__(self) -> float:
        """The time, in seconds since 1970."""
        return _passed() + (self._ahead or 0.0)

    @property
    def is_set(self) -> bool:
        """Whether the database was asked yet."""
        return self._ahead is not None

    def measure(self, ask: Callable[[], float]) -> None:
        """Ask the database, and keep the answer unless a better one is known: one that took less time to come."""
        before = _passed()
        answer = ask()
        after = _passed()
        with self._lock:
            width = after - before
            if self._ahead is None or width <= self._width or after - self._set_at > _GOOD_FOR:
                self._ahead, self._width, self._set_at = answer - (before + after) / 2, width, after
