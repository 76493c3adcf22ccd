"""Open the file of a store that cannot be written, so that it can be looked at all the same.

SQLite reads a file with a write-ahead log through two files beside it. Where those cannot be made, the file is read
as it stands if the log is empty. If it is not, file and log are copied and the copy is read: without its log, the file
would show a past that nobody has asked for.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from troth.runtime.store.errors import FAULTS, ReadOnlyStoreError, StoreError

__all__ = ["ReadOnlyFile", "cannot_be_written", "not_writable", "open_for_reading"]

_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


@dataclass(frozen=True, slots=True)
class ReadOnlyFile:
    """How to read a store: the file, the way SQLite has to open it, and the folder of the copy if it is one."""

    path: Path
    way: str
    folder: "tempfile.TemporaryDirectory[str] | None" = None

    @property
    def uri(self) -> str:
        """What `sqlite3.connect` is given."""
        return f"file:{quote(str(self.path))}?{self.way}"

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self.folder is not None:
            self.folder.cleanup()


def open_for_reading(path: Path) -> ReadOnlyFile:
    """Find the way in which the file at `path` can be read without writing to it or beside it."""
    if not path.exists():
        raise StoreError(f"The store {str(path)!r} could not be read: there is no such file.")
    file = ReadOnlyFile(path, "mode=ro")
    try:
        _look(file)
    except FAULTS as refused:
        if not cannot_be_written(refused):
            raise _unreadable(path, refused) from refused
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            return _copied(path, log)
        file = ReadOnlyFile(path, "immutable=1")
        try:
            _look(file)
        except FAULTS as cause:
            raise _unreadable(path, cause) from cause
    return file


def cannot_be_written(error: Exception) -> bool:
    """Whether SQLite could not use a file because it, or a file beside it, cannot be written."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_WRITABLE


def not_writable(path: Path, cause: Exception) -> ReadOnlyStoreError:
    """What is said to somebody who wants to write to a file that cannot be written."""
    return ReadOnlyStoreError(
        f"The store {str(path)!r} cannot be written: {cause}. Nothing was written.\n"
        "Make the file and its folder writable: SQLite creates files beside it. `troth runs list` and `show`, and "
        "`Runtime(path, read_only=True)`, only read it."
    )


def _look(file: ReadOnlyFile) -> None:
    with contextlib.closing(sqlite3.connect(file.uri, uri=True, timeout=5.0)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _copied(path: Path, log: Path) -> ReadOnlyFile:
    folder = tempfile.TemporaryDirectory(prefix="troth-look-")
    try:
        for part in (log, path):  # the log first: what is folded into the file meanwhile is then in both
            shutil.copyfile(part, Path(folder.name) / part.name)
    except OSError as cause:
        folder.cleanup()
        raise StoreError(f"The store {str(path)!r} could not be read: {cause.strerror}.") from cause
    return ReadOnlyFile(Path(folder.name) / path.name, "mode=rwc", folder)


def _unreadable(path: Path, cause: Exception) -> StoreError:
    return StoreError(f"The store {str(path)!r} could not be read: {cause}. It was not changed.")
