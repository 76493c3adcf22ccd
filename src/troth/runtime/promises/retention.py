"""Decide how long a result is kept."""

import math
from dataclasses import dataclass

from troth.errors import MisuseError

__all__ = ["WEEK", "Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How many seconds after the end of the work its result is kept; None keeps it forever."""

    seconds: float | None

    def __post_init__(self) -> None:
        """Refuse a time that would lose every result at once."""
        seconds: object = self.seconds
        if seconds is not None and not isinstance(seconds, int | float):
            raise MisuseError(f"A retention is a number of seconds, or None to keep results forever, not {seconds!r}.")
        if self.seconds == math.inf:
            raise MisuseError("A retention without an end is None, not `math.inf`.")
        if self.seconds is not None and not self.seconds > 0:
            raise MisuseError(
                f"A retention of {self.seconds!r} s would delete every result before it could be read.\n"
                "Give a number of seconds above 0, or None to keep results forever."
            )

    def __str__(self) -> str:
        if self.seconds is None:
            return "forever"
        for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
            if self.seconds >= size:
                number = self.seconds / size
                return f"{number:g} {unit}{'s' if number != 1 else ''} from the end of the work"
        return f"{self.seconds:g} seconds from the end of the work"

    @classmethod
    def of(cls, value: "Retention | float | None") -> "Retention":
        """The retention that a number of seconds stands for."""
        return value if isinstance(value, Retention) else cls(value)


WEEK = Retention(7 * 86400.0)
