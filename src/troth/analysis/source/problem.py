"""What is said of a file that cannot be read."""

from typing import NamedTuple

from troth.analysis.crash import Crash

__all__ = ["Problem", "is_unopened"]


class Problem(NamedTuple):
    """Why a file could not be read, and where."""

    line: int
    column: int
    text: str
    newer_syntax: bool = False
    is_template: bool = False
    is_syntax: bool = False
    is_unopened: bool = False  # and may be opened the next time, although it looks the same
    crash: Crash | None = None  # our own fault, not that of the file


def is_unopened(facts: object) -> bool:
    """Whether what is known of a file is that it could not be opened."""
    return isinstance(facts, Problem) and facts.is_unopened
