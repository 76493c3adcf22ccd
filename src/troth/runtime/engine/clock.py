"""What time it is in a run: as the clock on the wall says, but never earlier than before.

A wall clock is set now and then. Set forward, what waits for a moment goes on. Set back, a sleep of a second would last
an hour more, a limit of time would not be kept, and a step would end before it began. So a run's clock follows the wall
forward, and while the wall is behind it goes on by the time that really passes. After a restart it goes on from the
last moment on record, for the same reasons.
"""

import math
import time
from collections.abc import Callable, Sequence

from troth.runtime.store import StepRecord

__all__ = ["SteadyClock", "last_moment"]


class SteadyClock:
    """A clock that never goes back. From any thread; costs two looks at the system's clocks."""

    __slots__ = ("_ahead", "_monotonic", "_wall")

    def __init__(
        self,
        wall: Callable[[], float],
        not_before: float = -math.inf,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._ahead = not_before - monotonic()  # how far the latest time that was ever right is ahead of `monotonic`

    def __call__(self) -> float:
        """Seconds since 1970; as on the wall, or later where the wall was set back."""
        # The wall first: whoever is kept waiting between the two looks sees the wall too early, and goes by the other.
        wall = self._wall()
        passed = self._monotonic()
        if wall - passed < self._ahead:
            return passed + self._ahead
        self._ahead = wall - passed
        return wall


def last_moment(steps: Sequence[StepRecord]) -> float:
    """The latest moment at which something is recorded to have happened."""
    moments = [moment for step in steps for moment in (step.started_at, step.finished_at) if moment is not None]
    return max([*moments, *(attempt.finished_at for step in steps for attempt in step.attempts)], default=-math.inf)
