"""Undo what was done: in reverse, each with its own retries, going on when one cannot be undone."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troth.runtime.engine.commands import Step
from troth.runtime.engine.errors import RunCancelledError, StepFailedError

__all__ = ["Rollback", "StepFailed", "Undoable", "failure_of", "roll_back"]


@dataclass(frozen=True, slots=True)
class Undoable:
    """A step whose effect is there, or may be. `undo` is None where it has nothing to take back."""

    step: str
    undo: Step | None


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step that failed for good: its last error in words, and the user's line."""

    step: str
    type: str
    message: str
    place: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What the error said in fields."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" + (f" ({self.place})" if self.place else "")

    def as_json(self) -> dict[str, object]:
        """For the record."""
        return {"step": self.step, "type": self.type, "message": self.message, "place": self.place}


def failure_of(step: str, error: StepFailedError) -> StepFailed:
    """What the engine says of a step that failed."""
    return StepFailed(step, error.type, error.message, str(error.error.get("place") or ""), error.details)


@dataclass(frozen=True, slots=True)
class Rollback:
    """What came of undoing: the steps undone, those without an undo, and those that resist."""

    undone: tuple[str, ...] = ()
    without_undo: tuple[str, ...] = ()
    failed: tuple[StepFailed, ...] = ()
    was_cancelled: bool = False
    """Whether the run was asked to end meanwhile: what was undone is undone, and whoever goes on has to end."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing that should be undone is left."""
        return not self.failed


def roll_back(completed: Sequence[Undoable]) -> Generator[Step, Any, Rollback]:
    """Undo `completed`, in reverse order. Each undo is asked for once; a replay is given its recorded answer.

    A request to cancel is not heeded here: stopping half-way would leave exactly the state that undoing is to prevent.
    """
    undone: list[str] = []
    without_undo: list[str] = []
    failed: list[StepFailed] = []
    was_cancelled = False
    for step in reversed(completed):
        if step.undo is None:
            without_undo.append(step.step)
            continue
        try:
            was_cancelled |= yield from _insist(step.undo)
        except StepFailedError as error:
            failed.append(failure_of(step.step, error))
        else:
            undone.append(step.step)
    return Rollback(tuple(undone), tuple(without_undo), tuple(failed), was_cancelled)


def _insist(ask: Step) -> Generator[Step, Any, bool]:
    """Answers whether the run's cancellation arrived here."""
    was_cancelled = False
    while True:
        try:
            yield ask
        except RunCancelledError:
            was_cancelled = True
            continue  # the undo that it reached may have happened or not; an undo tolerates both
        return was_cancelled
