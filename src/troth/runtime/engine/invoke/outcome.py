"""How one attempt of a step ended."""

from typing import Any, Literal, NamedTuple

from troth.runtime.store import NotJsonError

__all__ = ["Ended", "StepOutcome", "Unkeepable"]

Ended = Literal["done", "failed", "timeout", "late", "lost", "refused", "cancelled", "interrupted"]


class StepOutcome(NamedTuple):
    """What came of one attempt.

    done       `value` is what it returned
    failed     it raised `error`
    timeout    it did not return in time, and was cancelled or abandoned: its effect may have happened
    late       it returned, but after its time was up
    lost       it returned, but a coroutine it made was never awaited
    refused    it never started
    cancelled  the run was cancelled while it was in flight: its effect may have happened
    interrupted  whoever made it is gone: its effect may have happened
    """

    ended: Ended
    value: Any = None
    error: BaseException | None = None


class Unkeepable(NamedTuple):
    """The value of an attempt that is done, in another process, and returned what cannot be kept; `error` says why."""

    error: NotJsonError
