"""Run a program that is killed at a failpoint, once for each of them, without waiting for imports.

One process imports what is to be tried, and forks a child for every trial: a real process, killed by a real signal,
that starts in milliseconds. The program is a function `program(folder)`, named as `package.module:function`; what it
returns is JSON. It is written so that starting it again goes on.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from troth.errors import RunError
from troth.runtime.store import failpoints

__all__ = ["CrashLab", "Trial"]

_PATIENCE = 30  # seconds after which a trial that does not end is ended


@dataclass(frozen=True, slots=True)
class Trial:
    """How one run of the program ended: killed, or with an answer."""

    was_killed: bool
    answer: Any = None


class CrashLab:
    """Runs one program again and again in one folder after the other. Use it in a `with` block."""

    def __init__(self, program: str, search: str | os.PathLike[str] | None = None) -> None:
        self._program = program
        paths = [str(search)] if search is not None else []
        self._env = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])}
        self._env.pop(failpoints.VARIABLE, None)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "troth.testing.crash", self._program]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._env
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            with self._process as process:
                _pipe(process.stdin).close()
                process.wait(_PATIENCE)

    def run(self, folder: str | os.PathLike[str], failpoint: str | None = None, *, nth: int = 1) -> Trial:
        """Run the program in `folder`, killed at the `nth` arrival at `failpoint` if one is named."""
        if self._process is None:
            raise RunError("The lab is not open; use it in a `with` block.")
        request = {"folder": str(folder), "failpoint": failpoint, "nth": nth}
        _pipe(self._process.stdin).write(json.dumps(request) + "\n")
        _pipe(self._process.stdin).flush()
        answer: Mapping[str, Any] = json.loads(_pipe(self._process.stdout).readline() or '{"code": null}')
        if answer["code"] == -signal.SIGKILL:
            return Trial(was_killed=True)
        if answer["code"] != 0:
            raise RunError(f"The program neither finished nor was it killed: exit code {answer['code']}.")
        return Trial(was_killed=False, answer=json.loads((Path(folder) / "answer.json").read_text("utf-8")))


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RunError("The lab's process has no pipes.")
    return pipe


def _requests() -> Iterator[Mapping[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def _serve(program: str) -> None:
    module, _, name = program.partition(":")
    function = getattr(importlib.import_module(module), name)
    out = os.dup(1)
    os.dup2(2, 1)  # what a trial prints must not be taken for an answer
    for request in _requests():
        child = os.fork()
        if child == 0:
            _trial(function, request)
        _, status = os.waitpid(child, 0)
        os.write(out, (json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n").encode())


def _trial(function: Any, request: Mapping[str, Any]) -> None:
    """In the child: run the program to its end, or to the failpoint."""
    code = 1
    with contextlib.suppress(BaseException):
        signal.alarm(_PATIENCE)
        if request["failpoint"]:
            failpoints.arm(request["failpoint"], failpoints.action_named("kill"), nth=request["nth"])
        try:
            answer = function(request["folder"])
            Path(request["folder"], "answer.json").write_text(json.dumps(answer), "utf-8")
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
