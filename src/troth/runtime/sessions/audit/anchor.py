"""Keep the newest number and MAC of the audit trail outside of the store, so that a shortened trail is noticed."""

import hashlib
import inspect
import os
import threading
import time
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from os import pread, pwrite
from pathlib import Path
from typing import Any

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.sessions.audit.key import state_folder

__all__ = ["Anchor"]

_WIDTH = 96  # bytes of a record: a number, a MAC, spaces and the end of the line
_LOOK = 0.05  # seconds between looks whether the file was deleted
_LIMIT = 5.0  # seconds that a function of the user's may take


class Anchor:
    """A place outside of the store. `put(number, mac)` and `get()` are functions of either color.

    `get` answers `(number, mac)`, or nothing if nothing was put yet. Without `get` a trail cannot be compared with its
    anchor here, and its verdict says so. What `put` is given never goes back.
    """

    def __init__(
        self,
        put: Callable[[int, str], object],
        get: Callable[[], object] | None = None,
    ) -> None:
        for role, call in (("put", put), ("get", get)):
            if call is not None and bridge.color_of(call) not in (Color.SYNC, Color.ASYNC):
                raise MisuseError(f"`{role}` of the anchor is {call!r}, which is neither a sync nor an async function.")
        self._put = _either_color(put)
        self._get = None if get is None else _either_color(get)

    @property
    def can_be_read(self) -> bool:
        """Whether a trail can be compared with it."""
        return self._get is not None

    def put(self, number: int, mac: str) -> None:
        """Keep the newest entry."""
        self._put(number, mac)

    def get(self) -> tuple[int, str] | None:
        """The newest entry that was kept."""
        answer = None if self._get is None else self._get()
        if answer is None:
            return None
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise MisuseError(f"`get` of the anchor answered {answer!r}; it has to be `(number, mac)` or None.")
        return int(answer[0]), str(answer[1])

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> "Anchor":
        """An anchor in a file of its own. Several processes may share it."""
        return _FileAnchor(Path(path))

    @classmethod
    def of_store(cls, store: Path) -> "Anchor":
        """The default: a file in the user's state folder, named after where the store lies."""
        name = hashlib.sha256(str(store.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return cls.file(state_folder() / "anchors" / name)


def _either_color(call: Callable[..., Any]) -> Callable[..., Any]:
    """A sync function that does the same. Its color is decided once."""
    if bridge.color_of(call) is Color.ASYNC:
        return lambda *args: bridge.run(call, *args, timeout=_LIMIT)

    def called(*args: object) -> object:
        answer = call(*args)
        if answer is None or not inspect.isawaitable(answer):
            return answer
        return bridge.run(answer, timeout=_LIMIT)

    return called


class _FileAnchor(Anchor):
    """An anchor in a file, which stays open: to open it again for every entry costs more than to write it."""

    def __init__(self, path: Path) -> None:
        super().__init__(self.put, self.get)
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._record = b""
        self._look_at = 0.0

    def _open(self) -> int:
        file = self._file
        if file is None or os.fstat(file).st_nlink == 0:  # somebody has deleted it
            if file is not None:
                self._file = None
                os.close(file)
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        return file

    def __del__(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)

    def put(self, number: int, mac: str) -> None:
        """Keep the newest entry, unless another process was ahead."""
        with self._lock:
            now = time.monotonic()
            file = self._file
            if file is None or now >= self._look_at:
                file = self._open()
                self._look_at = now + _LOOK
            flock(file, LOCK_EX)
            try:
                written = pread(file, _WIDTH, 0)
                if written != self._record:  # another process is at it too, or this is the first one here
                    before = _parse(written)
                    if before is not None and before[0] >= number:
                        return
                self._record = record = b"%-95b\n" % f"{number} {mac}".encode("ascii")
                pwrite(file, record, 0)
            finally:
                flock(file, LOCK_UN)

    def get(self) -> tuple[int, str] | None:
        """The newest entry that was kept."""
        if not self._path.exists():
            return None
        with self._lock:
            file = self._open()
            flock(file, LOCK_SH)
            try:
                return _parse(pread(file, _WIDTH, 0))
            finally:
                flock(file, LOCK_UN)


def _parse(record: bytes) -> tuple[int, str] | None:
    fields = record.decode("ascii", "replace").split()
    return (int(fields[0]), fields[1]) if len(fields) == 2 and fields[0].isdigit() else None
