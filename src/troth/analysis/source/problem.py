"""Knows what is said of a file that cannot be read."""

from typing import NamedTuple

__all__ = ["Problem"]


class Problem(NamedTuple):
    """Why a file could not be read, and where."""

    line: int
    column: int
    text: str
    newer_syntax: bool = False
    is_template: bool = False
    is_syntax: bool = False
