"""Know which machine a job is on, where several machines share a store, and whether that machine is heard of.

A machine is named by the folder in which it keeps the files of the store's jobs, and by its own identity: two machines
may share a folder through the network, and two containers may be called the same.
"""

import functools
import os
import socket
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from troth.runtime.jobs.commit_points import JOB_HEARD
from troth.runtime.jobs.job_log import JobDetails
from troth.runtime.store import Store

__all__ = ["Machines", "folder_of", "machine_of"]

_NAME = ".machine"  # beside the folders of the jobs, whose names begin with a letter or a digit
_BEAT = 10.0  # seconds between two signs of life, and between two looks for those of others
_GAP = 5.0  # seconds without a look that are no sign that the database was away


def folder_of(store: Path) -> Path:
    """Where the files of a store's jobs are: beside it."""
    return store.with_name(f"{store.name}.jobs")


def machine_of(folder: Path, *, is_new: bool = False) -> str:
    """What this machine is called in the logs of the jobs whose files it keeps in `folder`.

    Empty where there never was a job; with `is_new`, there is to be one now.
    """
    name = folder / _NAME
    try:
        own = name.read_text(encoding="ascii")
    except FileNotFoundError:
        if not is_new:
            return ""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        own, draft = uuid.uuid4().hex, folder / f"{_NAME}.{uuid.uuid4().hex}"
        draft.write_text(own, encoding="ascii")
        try:
            os.link(draft, name)  # whole, and never in the place of another's
        except FileExistsError:
            own = name.read_text(encoding="ascii")  # another program was quicker
        finally:
            draft.unlink()
    return f"{_identity()}/{own}"


@functools.cache
def _identity() -> str:
    """Of a container, mostly that of its image; that is why the folder has a name of its own."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or socket.gethostname()
    except OSError:
        return socket.gethostname()


class Machines:
    """The machines whose jobs one store has. On a file there is one. Not for several threads at once, but `is_here`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._beat_every = min(_BEAT, store.machine_lifetime / 6)
        self._beaten_at = self._looked_at = -_BEAT * 100
        self._here = ""
        self._silent: dict[str, tuple[float, float]] = {}

    def name(self) -> str:
        """What this one is called, for a job that is about to begin here."""
        self._here = machine_of(folder_of(self._store.path), is_new=True)
        return self._here

    def is_here(self, details: JobDetails) -> bool:
        """Whether the process and the files of a job are on this machine."""
        if not self._store.is_shared:
            return True
        if not self._here:
            self._here = machine_of(folder_of(self._store.path))
        return bool(self._here) and details.machine == self._here

    def files_of(self, details: JobDetails, job_id: str) -> Path:
        """The folder of a job, on its machine."""
        return Path(details.folder) if details.folder else folder_of(self._store.path) / job_id

    def beat(self) -> None:
        """Give a sign of life, if it is time to: somebody here looks after jobs of this machine."""
        if self._store.is_shared and time.monotonic() - self._beaten_at >= self._beat_every:
            name = self.name()
            self._store.commit(JOB_HEARD, lambda tx: tx.set_meta(_key(name), self._store.clock()))
            self._beaten_at = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time to look which machines are silent."""
        return time.monotonic() - self._looked_at >= self._beat_every

    def silent(self, machines: Iterable[str]) -> dict[str, float]:
        """Those of which nothing was heard for as long as a machine lives, each with when it was heard of last.

        Whoever looks must itself have had the store for a while: after an outage of the database, the others are given
        the time to be heard again.
        """
        now = time.monotonic()
        patience = 3 * self._beat_every
        if now - self._looked_at > max(patience, _GAP):
            self._silent.clear()
        names = list(machines)
        heard = self._store.commit(JOB_HEARD, lambda tx: {name: tx.get_meta(_key(name)) or 0.0 for name in names})
        self._looked_at = now
        self._silent = {
            name: (at, self._silent[name][1] if name in self._silent and self._silent[name][0] == at else now)
            for name, at in heard.items()
        }
        lost_before = self._store.clock() - self._store.machine_lifetime
        return {name: at for name, (at, since) in self._silent.items() if at < lost_before and now - since >= patience}


def _key(machine: str) -> str:
    return f"jobs of {machine} looked after at"
