"""What a run of a workflow does next, from its first step to its end or its undoing. Decides and never waits."""

from collections.abc import Generator, Mapping
from typing import Any

from troth.runtime.engine.commands import Command
from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.sagas.rollback import Rollback, roll_back
from troth.runtime.workflows.document.paths import BadPathError
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.execute.control_flow import OverBudget, WorkflowStopped
from troth.runtime.workflows.execute.failures import OverBudgetError, WorkflowFailedError
from troth.runtime.workflows.execute.frame import BlockFrame, Run

__all__ = ["OUTPUT", "decide"]

OUTPUT = "the output"
"""The name under which it is recorded that the output of a run leads nowhere."""


def decide(run: Run, inputs: Mapping[str, object]) -> Generator[Command, Any, object]:
    """Run every step; the answer is the workflow's output. Raises what the run fails with, once it has been undone."""
    spec = run.linked.spec
    state: dict[str, object] = {"inputs": inputs, "steps": {}, "run": {"id": run.id, "workflow": spec.name}}
    frame = BlockFrame(run, spec, state, continues=spec.on_error == "continue")
    frame.allowances = yield from frame.enter_budget(spec.name, spec.budget)
    try:
        output = yield from frame.run_steps_here(spec.steps)
        if spec.output is not None:
            output = yield from _gathered(frame, spec.output)
    except OverBudget as over:
        rollback = Rollback()
        if spec.budget.on_exceeded == "undo":
            rollback = yield from roll_back(frame.happened)
        raise OverBudgetError(spec.name, [over.failure], rollback) from None
    except WorkflowStopped as stopped:
        rollback = Rollback()
        if spec.on_error == "undo":
            rollback = yield from roll_back(frame.happened)
        raise WorkflowFailedError(spec.name, [stopped.failure], rollback) from None
    except RunCancelledError as cancelled:
        rollback = yield from roll_back(frame.happened)
        for undo_failure in rollback.failed:
            cancelled.add_note(f"NOT undone: {undo_failure.step}, because its undo failed with {undo_failure}")
        raise
    if frame.failures:  # only where `on_error` is `continue`
        raise WorkflowFailedError(spec.name, frame.failures, Rollback())
    return output


def _gathered(frame: BlockFrame, output: Mapping[str, Source]) -> Generator[Command, Any, dict[str, object]]:
    """What the run gives back. That it leads nowhere is a failure like that of a step: what was done is undone."""
    try:
        return frame.look_up(output)
    except BadPathError as wrong:
        if frame.failures:  # it went on without the step that this would have been
            raise WorkflowFailedError(frame.spec.name, frame.failures, Rollback()) from None
        raise WorkflowStopped((yield from frame.recorded(OUTPUT, wrong))) from None
