"""Tell up to which entry the streams of a database are complete.

Entries are numbered when they are written and seen when they are committed, so a lower number may be seen later than a
higher one. Whoever reads the entries of all streams by these numbers, and never looks back, must not get an entry
before every lower one is there or never will be.

Whoever inserts a row has locked its table before the row gets its number, keeps that lock to the end of the
transaction, and lets go of it after the commit can be seen. So the reader asks who holds such a lock after it has seen
an entry: once all of these are gone, nothing below the entry can come any more. Numbers of transactions would answer
the same, but they are shared with all databases of the server: another application's long transaction would hold
everything back.
"""

import threading
import time
from typing import Any

import psycopg

from troth.runtime.store.errors import StoreError
from troth.runtime.store.postgres import statements

__all__ = ["Horizon"]

_PATIENCE = 0.5  # seconds; a commit takes milliseconds
_PAUSE = 0.005


class Horizon:
    """The last row of a table that nothing can come before any more; its column `id` counts the rows."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._safe = 0
        self._next: tuple[int, frozenset[str]] | None = None

    def ask(self, connection: "psycopg.Connection[Any]") -> int:
        """The number of that row. Waits a moment for commits under way; after that, the answer is an earlier one."""
        newest = self._newest(connection)  # first: whoever had a lower number by then is among the writers below
        with self._lock:
            if newest <= self._safe:
                return self._safe
        writers = under_way = self._writers(connection)
        deadline = time.monotonic() + _PATIENCE
        while under_way and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            writers = self._writers(connection)
            under_way &= writers
        with self._lock:
            if not under_way:
                self._safe = max(self._safe, newest)
            if self._next is not None and not self._next[1] & writers:
                self._safe = max(self._safe, self._next[0])
                self._next = None
            if self._next is None and under_way:
                self._next = newest, under_way
            return self._safe

    def _newest(self, connection: "psycopg.Connection[Any]") -> int:
        row = connection.execute(statements.NEWEST.format(table=self._table).encode()).fetchone()
        assert row is not None
        number, is_standby = row
        if is_standby:  # it has the locks of the transactions that were replayed, and knows of no others
            raise StoreError(
                "This server is a standby: it does not know which transactions of the primary are not over, so it "
                "cannot tell up to where entries are complete.\n"
                "Nothing was read. Ask the primary for what changes: `target_session_attrs=read-write` in the address "
                "finds it."
            )
        return int(number)

    def _writers(self, connection: "psycopg.Connection[Any]") -> frozenset[str]:
        """The transactions that have written to the table and are not over."""
        rows = connection.execute(statements.WRITERS_OF.format(table=self._table).encode())
        return frozenset(name for (name,) in rows)
