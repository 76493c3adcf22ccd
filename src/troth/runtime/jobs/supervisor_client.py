"""Ask the supervisor for commands: one process for each runtime, started with the first command, detached from us."""

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from troth.errors import RunError
from troth.runtime.jobs import supervisor

__all__ = ["SupervisorClient"]

log = logging.getLogger("troth.jobs")

_PATIENCE = 30.0  # seconds in which a supervisor answers, on a machine that swaps
_LEAVE = 2.0  # the same when we leave, which takes a millisecond
_unreaped: set[int] = set()
_clients: "weakref.WeakSet[SupervisorClient]" = weakref.WeakSet()


class SupervisorGoneError(RunError):
    """The supervisor has ended while it was asked."""


class SupervisorClient:
    """One connection to one supervisor. `ended(id)` is called, on a thread of this client, when a command has ended."""

    def __init__(self, folder: Path, ended: Callable[[str], None]) -> None:
        self._folder = folder
        self._ended = ended
        # One request at a time: the supervisor starts one after the other anyway. Held from an announcement to its end.
        self._asking = threading.RLock()
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        _clients.add(self)

    def announce(self, request: dict[str, Any]) -> bool:
        """Let the supervisor read a request while its job is written down: it is awake then when `start` says go.

        Nothing is started, and what nobody asks for is forgotten. Answers whether `end_announcement` is to be called,
        by this thread: until then, nobody else asks. While others ask, and before there is a supervisor, nothing is
        announced.
        """
        if not self._asking.acquire(blocking=False):
            return False
        connection = self._connection
        try:
            if connection is not None:
                connection.announce(request)
        except TimeoutError as slow:  # it lives and looks after others: `start` asks it once more
            log.debug("The supervisor of jobs had no time to read a request: %s", slow)
        except OSError as gone:
            log.warning("The supervisor of jobs has ended (%s); a new one will be started.", gone)
            self._disconnect(connection)
        except BaseException:
            self._asking.release()
            raise
        return True

    def end_announcement(self) -> None:
        """Let others ask, whether the job that was announced was started or not."""
        self._asking.release()

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have a command started; the answer says which process it is, or what the problem was.

        The caller's own thread reads the answer: another one that handed it over would have to be scheduled first.
        """
        with self._asking:
            connection = self._connected()
            try:
                connection.ask(request)
            except TimeoutError:
                raise
            except OSError as gone:  # the supervisor was killed: a new one is started, and asked instead
                log.warning("The supervisor of jobs has ended (%s); starting a new one.", gone)
                self._disconnect(connection)
                connection = self._connected()
                connection.ask(request)
            try:
                return connection.answer(request["id"])
            except SupervisorGoneError:
                if Path(request["folder"]).exists():
                    raise
                log.warning("The supervisor of jobs was killed before it accepted a command; starting a new one.")
            self._disconnect(connection)
            connection = self._connected()
            connection.ask(request)
            return connection.answer(request["id"])

    def _connected(self) -> "_Connection":
        with self._lock:
            if self._connection is None:
                self._connection = _launch(self._folder)
                threading.Thread(
                    target=self._listen, args=(self._connection,), name="troth-jobs-supervisor", daemon=True
                ).start()
            return self._connection

    def _listen(self, connection: "_Connection") -> None:
        unread = b""
        while data := _receive(connection.notices):
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                self._ended(json.loads(line)["ended"])
        self._disconnect(connection)

    def _disconnect(self, connection: "_Connection | None") -> None:
        """Ask that supervisor for nothing any more; whoever waits for its answer is told."""
        with self._lock:
            if connection is not None and self._connection is connection:
                self._connection = None
                connection.hang_up()

    def close(self) -> None:
        """Let the supervisor go: it ends what is to end with us, and looks after the rest."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.take_leave()
            connection.hang_up()
        _reap()

    def after_fork(self) -> None:
        """In the child: the connection belongs to the parent, and ends with it and nobody else."""
        self._asking, self._lock = threading.RLock(), threading.Lock()
        if self._connection is not None:
            self._connection.asks.close()
            self._connection.notices.close()
            self._connection = None


class _Connection:
    """Our end: requests and their answers on one socket, what happens by itself on another."""

    def __init__(self, asks: socket.socket, notices: socket.socket) -> None:
        self.asks = asks
        self.notices = notices
        self._unread = b""
        self._env: object = None
        self._announced: str | None = None
        self._is_torn = False
        asks.settimeout(_PATIENCE)

    def announce(self, request: dict[str, Any]) -> None:
        """Send a request that is to wait until it is asked for."""
        self._announced = None
        self._send({**request, "waits": True})
        self._announced = request["id"]

    def ask(self, request: dict[str, Any]) -> None:
        """Ask for a command: it was announced, or all of the request is sent now."""
        if self._announced == request["id"]:
            self._announced = None
            self._write({"begin": request["id"]})
        else:
            self._send(request)

    def _send(self, request: dict[str, Any]) -> None:
        """Send a request. The environment, most of it, is left out while it is that of the request before."""
        env = request["env"]
        if env == self._env:
            request = {name: value for name, value in request.items() if name != "env"}
        self._env = None  # until all of it was sent
        self._write(request)
        self._env = env

    def _write(self, message: dict[str, Any]) -> None:
        """Send a line. The half of one for which there was no room in time ends before it."""
        data = json.dumps(message).encode() + b"\n"
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        self.asks.sendall(data)
        self._is_torn = False

    def answer(self, request_id: str) -> dict[str, Any]:
        """The answer to a request. One to an earlier request, for which nobody waits any more, is passed over."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            *lines, self._unread = self._unread.split(b"\n")
            for message in map(json.loads, lines):
                if message["id"] == request_id:
                    found: dict[str, Any] = message
                    return found
            data = _receive(self.asks)
            if not data:
                raise SupervisorGoneError("The supervisor of jobs was killed before it answered.")
            self._unread += data
        raise TimeoutError(f"The supervisor of jobs did not answer within {_PATIENCE:g} s.")

    def take_leave(self) -> None:
        """Let the supervisor remove what it had prepared: our folder may be somebody's to delete right after this."""
        self.asks.settimeout(_LEAVE)
        try:
            self.asks.shutdown(socket.SHUT_WR)
            while self.asks.recv(1 << 16):
                pass  # an answer for which nobody waits any more
        except OSError as problem:
            log.debug("The supervisor of jobs did not confirm its end: %s", problem)

    def hang_up(self) -> None:
        for connection in (self.asks, self.notices):
            _hang_up(connection)


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
    except TimeoutError:
        raise
    except OSError:
        return b""  # it was closed, here or there


def _launch(folder: Path) -> _Connection:
    """Start a supervisor, and return our end of the connection."""
    _reap()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    asks, requests = socket.socketpair()
    notices, news = socket.socketpair()
    log_file = str(folder / supervisor.LOG)
    with requests, news:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", supervisor.__file__],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, requests.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, news.fileno(), 1),
                (os.POSIX_SPAWN_OPEN, 2, log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            ],
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    _unreaped.add(pid)
    return _Connection(asks, notices)


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
