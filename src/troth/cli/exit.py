"""Knows what the exit codes of `troth` mean; `docs/reference/exit-codes.md` tells users, and a test holds both."""

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    """One meaning per number, for every command."""

    CLEAN = 0  # done, and nothing to report
    FOUND = 1  # findings, or a run that failed
    MISUSE = 2  # wrong use or bad input: nothing was done
    BUG = 3  # our own bug; a report was written
    INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT
