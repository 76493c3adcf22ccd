"""Knows how to keep two processes from changing one project at the same time.

The lock is the operating system's own on an open file, so that it ends with the process however that ends.
"""

import os
from pathlib import Path
from typing import IO

from troth.errors import MisuseError

__all__ = ["Lock"]


class Lock:
    """Held from construction to `release`; a second holder is refused at once, not made to wait."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise MisuseError(
                f"Another `troth` is changing this project right now (it holds {path.name}).\n"
                "Nothing was done, so that the two do not overwrite each other.\n"
                "Wait until it has ended, then run the command again."
            ) from None

    def release(self) -> None:
        """Let others in; more than once is harmless."""
        self._file.close()


if os.name == "nt":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
