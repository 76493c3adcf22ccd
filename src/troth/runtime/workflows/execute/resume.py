"""How a run that is over is opened again, and how a new one is forked off: what is written down for either.

Nobody carries the run out yet when this returns; whoever asks for it does. A crash in between leaves a run that is
shown as interrupted, and goes on like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from troth.runtime.engine.port import Engine
from troth.runtime.store import RunRecord, StepState, Transaction
from troth.runtime.workflows.execute.resume_points import fork_point, rows_to_run_again
from troth.runtime.workflows.execute.run_ids import new_id
from troth.runtime.workflows.registry import Runnable, WorkflowRegistry, budget_stream

__all__ = ["ResumeOptions", "fork_off", "reopen"]


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """How a run is to go on: with which workflow, whatever has changed, and with which budget."""

    workflow: Runnable | None = None
    accept_changes: bool = False
    as_recorded: bool = False
    budget: Mapping[str, object] = field(default_factory=dict)


def reopen(engine: Engine, workflows: WorkflowRegistry, run: RunRecord, how: ResumeOptions) -> RunRecord:
    """Take back the answers that `run` ended on, so that it can go on; refused where it must not."""
    run, rows = engine.find_with_steps(run.id) or (run, ())
    again = rows_to_run_again(run, rows, workflows.build_report(run, rows), continues=workflows.continues(run))
    remaining = [row for row in rows if row not in again]  # a function that is called again may be another one
    workflows.ready(run, remaining, how.workflow, accept_changes=how.accept_changes, as_recorded=how.as_recorded)
    larger = workflows.larger_budget(run, how.budget) if how.budget else None

    def write_budget(tx: Transaction, now: float) -> None:
        if larger is not None:
            tx.append_event(budget_stream(run.id), "budget", larger, now)

    engine.reopen(run, again, gives_back=lambda row: row.state is not StepState.DONE, also=write_budget)
    return run


def fork_off(
    engine: Engine, workflows: WorkflowRegistry, run: RunRecord, step: str | None, fork_id: str | None
) -> RunRecord:
    """Write a new run down that has the answers of `run` up to `step`; with an id of its own."""
    before, kept_rows = fork_point(run, engine.steps(run.id), step)
    this_id = fork_id or new_id(run.label or "run")
    workflows.ready(replace(run, id=this_id), kept_rows, as_recorded=True)
    args = (this_id, *run.args[1:])
    engine.write_fork(run, this_id, args, before)
    return replace(run, id=this_id, args=args)
