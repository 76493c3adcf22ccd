"""What a saga does next: the next step, or the undoing of those before. Decides and never waits."""

from collections.abc import Generator, Mapping
from typing import Any

from troth.runtime.engine.commands import Step
from troth.runtime.engine.errors import RunCancelledError, StepFailedError
from troth.runtime.sagas.outcome import SagaOutcome, SagaState
from troth.runtime.sagas.rollback import Rollback, StepFailed, Undoable, failure_of, roll_back
from troth.runtime.sagas.saga import ResultOf, Saga, SagaStep, Tried
from troth.runtime.sagas.undo import undo_arguments, undo_names_of, undo_step

__all__ = ["decide"]


def decide(saga: Saga) -> Generator[Step, Any, SagaOutcome]:
    """Do every step; when one fails or the saga is cancelled, undo in reverse what happened or may have happened."""
    results: dict[str, object] = {}
    happened: list[Undoable] = []
    failure: StepFailed | None = None
    was_cancelled = False
    undo_names = undo_names_of([step.name for step in saga.steps])
    for step in saga.steps:
        try:
            arguments = {name: _fill(value, results) for name, value in step.arguments.items()}
        except (LookupError, TypeError) as wrong:  # `result("a", "id")` where the result of a has no "id"
            message = f"an argument of {step.name!r} could not be found: {wrong}"
            failure = StepFailed(step.name, type(wrong).__name__, message)
            break
        try:
            results[step.name] = yield _ask(step.name, step.do, arguments)
        except StepFailedError as error:
            if error.is_outcome_unknown:
                happened.append(_undoable(step, undo_names, arguments, None))
            failure = failure_of(step.name, error)
            break
        except RunCancelledError as cancelled:
            was_cancelled = True
            if cancelled.has_begun:
                happened.append(_undoable(step, undo_names, arguments, None))
            when = "while this step was running" if cancelled.has_begun else "before this step began"
            failure = StepFailed(step.name, "RunCancelledError", f"the saga was cancelled {when}")
            break
        happened.append(_undoable(step, undo_names, arguments, results[step.name]))
    if failure is None:
        return SagaOutcome(SagaState.COMPLETED, done=tuple(results), results=results)
    rollback = yield from roll_back(happened)
    return SagaOutcome(
        _state(rollback, was_cancelled=was_cancelled),
        done=tuple(results),
        undone=rollback.undone,
        kept=rollback.without_undo,
        failed=failure,
        not_undone=rollback.failed,
        results=results,
        was_cancelled=was_cancelled,
    )


def _state(rollback: Rollback, *, was_cancelled: bool) -> SagaState:
    """The word for the end of a saga that did not complete: the one that the report of its run has."""
    if not rollback.is_complete:
        return SagaState.ROLLBACK_INCOMPLETE
    if was_cancelled:
        return SagaState.CANCELLED
    return SagaState.ROLLED_BACK if rollback.undone else SagaState.FAILED


def _undoable(
    step: SagaStep, undo_names: Mapping[str, str], arguments: Mapping[str, object], result: object
) -> Undoable:
    """How to undo `step`: with its own arguments, and its result where that is known."""
    if step.undo is None:
        return Undoable(step.name, None)
    action, retry, timeout = step.undo.action, step.undo.retry, step.undo.timeout
    passed = undo_arguments(action, arguments, result)
    return Undoable(step.name, undo_step(undo_names[step.name], action, passed, retry=retry, timeout=timeout))


def _ask(name: str, tried: Tried, arguments: Mapping[str, object]) -> Step:
    return Step(name, tried.action.call, kwargs=arguments, retry=tried.retry, timeout=tried.timeout)


def _fill(value: object, results: Mapping[str, object]) -> object:
    return value.of(results) if isinstance(value, ResultOf) else value
