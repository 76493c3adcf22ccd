"""Start a PostgreSQL server for tests: in a folder of its own, on a socket in it, gone with the process.

    with PostgresServer() as server:
        runtime = Runtime(server.address())

It needs the binaries of PostgreSQL 14 or newer: on the PATH, where Debian puts them, or where `TROTH_POSTGRES_BIN`
says.
The server refuses to run as root, so root starts it as the user `postgres` or `nobody`. No port of the network is
opened. Without binaries, `PostgresServer.missing()` says what to install.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Literal, Self

from troth.errors import RunError

__all__ = ["PostgresServer"]

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "fsync": "off",
    "logging_collector": "off",
    "log_min_messages": "fatal",
}
_PATIENCE = 60.0  # seconds for a start on a busy machine
# Ends the server when this process is gone, however that came about: the pipe then ends.
_WATCH = 'cat > /dev/null; kill -QUIT "$0" 2> /dev/null'
_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresServer:
    """A server of its own. `settings` are those of `postgresql.conf`; with `fsync="on"` it is as safe as a real one.

    With `standby_of`, it follows another one, until `promote()`. `data` is where its files lie, an empty folder.
    `binaries` is the folder of another PostgreSQL than the one that is found.
    """

    def __init__(
        self,
        *,
        standby_of: "PostgresServer | None" = None,
        data: str | os.PathLike[str] | None = None,
        binaries: Path | None = None,
        **settings: str,
    ) -> None:
        binaries = binaries or _binaries()
        if binaries is None:
            raise RunError(f"No server can be started: {self.missing()}.")
        self._bin = binaries
        self._settings = {**_SETTINGS, **settings}
        self._user = _unprivileged()
        # Directly in /tmp: the path of a socket is short, and another user has to be let through.
        self._folder = Path(tempfile.mkdtemp(prefix="troth-pg-", dir="/tmp"))
        if self._user is not None:
            os.chown(self._folder, self._user, -1)
        self._data = Path(data) if data is not None else self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        try:
            if standby_of is None:
                self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "troth", "--no-sync")
            else:
                source = f"postgresql://troth@/postgres?host={standby_of.folder}"
                self._run("pg_basebackup", "-D", str(self._data), "-d", source, "-R", "-X", "stream", "--no-sync")
            self.start()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def missing() -> str | None:
        """Why no server can be started on this machine; nothing where one can."""
        if _binaries() is None:
            return "`initdb` and `postgres` are not to be found; `apt-get install postgresql` brings them"
        if os.getuid() == 0 and _unprivileged() is None:
            return "a server refuses to run as root, and there is no user `postgres` or `nobody`"
        return None

    @property
    def folder(self) -> Path:
        """Where the socket is."""
        return self._folder

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._process is not None
        return self._process.pid

    def address(self, schema: str | None = None, **more: object) -> str:
        """The address of a store in a schema, a new one unless it is named."""
        schema = schema or f"t_{uuid.uuid4().hex[:12]}"
        options = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql://troth@/postgres?host={self._folder}&schema={schema}{options}"

    def start(self) -> None:
        """Start the server, and wait until it lets somebody in."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        log = (self._folder / "log").open("ab")
        with contextlib.closing(log):
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self._folder), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                extra_groups=[] if self._user is not None else None,
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
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        """Whether the server says so itself, in the last line of its lock file."""
        with contextlib.suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            assert self._process is not None
            return len(lines) >= 8 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"
        return False

    def stop(self, how: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server: `immediate` as in a crash, `fast` with everything rolled back and written."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(_SIGNALS[how])
            self._process.wait(_PATIENCE)
            self._process = None
        if self._watch is not None:
            assert self._watch.stdin is not None
            self._watch.stdin.close()
            self._watch.wait(_PATIENCE)
            self._watch = None

    def restart(self, how: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """`stop` and `start`."""
        self.stop(how)
        self.start()

    def promote(self) -> None:
        """Make a standby a server that is written to; returns when it is."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "promote")

    def close(self) -> None:
        """Stop the server and remove what it kept."""
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, name: str, *arguments: str) -> None:
        process = subprocess.run(
            [str(self._bin / name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self._user,
            extra_groups=[] if self._user is not None else None,
            cwd=self._folder,
            check=False,
        )
        if process.returncode:
            raise RunError(f"`{name}` failed: {process.stdout.decode(errors='replace')[-2000:]}")


def _binaries() -> Path | None:
    """The folder of the server's binaries: named by the variable, on the PATH, or the newest that Debian has."""
    chosen = os.environ.get("TROTH_POSTGRES_BIN")
    on_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: _number(path.parent.name), reverse=True)
    folders = [Path(chosen)] if chosen else [*([Path(on_path).resolve().parent] if on_path else []), *debian]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _number(name: str) -> int:
    return int(name) if name.isdigit() else 0


def _unprivileged() -> int | None:
    """The user that root starts the server as; nothing for everybody else."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    return None
