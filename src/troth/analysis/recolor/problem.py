"""What a place that cannot be changed by rule looks like."""

from dataclasses import dataclass, field

from troth.analysis.semantics.symbols import Function

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A place where somebody has to decide, and why. While there is one, nothing is written.

    `about` are the functions that could change but for it; `settled_by` are the lines of a file of decisions, each of
    which would settle it.
    """

    path: str
    line: int
    text: str
    why: str
    about: tuple[Function, ...] = field(default=(), compare=False)
    settled_by: tuple[str, ...] = field(default=(), compare=False)
