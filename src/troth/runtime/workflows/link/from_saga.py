"""Write a saga down in the words of a workflow, so that its runs are shown like any others."""

from collections.abc import Iterable, Mapping

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

__all__ = ["outcome_of", "spec_of", "workflow_of"]

_MARK = SourceMark("<saga>")


def spec_of(saga: Saga) -> WorkflowSpec:
    """The workflow that does what `saga` does."""
    return workflow_of(
        saga.name,
        [
            (step.name, _name(step.do), None if step.undo is None else _name(step.undo), step.arguments)
            for step in saga.steps
        ],
    )


def workflow_of(name: str, steps: Iterable[tuple[str, str, str | None, Mapping[str, object]]]) -> WorkflowSpec:
    """A workflow of these steps: the name, the function, the one that undoes it, and the arguments of each."""
    return WorkflowSpec(
        name=name,
        steps=tuple(
            StepSpec(
                id=step,
                kind="function",
                body=FunctionBody(_target(do), {key: _source(value) for key, value in arguments.items()}),
                mark=_MARK,
                undo=Undo(_target(undo)) if undo is not None else None,
            )
            for step, do, undo, arguments in steps
        ),
        mark=_MARK,
    )


def _name(tried: Tried) -> str:
    return reference_of(tried.action.call)


def _target(function: str) -> CallTarget:
    return CallTarget("function", function, _MARK)


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
