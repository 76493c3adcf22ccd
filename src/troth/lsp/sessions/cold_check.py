"""Check a folder that has no cache in a process of its own, which leaves one.

A first look at everything needs three times the memory of a later one, and Python gives hardly any of it back. It also
takes seconds in which an editor waits for other answers. Its server then begins like any other that finds a cache.
Nothing that is open in the editor is looked at there: it reads the files as they are on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

from troth.analysis.check import CheckRequest

__all__ = ["ColdCheck", "main"]

_log = logging.getLogger("troth.lsp")
Progress = Callable[[int, int], None]
_LENGTH = 8  # bytes of the number in front of a request


class ColdCheck:
    """Checks one folder after the other: each takes all cores that pay."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def check(self, request: CheckRequest, progress: Progress | None) -> None:
        """Check what is on the disk; when this returns there is a cache, unless something went wrong.

        The process ends early if the caller is cancelled, and if this one dies.
        """
        async with self._turn:
            # `-P`: a folder that is checked may have modules by the names of those that are imported.
            script = f"from {__name__} import main; raise SystemExit(main())"
            command = [sys.executable, "-P", "-c", script, str(os.getpid())]
            pipe = asyncio.subprocess.PIPE
            try:
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=pipe, stdout=pipe, start_new_session=True
                )
            except (OSError, NotImplementedError) as problem:  # some loops have no processes
                _log.warning("a first check cannot have a process of its own: %s", problem)
                return
            try:
                code = await _attend(process, request, progress)
            finally:
                if process.returncode is None:
                    _end(process.pid)
                    await process.wait()
            _log.info("a process of its own has checked %s, exit code %d", request.cwd, code)


async def _attend(process: asyncio.subprocess.Process, request: CheckRequest, progress: Progress | None) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    import pickle  # late: hardly any server needs it

    data = pickle.dumps(request)
    with contextlib.suppress(ConnectionError):
        process.stdin.write(len(data).to_bytes(_LENGTH, "little") + data)  # it stays open as long as this process lives
        await process.stdin.drain()
    while line := await process.stdout.readline():
        count, total = map(int, line.split())
        if progress is not None:
            progress(count, total)
    return await process.wait()


def _end(pid: int) -> None:
    """End a process with the ones that it has started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)


def main() -> int:
    """Be the process: read the request from stdin, check, and write how far it has come to stdout."""
    import pickle

    from troth.analysis.check import check, prepare
    from troth.analysis.gc_pause import uncollected
    from troth.analysis.pipeline.request import AbandonedError
    from troth.errors import TrothError

    server, own = int(sys.argv[1]), os.getpid()
    length = int.from_bytes(sys.stdin.buffer.read(_LENGTH), "little")
    request = pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301 - of our own server
    if os.name == "nt":  # elsewhere another thread would keep the check from its own processes
        threading.Thread(target=_end_with_server, daemon=True).start()
    shown = -1

    def report(count: int, total: int, _path: str) -> None:
        nonlocal shown
        percent = count * 100 // max(total, 1)
        if percent > shown:
            shown = percent
            sys.stdout.write(f"{count} {total}\n")
            sys.stdout.flush()

    def is_wanted() -> bool:
        """Whether the server lives; asked by this process, and by those that it has forked."""
        return os.name == "nt" or os.getppid() == (server if os.getpid() == own else own)

    try:
        with uncollected():
            check(prepare(request), report, wants_program=False, is_wanted=is_wanted)
    except (AbandonedError, BrokenPipeError):
        os._exit(1)  # nobody is there to hear of it
    except TrothError:
        return 2  # the server finds out the same, and says so
    return 0


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
