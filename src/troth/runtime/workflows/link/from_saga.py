"""Write a saga down in the words of a workflow, so that its runs are shown like any others."""

from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.sagas.outcome import SagaOutcome, SagaState
from troth.runtime.sagas.rollback import StepFailed
from troth.runtime.sagas.saga import ResultOf, Saga, Tried
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.paths import Path
from troth.runtime.workflows.document.sources import FromPath, Literal, Source
from troth.runtime.workflows.kinds.function import FunctionBody
from troth.runtime.workflows.link.function_lookup import reference_of
from troth.runtime.workflows.record.report import RunReport, RunWord, StepReport
from troth.runtime.workflows.spec import CallTarget, StepSpec, Undo, WorkflowSpec

__all__ = ["outcome_of", "spec_of"]

_MARK = SourceMark("<saga>")


def spec_of(saga: Saga) -> WorkflowSpec:
    """The workflow that does what `saga` does."""
    steps = tuple(
        StepSpec(
            id=step.name,
            kind="function",
            body=FunctionBody(_target(step.do), {name: _source(value) for name, value in step.arguments.items()}),
            mark=_MARK,
            undo=Undo(_target(step.undo)) if step.undo is not None else None,
        )
        for step in saga.steps
    )
    return WorkflowSpec(name=saga.name, steps=steps, mark=_MARK)


def _target(tried: Tried) -> CallTarget:
    return CallTarget("function", reference_of(tried.action.call), _MARK)


def _source(value: object) -> Source:
    return FromPath(Path("steps", (value.step, *value.parts)), _MARK) if isinstance(value, ResultOf) else Literal(value)


def outcome_of(saga: Saga, run: RunReport) -> SagaOutcome:
    """The outcome of a saga from the report of its run."""
    completed = run.done
    if run.state is RunWord.COMPLETED:
        results = {name: run.step(name).output for name in completed}
        return SagaOutcome(SagaState.COMPLETED, done=completed, results=results)
    undoable = {step.name for step in saga.steps if step.undo is not None}
    return SagaOutcome(
        SagaState(run.state),
        done=completed,
        undone=run.undone,
        kept=tuple(name for name in reversed(completed) if name not in undoable),
        failed=_failed(run.failures[0]) if run.failures else StepFailed("?", "RunCancelledError", "it was cancelled"),
        not_undone=tuple(_failed(undo) for undo in run.not_undone),
        results={name: run.step(name).output for name in completed},
        was_cancelled=run.error is not None and run.error.type == RunCancelledError.__name__,
    )


def _failed(step: StepReport) -> StepFailed:
    error = step.error
    return StepFailed(
        step.undoes or step.place, *(("?", "?", "") if error is None else (error.type, error.message, error.place))
    )
