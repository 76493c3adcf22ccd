"""Hold back entries of a run's log until something is written that they can be written with.

A model sends dozens of tokens a second, and a commit for each would cost more than the answer: they are gathered for a
moment. What nobody may wait for, such as the note that somebody asked the run to stop, waits here too. Entries keep
their order, and are written before anything that follows them.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from troth.runtime.conversations.log import TOKENS

__all__ = ["PATIENCE", "PendingEntries", "Row"]

Row = tuple[str, Mapping[str, Any]]
"""The kind of an entry, and what it says."""

PATIENCE = 0.05  # seconds a piece may wait for the next: below what a reader notices
_ENOUGH = 400  # characters after which it does not wait


class PendingEntries:
    """What a run has to write and has not written yet. From any thread."""

    __slots__ = ("_lock", "_parts", "_rows", "_since", "_size")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._parts: list[str] = []  # the pieces that came after those rows
        self._size = 0
        self._since = 0.0

    def add_tokens(self, piece: str) -> bool:
        """Take one piece of an answer. Answers whether it is time to write what is there."""
        with self._lock:
            if not self._parts:
                self._since = time.monotonic()
            self._parts.append(piece)
            self._size += len(piece)
            return self._size >= _ENOUGH or time.monotonic() - self._since >= PATIENCE

    def add(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Take one entry."""
        with self._lock:
            self._close_parts()
            self._rows.append((kind, payload))

    @property
    def has_any(self) -> bool:
        """Whether something waits."""
        return bool(self._parts or self._rows)

    def take(self) -> list[Row]:
        """Give out what is there; whoever gets it writes it, or puts it back."""
        if not self._parts and not self._rows:
            return []
        with self._lock:
            self._close_parts()
            rows, self._rows = self._rows, []
            return rows

    def put_back(self, rows: Sequence[Row]) -> None:
        """Take back what could not be written: it comes before whatever came since."""
        if rows:
            with self._lock:
                self._rows[:0] = rows

    def _close_parts(self) -> None:
        if self._parts:
            self._rows.append((TOKENS, {"text": "".join(self._parts)}))
            self._parts.clear()
            self._size = 0
