"""What the store refuses, and how its failures are named.

MisuseError
├── NotJsonError          a value cannot be kept as JSON; says which part of it
├── NotAStoreError        the file is somebody else's database
├── NewerStoreError       the file was written by a newer Troth; it was not touched
└── UnsupportedSqliteError  this Python's SQLite lacks something the store stands on
RunError
├── StoreError            the file could not be read or written; nothing of the commit was kept
│   ├── StoreBusyError    another process kept the file locked for too long
│   ├── ReadOnlyStoreError  the file can be looked at, and not written
│   └── DamagedStoreError what is kept of one run, step or stream cannot be read any more
├── LeaseLostError        another owner has taken over; nothing was written
└── CursorTrimmedError    the entries that follow a cursor were cut off from the stream
"""

import sqlite3

from troth.errors import MisuseError, RunError

__all__ = [
    "CursorTrimmedError",
    "DamagedStoreError",
    "LeaseLostError",
    "NewerStoreError",
    "NotAStoreError",
    "NotJsonError",
    "ReadOnlyStoreError",
    "StoreBusyError",
    "StoreError",
    "UnsupportedSqliteError",
    "half_letter",
]


FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises of a file that cannot be used; the second where its own message holds what is no text."""


def half_letter(cause: UnicodeEncodeError) -> MisuseError:
    """What is told to somebody who asks for, or wants to keep, a text with half of a letter in it."""
    return MisuseError(
        f"{cause.object!r} contains half of a character (a lone surrogate, or bytes that are not UTF-8), which no "
        "store can keep.\nNothing was done, and nothing in the store has this name."
    )


class NotJsonError(MisuseError):
    """A value cannot be kept as JSON. `path` leads to the part that cannot, `what` names the whole."""

    def __init__(self, what: str, path: str, why: str) -> None:
        self.what = what
        self.path = path
        self.why = why
        super().__init__(f"{what} cannot be kept as JSON: `{path}` is {why}")

    def __reduce__(self) -> tuple[type["NotJsonError"], tuple[str, str, str]]:
        return NotJsonError, (self.what, self.path, self.why)


class NotAStoreError(MisuseError):
    """The file is a database of somebody else's, or no database at all. It was not changed."""


class NewerStoreError(MisuseError):
    """The file was written by a newer Troth. It was not changed."""


class UnsupportedSqliteError(MisuseError):
    """SQLite as this Python has it, or the place where the file lies, lacks something the store stands on."""


class StoreError(RunError):
    """The file could not be read or written. Nothing of the failed commit was kept."""


class StoreBusyError(StoreError):
    """Another process kept the file locked for longer than the store waits."""


class ReadOnlyStoreError(StoreError):
    """The file cannot be written, or was opened only to be looked at. Nothing was written."""


class DamagedStoreError(StoreError):
    """What the file keeps of `what` (a run, a step, an entry of a stream) cannot be read. It was left as it is."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(
            f"The record of {what} is damaged: {why}. It was left as it is.\n"
            "Bytes of the file have changed. Look at the disk, and continue with a copy of the file from before."
        )

    def __reduce__(self) -> tuple[type["DamagedStoreError"], tuple[str, str]]:
        return DamagedStoreError, (self.what, self.why)


class LeaseLostError(RunError):
    """Somebody else owns the run or the conversation now, so nothing was written."""


class CursorTrimmedError(RunError):
    """Entries after a reader's cursor were cut off from the stream. `after` is the cursor, `first` what is left."""

    def __init__(self, stream: str, after: int, first: int) -> None:
        super().__init__(
            f"The entries {after + 1} to {first - 1} of the stream {stream!r} are gone: it was trimmed.\n"
            f"Continue with entry {first}, or read the current state instead."
        )
        self.stream = stream
        self.after = after
        self.first = first

    def __reduce__(self) -> tuple[type["CursorTrimmedError"], tuple[str, int, int]]:
        return CursorTrimmedError, (self.stream, self.after, self.first)
