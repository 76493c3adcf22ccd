"""What the exit codes of `troth` mean; `docs/reference/exit-codes.md` tells users, and a test holds both."""

import os
import sys
from enum import IntEnum
from typing import NoReturn

__all__ = ["Exit", "leave"]


class Exit(IntEnum):
    """One meaning per number, for every command."""

    CLEAN = 0  # done, and nothing to report
    FOUND = 1  # findings, or a run that failed
    MISUSE = 2  # wrong use or bad input: nothing was done
    BUG = 3  # our own bug; a report was written
    INCOMPLETE = 4  # done, but for what bugs of our own have cost; each is named
    INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT


def leave(code: int) -> NoReturn:
    """End the process at once, when all is written: the system takes back the memory faster than Python can."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # nobody reads any more; Python's own way out copes with that
    os._exit(code)
