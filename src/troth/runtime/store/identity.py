"""Find which process an owner is, and whether that process still lives.

On one machine death is a fact that can be looked up: the process id, with the moment at which it started (ids are
reused) and the boot and process namespace it belongs to (a container has ids of its own). Where it cannot be looked
up, an owner lives as long as it sends heartbeats.
"""

import functools
import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BEAT_EVERY", "LIFETIME", "Owner", "is_alive", "lives_here", "new_owner", "process_started", "retire"]

BEAT_EVERY = 2.0
LIFETIME = 20.0
"""Seconds without a heartbeat after which an owner is given up although its process exists. Guessed: long enough for a
machine that swaps or a thread that holds the interpreter, short enough for an engine that was forgotten, not closed."""

_living: set[str] = set()
os.register_at_fork(after_in_child=_living.clear)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever holds leases: one engine in one process."""

    id: str
    machine: str
    pid: int
    pid_started: int
    beat_at: float


def new_owner(now: float) -> Owner:
    """An owner for an engine in this process. It counts as alive until `retire`, a fork, or the end of the process."""
    pid = os.getpid()
    owner = Owner(uuid.uuid4().hex, _machine(), pid, process_started(pid) or 0, now)
    _living.add(owner.id)
    return owner


def retire(owner: Owner) -> None:
    """Stop counting `owner` among the living of this process."""
    _living.discard(owner.id)


def lives_here(owner: Owner) -> bool:
    """Whether `owner` is one of this process that was not retired."""
    return owner.id in _living


def is_alive(owner: Owner, now: float, *, lifetime: float | None = None) -> bool:
    """Whether `owner` may still be at work. Wrong only for the living who were silent for its lifetime."""
    if owner.id in _living:
        return True
    if now - owner.beat_at > (LIFETIME if lifetime is None else lifetime):
        return False
    if owner.machine != _machine():
        return True  # nothing can be looked up there; its heartbeat is recent
    if owner.pid == os.getpid() and owner.pid_started in {0, process_started(owner.pid)}:
        return False  # this very process, and it does not know that owner (any more)
    return _process_lives(owner)


def _process_lives(owner: Owner) -> bool:
    started = process_started(owner.pid)
    if started is not None:
        return started == owner.pid_started
    if Path("/proc/self/stat").exists():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's process: it exists
    return True


def process_started(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; nothing if it does not run (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()  # the name before it may hold spaces and brackets
    return None if fields[0] in {b"Z", b"X"} else int(fields[19])


@functools.cache
def _machine() -> str:
    return f"{socket.gethostname()}/{_boot()}/{_namespace()}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "-"


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  the target is a name, not a path
    except OSError:
        return "-"
