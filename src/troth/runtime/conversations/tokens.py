"""Knows how to gather the pieces of an answer that a model streams, so that each write holds a handful of them.

A model sends dozens of tokens a second; a commit for each would cost more than the answer. They are kept back for a
moment and written together, in order, and always before anything that follows them.
"""

import threading
import time
from collections.abc import Callable

__all__ = ["Gatherer"]

_PATIENCE = 0.05  # seconds a piece may wait for the next: below what a reader notices
_ENOUGH = 400  # characters after which it does not wait


class Gatherer:
    """Hands on what it is given, gathered. From any thread; nothing is lost as long as `flush` is called at the end."""

    __slots__ = ("_lock", "_parts", "_since", "_size", "_write")

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._parts: list[str] = []
        self._size = 0
        self._since = 0.0

    def add(self, piece: str) -> None:
        """Take one piece."""
        with self._lock:
            if not self._parts:
                self._since = time.monotonic()
            self._parts.append(piece)
            self._size += len(piece)
            is_due = self._size >= _ENOUGH or time.monotonic() - self._since >= _PATIENCE
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        with self._lock:
            if not self._parts:
                return
            text = "".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._write(text)  # under the lock, so that two threads cannot swap their pieces
