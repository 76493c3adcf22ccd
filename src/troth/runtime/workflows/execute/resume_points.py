"""Find from where a run can go on: which recorded answers are taken back, so that those steps are asked for again.

What was done stays recorded and is not repeated; what was undone is not undone twice. A run that was rolled back
completely is over for good: going on would do everything anew, which is what `fork` is for.
"""

from collections.abc import Mapping, Sequence

from troth.errors import MisuseError
from troth.runtime.engine.rewind import trunk_of
from troth.runtime.store import RunRecord, RunState, StepRecord, StepState
from troth.runtime.workflows.document.problems import did_you_mean
from troth.runtime.workflows.execute.decision import OUTPUT
from troth.runtime.workflows.execute.waits import RACED_SLEEP, STILL_NEEDED, TIME_LEFT, approval_signal
from troth.runtime.workflows.record.report import RunReport, RunWord, StepWord

__all__ = ["CannotGoOnError", "fork_point", "rows_to_run_again"]


class CannotGoOnError(MisuseError):
    """The run is over for good. It was left as it is."""


def rows_to_run_again(
    run: RunRecord, rows: Sequence[StepRecord], report: RunReport, *, continues: bool = False
) -> list[StepRecord]:
    """The rows whose answers are taken back when the run goes on; none for one that was only interrupted.

    `continues` says that the workflow, or one in it, goes on without what failed.
    """
    if not run.state.is_over:
        return []
    if run.state is RunState.COMPLETED:
        raise CannotGoOnError(f"The run {run.id!r} is completed; there is nothing to resume.")
    if report.state is RunWord.ROLLBACK_INCOMPLETE:
        undo_places = {undo.place for undo in report.not_undone}
        return [row for row in rows if row.name in undo_places and row.state is StepState.FAILED]
    if report.rolled_back:
        raise CannotGoOnError(
            f"The run {run.id!r} was undone ({', '.join(report.undone)}), so it cannot be resumed.\n"
            f"It was not changed. `troth runs fork {run.id}` runs it again with the same inputs."
        )
    if run.state is RunState.CANCELLED:
        return [row for row in rows if row.state is StepState.CANCELLED]
    if continues and (left_out := _left_out(report) or _failed_block(report, rows)) is not None:
        raise CannotGoOnError(
            f"The run {run.id!r} continued without {left_out!r} after an earlier step had failed, and performed later "
            "steps; so that step can no longer be resumed.\n"
            f"It was not changed. `troth runs fork {run.id}` runs it again with the same inputs."
        )
    failed = {OUTPUT, *(step.place for step in report.steps if step.state is StepWord.FAILED)}
    if report.over_budget is not None:
        return _over_budget(rows, failed)
    blocks = [row for row in rows if row.kind == "together" and row.state is StepState.FAILED]
    again = [row for row in rows if row.name in failed and row.state is StepState.FAILED]
    questions = {step.place for step in report.steps if step.kind == "approval"}
    return again + _answers([row for row in again if row.name in questions], rows) + blocks


def _left_out(report: RunReport) -> str | None:
    """A step that the run did not come to, or undid, although it came to a later one; None where there is none."""
    skipped = None
    failed_at: int | None = None  # the depth of the failed block that is being looked at
    for step in report.steps:
        if step.is_undo:
            continue
        if failed_at is not None and step.depth <= failed_at:
            failed_at = None
        if failed_at is None and step.is_block and step.state is StepWord.FAILED:
            failed_at = step.depth
        if failed_at is not None and step.state is StepWord.UNDONE:
            return step.place
        if step.state is StepWord.NOT_REACHED:
            skipped = skipped or step.place
        elif step.started_at is not None and skipped is not None:
            return skipped
    return None


def _failed_block(report: RunReport, rows: Sequence[StepRecord]) -> str | None:
    """A block whose own failure is recorded before something later: repaired, it would not be there any more."""
    blocks = {step.place for step in report.steps if step.is_block}
    last = {row.place.branch: row.place.seq for row in rows}
    for row in rows:
        is_refusal = row.kind == "step" and row.state is StepState.FAILED and row.name in blocks
        if is_refusal and row.place.seq < last[row.place.branch]:
            return row.name
    return None


def _answers(denials: Sequence[StepRecord], rows: Sequence[StepRecord]) -> list[StepRecord]:
    """What was answered to the questions that were denied, or the silence: whoever goes on asks again."""
    table = {(row.place.branch, row.place.seq): row for row in rows}
    return [wait for row in denials for wait in _cut_short(row, table)]


def _over_budget(rows: Sequence[StepRecord], failed: set[str]) -> list[StepRecord]:
    """The refusals, and the waits that were cut short by them."""
    table = {(row.place.branch, row.place.seq): row for row in rows}
    again = []
    for row in rows:
        if row.state is not StepState.FAILED or (row.name not in failed and row.kind != "together"):
            continue
        again += [row, *_cut_short(row, table)]
    return again


def _cut_short(row: StepRecord, table: Mapping[tuple[str, int], StepRecord]) -> list[StepRecord]:
    """The wait that the refusal `row` ended, if it ended one, and what was asked for its sake."""
    wait = table.get((row.place.branch, row.place.seq - 1))
    if wait is None or wait.name not in (row.name, approval_signal(row.name), f"{RACED_SLEEP}{row.name}"):
        return []
    rows = [wait]
    before = table.get((row.place.branch, wait.place.seq - 1))
    while before is not None and before.name in (TIME_LEFT, STILL_NEEDED):
        rows.append(before)
        before = table.get((row.place.branch, before.place.seq - 1))
    return rows


def fork_point(run: RunRecord, rows: Sequence[StepRecord], step: str | None) -> tuple[int, list[StepRecord]]:
    """Where a fork before `step` begins: the number of the engine's step, and the rows that it keeps.

    A step that ran beside others is forked together with them. Without a step, nothing is kept.
    """
    if step is None:
        return 1, []
    begun_row = next((row for row in rows if row.name in (step, approval_signal(step))), None)
    if begun_row is None:
        names = [row.name for row in rows if row.kind in ("step", "wait")]
        raise MisuseError(
            f"The run {run.id!r} was not forked: it has no step {step!r} that was started. "
            f"{did_you_mean(step, names, kind='step')}"
        )
    before = trunk_of(begun_row.place)
    return before, [row for row in rows if trunk_of(row.place) < before]
