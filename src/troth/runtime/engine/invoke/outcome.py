"""How one attempt of a step ended."""

from typing import Any, Literal, NamedTuple

__all__ = ["Ended", "Outcome"]

Ended = Literal["done", "failed", "timeout", "late", "lost", "refused", "cancelled"]


class Outcome(NamedTuple):
    """What came of one attempt.

    done       `value` is what it returned
    failed     it raised `error`
    timeout    it did not return in time, and was cancelled or abandoned: its effect may have happened
    late       it returned, but after its time was up
    lost       it returned, but a coroutine it made was never awaited
    refused    it never started
    cancelled  the run was cancelled while it was in flight: its effect may have happened
    """

    ended: Ended
    value: Any = None
    error: BaseException | None = None
