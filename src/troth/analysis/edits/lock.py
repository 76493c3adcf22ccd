"""Keep two processes from changing one project at the same time.

The lock is the operating system's own on an open file, so that it ends with the process however that ends.
"""

import os
from pathlib import Path
from typing import IO

from troth.errors import MisuseError

__all__ = ["Lock"]

_NAME = "lock"


class Lock:
    """Held from construction to `release`; a second holder is refused at once, not made to wait.

    `OSError` says that the folder, or the file in it, cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / _NAME).open("a+b")
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise MisuseError(
                f"Another `troth` is changing this project right now (it holds {_NAME}).\n"
                "Nothing was done, because the two would overwrite each other.\n"
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
