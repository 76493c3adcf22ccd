"""Read source from stdin, or from a pipe that is named by a path."""

import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from troth.errors import MisuseError

__all__ = ["source_on_stdin"]

_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def source_on_stdin(command: str, paths: Sequence[str], filename: str | None) -> bytes | None:
    """The source on stdin, or in a pipe such as `<(…)` of bash, if one of `paths` asks for it; None if none does.

    `filename` is what the user says it stands for.
    """
    sources = [path for path in paths if path in _STDIN or _is_pipe(path)]
    verb = {"check": "checked", "fix": "repaired"}[command]
    if not sources:
        if filename is not None:
            raise MisuseError(
                "`--stdin-filename` names the source on stdin, but stdin is not checked.\n"
                f"Nothing was {verb}.\nWrite `troth {command} - --stdin-filename {filename}`."
            )
        return None
    if len(paths) > 1:
        raise MisuseError(
            f"`{sources[0]}` is the source of one file, and cannot be combined with other paths.\n"
            f"Nothing was {verb}.\nCheck the other paths in a separate run."
        )
    if sources[0] not in _STDIN:
        return Path(sources[0]).read_bytes()
    if sys.stdin is None or sys.stdin.isatty():
        raise MisuseError(
            f"`{sources[0]}` reads source from stdin, and stdin is a terminal.\n"
            f"Nothing was {verb}.\nRedirect a file to it: `troth {command} - --stdin-filename app.py < app.py`."
        )
    return sys.stdin.buffer.read()


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False
