"""How a failure leaves the blocks it happened in. None of these leaves the decision."""

from troth.runtime.sagas.rollback import Rollback, StepFailed

__all__ = ["LetGo", "OverBudget", "WorkflowStopped", "incomplete"]


class WorkflowStopped(Exception):  # noqa: N818 -- carries a failure out of nested blocks; never leaves the decision
    """A step failed for good, and the block it is in stops there."""

    def __init__(self, failure: StepFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


class OverBudget(WorkflowStopped):
    """A limit of `workflow`'s budget is reached. No block goes on without the step it was reached at."""

    def __init__(self, failure: StepFailed, workflow: str) -> None:
        super().__init__(failure)
        self.workflow = workflow


class LetGo(WorkflowStopped):
    """Enough of those beside this branch have succeeded. No block goes on here; the race it belongs to knows."""


def incomplete(step: str, failure: StepFailed, rollback: Rollback) -> StepFailed:
    """The failure of a step of which not everything could be undone."""
    remaining = "; ".join(f"{undo_failure.step}: {undo_failure}" for undo_failure in rollback.failed)
    message = f"{failure.message}; not everything could be undone: {remaining}"
    return StepFailed(step, failure.type, message, failure.place, failure.details)
