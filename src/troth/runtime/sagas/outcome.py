"""How a saga ends: in the words that runs have for it, with every step named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from troth.errors import RunError
from troth.runtime.sagas.rollback import StepFailed

__all__ = ["SagaFailedError", "SagaOutcome", "SagaState"]


class SagaState(StrEnum):
    """The ends of a saga, each in the word that `RunReport.state` has for it. Nothing runs after any of them.

    COMPLETED            every step was done
    ROLLED_BACK          a step failed, and what was done before it was undone
    FAILED               a step failed, and there was nothing to undo
    CANCELLED            it was cancelled, and what was done was undone
    ROLLBACK_INCOMPLETE  an undo failed; `run_saga` with the same id, `cancel_saga` and `resume_saga` try it again
    """

    COMPLETED = "completed"
    ROLLED_BACK = "rolled back"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ROLLBACK_INCOMPLETE = "rollback incomplete"


@dataclass(frozen=True, slots=True)
class SagaOutcome:
    """What became of each step.

    `done` were done (some of them undone later); `undone` were undone, the last done first, among them the failed step
    itself where it may have happened; `kept` have no undo; `not_undone` could not be undone, with the reasons.
    """

    state: SagaState
    done: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    failed: StepFailed | None = None
    not_undone: tuple[StepFailed, ...] = ()
    results: Mapping[str, object] = field(default_factory=dict)
    was_cancelled: bool = False
    """Whether it ended because it was cancelled, and not on a failure of its own."""

    def __str__(self) -> str:
        if self.state is SagaState.COMPLETED:
            return f"completed: {', '.join(self.done) or 'nothing to do'}"
        assert self.failed is not None
        is_step = self.failed.step != "?"  # it was cancelled between two steps
        why = f"the step {self.failed.step!r} failed with {self.failed}" if is_step else self.failed.message
        lines = [f"{self.state}: {why}"]
        lines.append(f"undone: {', '.join(self.undone) or 'nothing'}")
        if self.kept:
            lines.append(f"not undone, because they have no undo: {', '.join(self.kept)}")
        lines += [f"NOT undone: {failure.step}, because its undo failed with {failure}" for failure in self.not_undone]
        return "\n".join(lines)


class SagaFailedError(RunError):
    """A saga did not complete. `outcome` names what was done, undone and left."""

    def __init__(self, outcome: SagaOutcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome
