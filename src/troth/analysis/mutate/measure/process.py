"""Run one command in a copy, with a time limit, and leave nothing of it running."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Finished", "run_command"]


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended; `code` is None if its time ran out, negative if a signal ended it."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def tail(self) -> str:
        """The end of what it said, for an error message."""
        output = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "\n".join(f"  {line[:200]}" for line in output[-12:]) or "  (no output)"


def run_command(
    command: str | Sequence[str],
    *,
    cwd: Path,
    limit: float,
    environ: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> Finished:
    """Run `command` (a string through the shell, since users write pipes and variables) and wait for its end.

    The command gets a process group of its own, and the whole group is ended when time is up or on Ctrl-C. Output
    goes to files, not pipes: a grandchild that outlives the command would hold a pipe open, and we would wait for it.
    In a thread, where Ctrl-C does not arrive, `stop` ends the command as if its time were up.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=cwd,
            env=None if environ is None else {**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=sys.platform != "win32",
        )
        try:
            code = _wait(child, limit, stop)
        finally:
            _end(child)
        out.seek(0)
        err.seek(0)
        output = [stream.read().decode("utf-8", "replace") for stream in (out, err)]
    return Finished(code, output[0], output[1], time.monotonic() - started)


def _wait(child: "subprocess.Popen[bytes]", limit: float, stop: threading.Event | None) -> int | None:
    deadline = time.monotonic() + limit
    while (remaining := deadline - time.monotonic()) > 0 and not (stop and stop.is_set()):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(remaining if stop is None else min(remaining, 0.2))
    return None


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the command and everything it started; what has ended already is left in peace."""
    if sys.platform == "win32":
        child.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
