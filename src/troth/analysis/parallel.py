"""Do several pieces of work at once, each in a process of its own.

A child is forked, so that it sees all that its parent has read without copying it, and sends back one pickled value.
Where there is no `fork`, or where other threads run (a forked lock would stay locked forever), the pieces are done one
after the other; the same happens to a piece whose child dies. Whoever interrupts the work (Ctrl-C) waits for no child:
one that parses a large file would not hear of it for seconds.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["can_fork", "in_processes"]

T = TypeVar("T")


def can_fork() -> bool:
    """Whether work can be spread over processes here."""
    return hasattr(os, "fork") and threading.active_count() == 1


def in_processes(pieces: Sequence[Callable[[], T]]) -> list[T]:
    """The results of all pieces, in their order; the last piece is done by this process itself."""
    if len(pieces) < 2 or not can_fork():
        return [piece() for piece in pieces]
    sys.stdout.flush()
    sys.stderr.flush()
    children: list[tuple[int, int]] = []
    received: list[bytes] = []
    try:
        children.extend(map(_start, pieces[:-1]))
        last = pieces[-1]()
        while len(received) < len(children):
            received.append(_receive(*children[len(received)]))
    except BaseException:
        for pid, reader in children[len(received) :]:
            _end(pid, reader)
        raise
    results: list[T] = []
    for piece, data in zip(pieces[:-1], received, strict=True):
        results.append(pickle.loads(data) if data else piece())  # noqa: S301  sent by our own child
    return [*results, last]


def _start(piece: Callable[[], object]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        os.close(reader)
        data = pickle.dumps(piece(), protocol=pickle.HIGHEST_PROTOCOL)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's may run twice: no exit handlers, no flushing of its buffers


def _end(pid: int, reader: int) -> None:
    """End a child that nobody waits for any more."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        os.close(reader)


def _receive(pid: int, reader: int) -> bytes:
    """What a child sent; nothing if it did not finish."""
    with os.fdopen(reader, "rb", closefd=False) as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    os.close(reader)
    return data if status == 0 else b""
