"""Knows what a place that cannot be changed by rule looks like."""

from dataclasses import dataclass

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A place where somebody has to decide, and why. While there is one, nothing is written."""

    path: str
    line: int
    text: str
    why: str
