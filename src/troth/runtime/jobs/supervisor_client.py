"""Ask the supervisor for commands: one process for each runtime, started with the first command, detached from us."""

import json
import logging
import os
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from troth.errors import RunError
from troth.runtime.jobs import supervisor

__all__ = ["SupervisorClient"]

log = logging.getLogger("troth.jobs")

_PATIENCE = 30.0  # seconds in which a supervisor answers, on a machine that swaps
_unreaped: set[int] = set()
_clients: "weakref.WeakSet[SupervisorClient]" = weakref.WeakSet()


class SupervisorClient:
    """One connection to one supervisor. `ended(id)` is called, on a thread of this client, when a command has ended."""

    def __init__(self, folder: Path, ended: Callable[[str], None]) -> None:
        self._folder = folder
        self._ended = ended
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._answers: dict[str, Future[dict[str, Any]]] = {}
        _clients.add(self)

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have a command started; the answer says which process it is, or what the problem was."""
        answer: Future[dict[str, Any]] = Future()
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            self._answers[request["id"]] = answer
            try:
                self._connected().sendall(line)
            except OSError as gone:  # the supervisor was killed: a new one is started, and asked instead
                log.warning("The supervisor of jobs is gone (%s); a new one is started.", gone)
                self._disconnect()
                self._connected().sendall(line)
        try:
            return answer.result(_PATIENCE)
        finally:
            self._answers.pop(request["id"], None)

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = _launch(self._folder)
            threading.Thread(
                target=self._listen, args=(self._socket,), name="troth-jobs-supervisor", daemon=True
            ).start()
        return self._socket

    def _listen(self, connection: socket.socket) -> None:
        unread = b""
        while data := _receive(connection):
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "ended" in message:
                    self._ended(message["ended"])
                elif (answer := self._answers.get(message["id"])) is not None:
                    answer.set_result(message)
        with self._lock:
            if self._socket is connection:
                self._disconnect()
                for answer in self._answers.values():
                    if not answer.done():
                        answer.set_exception(RunError("The supervisor of jobs was killed before it answered."))

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Let the supervisor go: it ends what is to end with us, and looks after the rest."""
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is not None:
            _hang_up(connection)
        _reap()

    def after_fork(self) -> None:
        """In the child: the connection belongs to the parent, and ends with it and nobody else."""
        self._lock = threading.Lock()
        self._answers = {}
        self._disconnect()


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that reads
    except OSError:
        return  # the supervisor has left before us
    finally:
        connection.close()


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""  # it was closed, here or there


def _launch(folder: Path) -> socket.socket:
    """Start a supervisor, and return our end of the connection."""
    _reap()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours, theirs = socket.socketpair()
    log_file = str(folder / "supervisor.log")
    with theirs:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", supervisor.__file__],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            ],
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    _unreaped.add(pid)
    return ours


def _reap() -> None:
    """Take away supervisors that have ended: those that still run are nobody's children once we are gone."""
    for pid in list(_unreaped):
        try:
            is_over = os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            is_over = True  # somebody else has waited for it
        if is_over:
            _unreaped.discard(pid)


def _forked() -> None:
    _unreaped.clear()
    for client in list(_clients):
        client.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
