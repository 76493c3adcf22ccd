"""Pass the cancellation of the trio task that sent this worker thread on to what the thread waits for.

trio cannot interrupt a thread, and no asyncio loop is there to go home to; so the thread asks now and then, as
`trio.from_thread.check_cancelled` is made for. This holds for anyio on trio, too. As on asyncio, a cancellation is
passed on once: what the `finally` blocks of the sync code run afterwards goes on to its end.
"""

import sys
import threading
import time
from typing import Any

__all__ = ["TrioSender", "trio_sender"]

_GLANCE = 0.05  # seconds between two questions; each takes less than a microsecond


class _Local(threading.local):
    passed_on: object = None


_LOCAL = _Local()


class TrioSender:
    """Looks from a loop of this thread, or from a wait in it, whether the trio task was cancelled."""

    __slots__ = ("_call", "next_look", "starved_for")

    def __init__(self, call: object) -> None:
        self._call = call
        self.next_look = time.monotonic() + _GLANCE
        self.starved_for = 0.0

    def look(self) -> None:
        """Raise `trio.Cancelled` if it was, and nobody in this thread has heard of it."""
        self.next_look = time.monotonic() + _GLANCE
        if self._call is not _LOCAL.passed_on:
            try:
                _trio().from_thread.check_cancelled()
            except BaseException:
                _LOCAL.passed_on = self._call
                raise


def trio_sender() -> TrioSender | None:
    """Find who sent this thread with `trio.to_thread`; None elsewhere."""
    if "trio" not in sys.modules:
        return None
    data = getattr(sys.modules.get("trio._threads"), "PARENT_TASK_DATA", None)
    call = getattr(data, "cancel_register", None)  # one object for each call of `to_thread.run_sync`
    if call is None or not hasattr(getattr(_trio(), "from_thread", None), "check_cancelled"):
        return None
    return TrioSender(call)


def _trio() -> Any:
    return sys.modules["trio"]
