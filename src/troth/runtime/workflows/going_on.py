"""Knows how a run that is over is opened again, and how a new one is forked off: what is written down for either.

Nobody carries the run out yet when this returns; whoever asks for it does. A crash in between leaves a run that is
shown as interrupted, and goes on like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from troth.runtime.engine import EmbeddedEngine
from troth.runtime.engine.errors import RunMismatchError
from troth.runtime.engine.going_back import CAN_RESUME, at_one_moment
from troth.runtime.engine.points import RUN_FORK, RUN_RESUME
from troth.runtime.store import RunRecord, StepState, Transaction
from troth.runtime.store.payload import keep
from troth.runtime.workflows.again import to_ask_again, trunk_step
from troth.runtime.workflows.ids import new_id
from troth.runtime.workflows.shelf import Runnable, Shelf, budget_stream

__all__ = ["Going", "fork_off", "reopen"]


@dataclass(frozen=True, slots=True)
class Going:
    """How a run is to go on: with which workflow, whatever has changed, and with which budget."""

    workflow: Runnable | None = None
    accept_changes: bool = False
    as_recorded: bool = False
    budget: Mapping[str, object] = field(default_factory=dict)


def reopen(engine: EmbeddedEngine, shelf: Shelf, run: RunRecord, how: Going) -> RunRecord:
    """Take back the answers that `run` ended on, so that it can go on; refused where it must not."""
    run, rows = at_one_moment(engine.store, run.id) or (run, ())
    rows = rows or engine.steps(run.id)  # one that is not over has steps to tell of, too
    again = to_ask_again(run, rows, shelf.tell(run, rows), continues=shelf.continues(run))
    shelf.ready(run, rows, how.workflow, accept_changes=how.accept_changes, as_recorded=how.as_recorded)
    larger = shelf.larger_budget(run, how.budget) if how.budget else None

    def work(tx: Transaction) -> None:
        now = engine.store.clock()
        if larger is not None:
            tx.append_event(budget_stream(run.id), "budget", larger, now)
        if run.state in CAN_RESUME and tx.reopen_run(run.id, now, ended_at=run.finished_at):
            for row in again:
                tx.forget_step(row.place, gives_back=row.state is not StepState.DONE)

    engine.store.commit(RUN_RESUME, work)
    return run


def fork_off(engine: EmbeddedEngine, shelf: Shelf, run: RunRecord, step: str | None, fork_id: str | None) -> RunRecord:
    """Write a new run down that has the answers of `run` up to `step`; with an id of its own."""
    before, kept = trunk_step(run, engine.steps(run.id), step)
    this_id = fork_id or new_id(run.label or "run")
    shelf.ready(replace(run, id=this_id), kept, as_recorded=True)
    args = (this_id, *run.args[1:])

    def work(tx: Transaction) -> None:
        text, now = keep(list(args), f"arguments of run {this_id!r}")[0], engine.store.clock()
        if not tx.add_run(this_id, run.decision, text, now, label=run.label, code=run.code, forked_from=run.id):
            raise RunMismatchError(f"The run {this_id!r} exists already, so {run.id!r} was not forked to it.")
        tx.copy_steps(run.id, this_id, before)

    engine.store.commit(RUN_FORK, work)
    return replace(run, id=this_id, args=args)
