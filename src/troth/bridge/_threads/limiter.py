"""How many worker threads may be at work at once.

A bound on threads invites a deadlock: forty workers that each wait for a coroutine that needs a forty-first. So the
bound counts workers that work. One that waits for its home loop lends its slot, and takes it back without waiting.
"""

import asyncio
import threading
from collections import deque

__all__ = ["Limiter"]


class Limiter:
    """A counter that coroutines of any loop wait for, and any thread gives back to."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def take(self) -> None:
        """Take a slot, waiting in line for one. Cancelled while waiting, it has taken none."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                still_in_line = (loop, turn) in self._waiting
                if still_in_line:
                    self._waiting.remove((loop, turn))
            if not still_in_line:
                self.give_back()  # it was our turn already, and nobody else would learn of it
            raise

    def give_back(self) -> None:
        """Give a slot to the next in line whose loop still runs, or keep it free. Any thread may call this."""
        while True:
            with self._lock:
                if self._free < 0 or not self._waiting:
                    self._free += 1
                    return
                loop, turn = self._waiting.popleft()
            try:
                loop.call_soon_threadsafe(_grant, turn)
            except RuntimeError:  # that loop was closed while it stood in line
                continue
            return

    def take_back(self) -> None:
        """Take a lent slot back at once: its owner is already at work. The count may go below none for a while."""
        with self._lock:
            self._free -= 1


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # a cancelled one notices in `take` that its turn had come
        turn.set_result(None)
