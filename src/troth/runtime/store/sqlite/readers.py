"""Read beside the writer: a small pool of connections that any thread may borrow.

WAL readers neither wait for the writer nor make it wait. A connection is lent for one question and given back, so
there are as many as threads read at the same instant, not one for each thread that ever read.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from troth.errors import MisuseError
from troth.runtime.store.errors import FAULTS, StoreError, half_letter

__all__ = ["SqliteReaders"]

_SPARE = 8  # connections kept open between questions


class SqliteReaders:
    """Connections that only read."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], path: Path, is_committing_here: Callable[[], bool]
    ) -> None:
        self._connect = connect
        self._path = path
        self._is_committing_here = is_committing_here
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
        if self._is_committing_here():
            raise MisuseError(
                f"The store {str(self._path)!r} was read inside a commit.\n"
                "Nothing was written. Read from the transaction instead: the store does not see what this commit, "
                "and those "
                "that share its transaction, have written."
            )
        with self._lock:
            connection = self._spare.pop() if self._spare else None
        if connection is None:
            try:
                connection = self._connect()
            except FAULTS as cause:
                raise self._unreadable(cause) from cause
        is_sound = False
        try:
            yield connection
            is_sound = True
        except UnicodeEncodeError as cause:
            raise half_letter(cause) from cause
        except FAULTS as cause:
            raise self._unreadable(cause) from cause
        finally:
            with self._lock:
                is_spare = is_sound and not self._is_closed and len(self._spare) < _SPARE
                if is_spare:
                    self._spare.append(connection)
            if not is_spare:
                connection.close()

    def _unreadable(self, cause: Exception) -> StoreError:
        return StoreError(
            f"The store {str(self._path)!r} could not be read: {cause}. Nothing was written.\n"
            "A damaged file does not recover: check the disk, and restore a backup of the file."
        )

    def close(self) -> None:
        """Close what is not lent out; the rest is closed when it comes back."""
        with self._lock:
            spare, self._spare = self._spare, []
            self._is_closed = True
        for connection in spare:
            connection.close()
