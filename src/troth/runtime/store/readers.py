"""Knows how to read beside the writer: a small pool of connections that any thread may borrow.

WAL readers neither wait for the writer nor make it wait. A connection is lent for one question and given back, so
there are as many as threads read at the same instant, not one for each thread that ever read.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from troth.runtime.store.errors import StoreError

__all__ = ["Readers"]

_SPARE = 8  # connections kept open between questions


class Readers:
    """Connections that only read."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._lock = threading.Lock()
        self._spare: list[sqlite3.Connection] = []
        self._is_closed = False
        self._kept: list[sqlite3.Connection] = []

    def after_fork(self) -> None:
        """In the child: the parent's connections are not ours to use or to close."""
        self._kept.extend(self._spare)
        self._lock = threading.Lock()
        self._spare = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """A connection for one question."""
        with self._lock:
            connection = self._spare.pop() if self._spare else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        except sqlite3.DatabaseError as cause:
            raise StoreError(
                f"The store {str(self._path)!r} could not be read: {cause}. Nothing was written.\n"
                "A file that is damaged stays so: look at the disk, and go on with a copy of the file from before."
            ) from cause
        finally:
            with self._lock:
                is_spare = not self._is_closed and len(self._spare) < _SPARE
                if is_spare:
                    self._spare.append(connection)
            if not is_spare:
                connection.close()

    def close(self) -> None:
        """Close what is not lent out; the rest is closed when it comes back."""
        with self._lock:
            spare, self._spare = self._spare, []
            self._is_closed = True
        for connection in spare:
            connection.close()
