"""What an engine refuses, and how the failures of runs are named.

MisuseError
├── NotADecisionError       what was given to be run is not a generator function
├── UnknownDecisionError    the run's decision is not registered with this engine
├── UnknownRunError         there is no such run
├── RunMismatchError        the id belongs to a run of something else
├── UnknownColorError       nobody can say whether a step's function is sync or async
├── NotAwaitedError         a signal was to be sent only if somebody waits for it, and nobody does
│   └── TooLateError        somebody does, but the time is up
├── NondeterministicError   replayed, the decision asked for something else than it did before
└── CannotResumeError       going on would repeat what is done
RunError
├── RunFailedError          a run failed; `run` is attached
│   └── RunCancelledError   it was cancelled; also thrown into the decision, which may clean up
├── StepFailedError         thrown into the decision when a step has used up its attempts
│   └── WaitTimeoutError    nobody sent the signal in time
├── StepTimeoutError        one attempt took too long; the step's outcome is unknown
├── LostCoroutineError      one attempt made a coroutine that nobody awaited
├── ThreadsExhaustedError   too many abandoned threads; the step was not started
├── ResultTimeoutError      the run was not over in time; it goes on
└── EngineClosedError       the engine was closed
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from troth.errors import MisuseError, RunError

if TYPE_CHECKING:
    from troth.runtime.store import RunRecord

__all__ = [
    "CannotResumeError",
    "EngineClosedError",
    "LostCoroutineError",
    "NondeterministicError",
    "NotADecisionError",
    "NotAwaitedError",
    "ResultTimeoutError",
    "RunCancelledError",
    "RunFailedError",
    "RunMismatchError",
    "StepFailedError",
    "StepTimeoutError",
    "ThreadsExhaustedError",
    "TooLateError",
    "UnknownColorError",
    "UnknownDecisionError",
    "UnknownRunError",
    "WaitTimeoutError",
]


UNKNOWN = frozenset({"timeout", "late", "interrupted", "lost", "cancelled"})
"""How an attempt can end that tells nothing of its effect."""


class NotADecisionError(MisuseError):
    """What was given to be run is not a generator function. Nothing was started."""


class UnknownDecisionError(MisuseError):
    """The run's decision is not registered with this engine. The run was left as it is."""


class UnknownRunError(MisuseError):
    """There is no run of that id in the store."""


class RunMismatchError(MisuseError):
    """The id belongs to a run of another decision or of other arguments. Nothing was started."""


class UnknownColorError(MisuseError):
    """Nobody can say whether a step's function is sync or async. It was not called."""


class NondeterministicError(MisuseError):
    """Replayed, the decision asked for something else than it did before. Nothing was done; the record is untouched."""


class NotAwaitedError(MisuseError):
    """Nobody waits for the signal, or it was sent already. It was not sent."""


class TooLateError(NotAwaitedError):
    """The signal was not sent: the time of whoever waits for it was up at `deadline`."""

    def __init__(self, message: str, deadline: float) -> None:
        super().__init__(message)
        self.deadline = deadline

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__class__, (str(self), self.deadline)


class CannotResumeError(MisuseError):
    """Going on with the run would repeat what is already done. It was left as it is."""


class RunFailedError(RunError):
    """A run did not complete. `run` is its record, `error` what is written down of the cause."""

    def __init__(self, message: str, run: "RunRecord | None" = None) -> None:
        super().__init__(message)
        self.run = run

    @property
    def error(self) -> Mapping[str, Any]:
        """What is written down of the cause: type, message, place, and the step if it was one."""
        return (self.run.error if self.run is not None else None) or {}


class RunCancelledError(RunFailedError):
    """The run was cancelled. In a decision it arrives at what was asked for last; asks that follow are performed.

    `step_place` is where it arrived, for the record. `has_begun` is false where that is a step whose function was never
    called: there is nothing of it to take back.
    """

    def __init__(
        self,
        message: str,
        run: "RunRecord | None" = None,
        step_place: str | None = None,
        *,
        has_begun: bool = True,
    ) -> None:
        super().__init__(message, run)
        self.step_place = step_place
        self.has_begun = has_begun


class StepFailedError(RunError):
    """A step has failed for good. The same on the first run and on a replay: everything in it comes from the record.

    `outcome` is failed, timeout, late, lost, refused, interrupted or child; `type`, `message` and `place` describe the
    last attempt's error; on a first run `__cause__` is that error itself. `is_outcome_unknown` looks at all attempts.
    """

    def __init__(self, step: str, place: str, error: Mapping[str, Any]) -> None:
        self.step = step
        self.step_place = place
        self.error = error
        where = f" ({error['place']})" if error.get("place") else ""
        super().__init__(f"Step {step!r} failed: {error.get('type')}: {error.get('message')}{where}")

    @property
    def outcome(self) -> str:
        """How the last attempt ended."""
        return str(self.error.get("outcome"))

    @property
    def type(self) -> str:
        """The name of the last attempt's exception."""
        return str(self.error.get("type"))

    @property
    def message(self) -> str:
        """The text of the last attempt's exception."""
        return str(self.error.get("message"))

    @property
    def details(self) -> Mapping[str, Any]:
        """What the last attempt's exception said in fields: the timeout it broke, the budget that is used up."""
        details = self.error.get("details")
        return details if isinstance(details, Mapping) else {}

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether the effect may have happened although the step failed: undo it all the same.

        So it may if any attempt was cut off, the last one or one before it, or returned what could not be kept.
        """
        return self.outcome in UNKNOWN or bool(self.error.get("is_outcome_unknown"))

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__class__, (self.step, self.step_place, self.error)


class WaitTimeoutError(StepFailedError):
    """Nobody sent the signal in time."""


class StepTimeoutError(RunError):
    """An attempt took longer than `timeout` seconds. Whether its effect happened is unknown."""

    def __init__(self, message: str, timeout: float | None = None) -> None:
        super().__init__(message)
        self.timeout = timeout

    @property
    def troth_details(self) -> Mapping[str, object]:
        """What is recorded beside the message."""
        return {"timeout": self.timeout}


class LostCoroutineError(RunError):
    """An attempt made a coroutine that nobody awaited, so part of the step never happened."""


class ThreadsExhaustedError(RunError):
    """As many threads as allowed are stuck in steps that timed out. The step was not started."""


class ResultTimeoutError(RunError):
    """The run was not over in time. It goes on, and can be waited for again."""


class EngineClosedError(RunError):
    """The engine was closed. What it was working on is interrupted, and the next engine goes on with it."""
