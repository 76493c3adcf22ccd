"""What a place that cannot be changed by rule looks like."""

from dataclasses import dataclass, field

from troth.analysis.semantics.symbols import Function

__all__ = ["Obstacle"]


@dataclass(frozen=True, slots=True, order=True)
class Obstacle:
    """A place where somebody has to decide, and why. While there is one, nothing is written.

    `about` are the functions that could change but for it; `settled_by` are the lines of a file of decisions, each of
    which would settle it. `doubt` says in a comment's words what may be wrong where nothing is changed; it is empty
    where something surely would be.
    """

    path: str
    line: int
    text: str
    why: str
    about: tuple[Function, ...] = field(default=(), compare=False)
    settled_by: tuple[str, ...] = field(default=(), compare=False)
    doubt: str = field(default="", compare=False)
