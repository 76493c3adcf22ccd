"""A cancellation that comes when the outcome of an attempt is known already."""

import asyncio

from troth.runtime.engine.invoke.outcome import StepOutcome

__all__ = ["CancelledAfterError"]


class CancelledAfterError(asyncio.CancelledError):
    """The task is cancelled, and what it was waiting for is done: `outcome` is kept before the run is let go."""

    def __init__(self, outcome: StepOutcome) -> None:
        super().__init__()
        self.outcome = outcome
