"""Knows how to print results to a reader who may leave before the end (`| head`)."""

import os
import sys
from collections.abc import Iterable

from troth.errors import RunError

__all__ = ["reader_left", "say"]


def say(lines: Iterable[str | bytes]) -> bool:
    """Print lines to stdout, bytes as they are; False if nobody is left to read them, which is no failure of ours."""
    # A file's name can hold bytes that are no text, and a terminal may not know every letter: neither may stop us.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            if isinstance(line, bytes):
                sys.stdout.flush()
                sys.stdout.buffer.write(line + b"\n")
            else:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
        return False
    except OSError as problem:
        reader_left()
        raise RunError(
            f"The results could not be written to stdout: {problem.strerror or problem}.\n"
            "The work itself was done, and no file was changed by this.\nSend stdout to a place that can be written."
        ) from problem
    return True


def reader_left() -> None:
    """Point stdout at nothing, so that Python's flush at exit has nothing to complain about."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
