"""Tell up to which entry the streams of a database are complete.

Entries are numbered when they are written and seen when they are committed, so a lower number may be seen later than a
higher one. Whoever reads the entries of all streams by these numbers, and never looks back, must not be told of an
entry before every lower one is there or never will be. A transaction has its own number before it writes anything: once
all are over that had begun when an entry was seen, nothing below that entry can come any more.
"""

import threading
import time
from typing import Any

import psycopg

from troth.runtime.store.postgres import statements

__all__ = ["Horizon"]

_PATIENCE = 0.5  # seconds; a commit takes milliseconds
_PAUSE = 0.005


class Horizon:
    """The last entry of all streams that nothing can come before any more; or of what `newest` asks for instead."""

    def __init__(self, newest: str = statements.NEWEST_EVENT) -> None:
        self._newest = newest
        self._lock = threading.Lock()
        self._safe = 0
        self._next: tuple[int, int] | None = None

    def ask(self, connection: "psycopg.Connection[Any]") -> int:
        """The number of that entry. Waits a moment for commits under way; after that, the answer is an earlier one."""
        newest = _one(connection, self._newest)[0]  # first: what is asked next must not be older
        oldest, following = _one(connection, statements.IN_PROGRESS)
        deadline = time.monotonic() + _PATIENCE
        while oldest < following and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            oldest = _one(connection, statements.IN_PROGRESS)[0]
        with self._lock:
            if oldest >= following:
                self._safe = max(self._safe, newest)
            if self._next is not None and oldest >= self._next[1]:
                self._safe = max(self._safe, self._next[0])
                self._next = None
            if self._next is None:
                self._next = newest, following
            return self._safe


def _one(connection: "psycopg.Connection[Any]", statement: str) -> tuple[Any, ...]:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    answer: tuple[Any, ...] = row
    return answer
