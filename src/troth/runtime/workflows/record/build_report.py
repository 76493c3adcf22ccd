"""Tell a run's story from what the engine recorded: a fold over its rows, in the order of the workflow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troth.runtime.agents.model import Usage
from troth.runtime.conversations.transcript import TranscriptEntry
from troth.runtime.sagas.undo import undo_names_of
from troth.runtime.store import RunRecord, RunState, StepRecord, StepState, StoreError
from troth.runtime.store.records import Attempt
from troth.runtime.store.rows.runs import is_moment
from troth.runtime.workflows.execute.failures import BudgetExceededError, OverBudgetError
from troth.runtime.workflows.execute.race import LET_GO
from troth.runtime.workflows.execute.waits import RACED_SLEEP, approval_signal
from troth.runtime.workflows.kinds import blocks_of, kind_of
from troth.runtime.workflows.record.lineage import doer
from troth.runtime.workflows.record.report import AttemptReport, ErrorReport, RunReport, RunWord, StepReport, StepWord
from troth.runtime.workflows.recorded import answer_of, appended, inputs_of, timeout_of
from troth.runtime.workflows.spec import Join, StepSpec, WorkflowSpec

__all__ = ["build_report", "tell_damaged", "unattended", "word_for"]

_WORDS = {
    StepState.BEGUN: StepWord.RUNNING,
    StepState.RESTING: StepWord.RESTING,
    StepState.WAITING: StepWord.WAITING,
    StepState.DONE: StepWord.DONE,
    StepState.FAILED: StepWord.FAILED,
    StepState.CANCELLED: StepWord.CANCELLED,
}
_RUN_WORDS = {
    RunState.RUNNING: RunWord.RUNNING,
    RunState.WAITING: RunWord.WAITING,
    RunState.INTERRUPTED: RunWord.INTERRUPTED,
    RunState.COMPLETED: RunWord.COMPLETED,
    RunState.FAILED: RunWord.FAILED,
    RunState.CANCELLED: RunWord.CANCELLED,
    RunState.DAMAGED: RunWord.DAMAGED,
}
_UNDO = "undo "
_APPROVE = approval_signal("")


@dataclass(slots=True)
class _Rows:
    """The engine's rows by the place of the step they belong to."""

    by_place: dict[str, StepRecord] = field(default_factory=dict)
    undos: dict[str, StepRecord] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)
    questions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    waits: dict[str, StepRecord] = field(default_factory=dict)
    """The rows of `by_place` that wait for a signal, also where the step failed on what came of it."""
    gone_on_without: set[str] = field(default_factory=set)
    """Steps inside of blocks that the run went on without, or without some of whose members."""


def build_report(
    run: RunRecord,
    rows: Sequence[StepRecord],
    spec: WorkflowSpec,
    inputs: Mapping[str, object],
    source: str | None,
    usage_of: Callable[[str], Usage],
    talk_of: Callable[[str], tuple[TranscriptEntry, ...]] | None = None,
) -> RunReport:
    """The report of `run`. `usage_of` says what the agent of a step with a certain key has used, `talk_of` its talk."""
    undo_names = _UndoNames(spec)
    sorted_rows = _sort(rows, undo_names)
    is_alive = run.state in (RunState.RUNNING, RunState.WAITING)
    steps = list(_walk(spec.steps, "", 0, sorted_rows, is_alive=is_alive))
    undos = [_undo(place, row, undo_names.step_of(place) or "") for place, row in sorted_rows.undos.items()]
    undone = tuple(undo.undoes for undo in undos if undo.state is StepWord.DONE)
    not_undone = tuple(undo for undo in undos if undo.state is StepWord.FAILED)
    rolled_back = _rolled_back(rows, sorted_rows, undo_names)
    remaining = [
        step for step in steps if step.state is StepWord.DONE and not step.is_block and step.place not in undone
    ]
    steps = [
        replace(step, state=StepWord.UNDONE) if step.place in undone and step.state is StepWord.DONE else step
        for step in steps
    ]
    steps = [_with_more(step, run.id, sorted_rows, usage_of, talk_of) for step in steps]
    error = _error(run.error)
    failures = tuple(step for step in steps if step.state is StepWord.FAILED and not step.is_block)
    return RunReport(
        id=run.id,
        workflow=spec.name,
        state=_run_word(run, rolled_back if spec.on_error == "undo" or not remaining else (), not_undone),
        inputs=inputs,
        output=run.result,
        steps=(*steps, *undos),
        created_at=run.created_at,
        ended_at=run.finished_at,
        source=source,
        failures=failures or tuple(step for step in steps if step.state is StepWord.FAILED),
        undone=undone,
        rolled_back=rolled_back,
        not_undone=not_undone,
        waiting_for=tuple(step for step in steps if step.state is StepWord.WAITING and not step.is_block),
        error=error,
        forked_from=run.forked_from,
        cancel_requested=run.is_cancel_requested,
        over_budget=_of_budget(run.error, "limit"),
        stopped_at=_of_budget(run.error, "step"),
    )


def word_for(run_id: str, state: RunState, rows: Sequence[StepRecord], spec: WorkflowSpec) -> RunWord:
    """The word for a run that ends in `state` with `rows` on record."""
    run = RunRecord(run_id, "", None, state, (), None, None, None, None, None, False, None, None, 0.0, 0.0, 0.0)
    return build_report(run, rows, spec, {}, None, lambda _: Usage()).state


def _of_budget(error: Mapping[str, Any] | None, key: str) -> str | None:
    """The limit at which a run stopped, or the step; None where it stopped at none."""
    details = error.get("details") if error and error.get("type") == OverBudgetError.__name__ else None
    word = details.get(key) if isinstance(details, Mapping) else None
    return word if isinstance(word, str) else None


def tell_damaged(run: RunRecord, damage: StoreError) -> RunReport:
    """The report of a run of which something cannot be read any more."""
    return RunReport(
        id=run.id,
        workflow=run.label or "?",
        state=RunWord.DAMAGED,
        inputs={},
        output=None,
        steps=(),
        created_at=run.created_at if is_moment(run.created_at) else 0.0,
        ended_at=run.finished_at,
        forked_from=run.forked_from,
        error=ErrorReport(type(damage).__qualname__, str(damage)),
    )


def unattended(run: RunReport, sent: Mapping[str, float]) -> RunReport:
    """The report of a run that waits and that nobody carries out; `sent` has the signals that nobody has taken."""
    steps = [
        replace(step, answered_at=sent[approval_signal(step.place)]) if _is_answered(step, sent) else step
        for step in run.steps
    ]
    waiting = {step.place for step in run.waiting_for}
    return replace(
        run,
        is_unattended=True,
        steps=tuple(steps),
        waiting_for=tuple(step for step in steps if step.place in waiting and not step.is_undo),
    )


def _is_answered(step: StepReport, sent: Mapping[str, float]) -> bool:
    return step.state is StepWord.WAITING and approval_signal(step.place) in sent


def _with_more(
    step: StepReport,
    run_id: str,
    rows: _Rows,
    usage_of: Callable[[str], Usage],
    talk_of: Callable[[str], tuple[TranscriptEntry, ...]] | None,
) -> StepReport:
    """What only some steps have: what an agent used, and who did it if it was not this run."""
    row = rows.by_place.get(step.place)
    if row is None or step.is_block:
        return step
    who = doer(row)
    if step.kind != "agent":
        return step if who == run_id else replace(step, done_by=who)
    used = usage_of(row.key) if who == run_id else Usage()  # what another run used is in that run's account
    tokens = used.input_tokens + used.output_tokens
    talk = talk_of(row.key) if talk_of is not None else ()
    return replace(step, tokens=tokens, cost=used.cost, talk=talk, done_by="" if who == run_id else who)


def _rolled_back(rows: Sequence[StepRecord], sorted_rows: _Rows, undo_names: "_UndoNames") -> tuple[str, ...]:
    """The steps whose undoing was the last thing that their line of the run did: it was given up there.

    What was undone before the run went on without it, an optional saga or a branch that was let go, is not among them.
    """
    last: dict[str, list[str]] = {}
    for row in rows:
        line = last.setdefault(row.place.branch, [])
        if row.kind == "step" and undo_names.step_of(row.name) is not None:
            line.append(row.name)
        else:
            line.clear()
    finished_undos = {
        name for line in last.values() for name in line if sorted_rows.undos[name].state is StepState.DONE
    }
    undone = (undo_names.step_of(name) for name in finished_undos)
    return tuple(name for name in undone if name is not None and name not in sorted_rows.gone_on_without)


def _run_word(run: RunRecord, undone: tuple[str, ...], not_undone: tuple[StepReport, ...]) -> RunWord:
    word = _RUN_WORDS[run.state]
    if word in (RunWord.FAILED, RunWord.CANCELLED) and not_undone:
        return RunWord.ROLLBACK_INCOMPLETE
    if word is RunWord.FAILED and undone:
        return RunWord.ROLLED_BACK
    return word


class _UndoNames:
    """Tells the rows of undos from those of steps. The steps of a saga have any names, also ones like `undo a`."""

    def __init__(self, spec: WorkflowSpec) -> None:
        self._steps = {step.id for step in spec.steps}
        self._by_undo = {undo: step for step, undo in undo_names_of(step.id for step in spec.steps).items()}

    def step_of(self, name: str) -> str | None:
        """The place of the step that a row of this name takes back; None where it is no undo."""
        if name in self._by_undo:
            return self._by_undo[name]
        return name.removeprefix(_UNDO) if name.startswith(_UNDO) and name not in self._steps else None


def _sort(rows: Sequence[StepRecord], undo_names: _UndoNames) -> _Rows:
    sorted_rows = _Rows()
    for row in rows:
        if row.kind == "append":
            kind, payload = appended(row)
            place = payload["place"]
            if kind == "took":
                sorted_rows.ways[place] = str(payload.get("way", ""))
            elif kind == "asking":
                sorted_rows.questions[place] = payload
        elif row.kind == "sleep":
            sorted_rows.by_place[row.name] = row
        elif row.kind == "wait":
            sorted_rows.by_place[_waited_at(row)] = sorted_rows.waits[_waited_at(row)] = row
        elif row.kind == "step" and undo_names.step_of(row.name) is not None:
            sorted_rows.undos[row.name] = row
        elif row.kind == "step":
            sorted_rows.by_place[row.name] = row
    return sorted_rows


def _waited_at(row: StepRecord) -> str:
    """The place of the step that waits: a question, or a sleep in a branch that may be let go."""
    return row.name.removeprefix(_APPROVE) if row.name.startswith(_APPROVE) else row.name.removeprefix(RACED_SLEEP)


def _walk(steps: Sequence[StepSpec], prefix: str, depth: int, rows: _Rows, *, is_alive: bool) -> Iterator[StepReport]:
    for step in steps:
        place = f"{prefix}{step.id}"
        kind = kind_of(step)
        inside = list(_inside(step, prefix, depth + 1, rows, is_alive=is_alive))
        if blocks_of(step) or kind.inner(step.body) is not None:
            block = _block(step, place, depth, inside, rows)
            yield block
            yield from _passed_over(step, block, inside, rows)
        else:
            yield _leaf(step, place, depth, rows, is_alive=is_alive)


def _passed_over(step: StepSpec, block: StepReport, inside: Sequence[StepReport], rows: _Rows) -> Iterator[StepReport]:
    """What is inside of a block: a failure that the run went on without is none of the run."""
    tolerates = getattr(step.body, "join", "all") != "all" and block.state is StepWord.DONE
    for member in _members(step, inside):
        if block.state is not StepWord.PASSED_OVER and (not tolerates or _is_good(member)):
            yield from member
            continue
        rows.gone_on_without.update(report.place for report in member)
        for report in member:
            yield replace(report, state=StepWord.PASSED_OVER) if report.state is StepWord.FAILED else report


def _members(step: StepSpec, inside: Sequence[StepReport]) -> list[list[StepReport]]:
    """What is inside of a block, by member or item; all of it together where it has none."""
    if step.kind not in ("parallel", "each"):
        return [list(inside)]
    members: dict[str, list[StepReport]] = {}
    top = min((report.depth for report in inside), default=0)
    name = ""
    for report in inside:
        if report.depth == top:
            name = report.place[: report.place.rindex("]") + 1] if step.kind == "each" else report.place
        members.setdefault(name, []).append(report)
    return list(members.values())


def _is_good(member: Sequence[StepReport]) -> bool:
    """Whether a member has succeeded, or was never begun."""
    top = min(report.depth for report in member)
    return not any(report.state in (StepWord.FAILED, StepWord.LET_GO) for report in member if report.depth == top)


def _inside(step: StepSpec, prefix: str, depth: int, rows: _Rows, *, is_alive: bool) -> Iterator[StepReport]:
    place = f"{prefix}{step.id}"
    inner = kind_of(step).inner(step.body)
    if inner is not None:
        yield from _walk(inner.steps, f"{place}.", depth, rows, is_alive=is_alive)
        return
    way = rows.ways.get(place)
    for block in blocks_of(step):
        if step.kind in ("each", "loop"):
            for part in _parts(place, rows):
                yield from _walk(block.steps, f"{part}.", depth, rows, is_alive=is_alive)
            continue
        children = list(_walk(block.steps, prefix, depth, rows, is_alive=is_alive))
        if step.kind == "branch":
            is_missed = way is not None and block.label != way
            children = [
                replace(child, way=block.label, state=StepWord.NOT_TAKEN if is_missed else child.state)
                for child in children
            ]
        yield from children


def _parts(place: str, rows: _Rows) -> list[str]:
    """The rounds or items of the block at `place` that were begun, as `place[0]` and so on."""
    start = f"{place}["
    names = (*rows.by_place, *rows.ways, *rows.questions)
    parts = {name[: name.index("]", len(start)) + 1] for name in names if name.startswith(start)}
    return sorted(parts, key=lambda part: int(part[len(start) : -1]))


def _leaf(step: StepSpec, place: str, depth: int, rows: _Rows, *, is_alive: bool) -> StepReport:
    detail = kind_of(step).shows(step.body)
    row = rows.by_place.get(place)
    if row is None:
        return StepReport(place, step.kind, StepWord.NOT_REACHED, depth, detail)
    question = rows.questions.get(place, {})
    report = _of_row(row, place, step.kind, depth, detail, is_alive=is_alive)
    if question:
        report = replace(report, question=str(question.get("question", "")), shown=question.get("shown", {}))
    if step.kind == "approval" and (wait := rows.waits.get(place)) is not None:
        asked_at = min(row.started_at, wait.started_at)  # the row of a question that was denied is made at its end
        timed_out = wait.state is StepState.FAILED
        report = replace(report, started_at=asked_at, deadline=_deadline(wait), timed_out=timed_out)
    if step.kind == "sleep" and row.state is StepState.FAILED and row.kind == "wait":
        return replace(report, state=StepWord.DONE, error=None)
    if step.kind == "approval" and row.state is StepState.FAILED and row.kind == "wait":
        return replace(report, state=StepWord.DONE, error=None, detail="no answer came in time")
    if step.kind == "approval" and row.state is StepState.DONE:
        answer = answer_of(row)
        word = "approved" if answer.get("approved") else "denied"
        by = f" by {answer['by']}" if answer.get("by") else ""
        return replace(report, detail=f"{word}{by}")
    if report.state is StepWord.FAILED and report.error is not None and report.error.type in LET_GO:
        return replace(report, state=StepWord.LET_GO)
    if report.state is StepWord.FAILED and step.optional:
        return replace(report, state=StepWord.PASSED_OVER)
    return report


def _deadline(wait: StepRecord) -> float | None:
    """Until when a signal could be sent. A wait that is over has only its timeout on record."""
    timeout = timeout_of(wait)
    if timeout is None:
        return None
    return wait.wake_at if wait.wake_at is not None else wait.started_at + timeout


def _block(step: StepSpec, place: str, depth: int, inside: Sequence[StepReport], rows: _Rows) -> StepReport:
    detail = rows.ways.get(place) or kind_of(step).shows(step.body)
    own = rows.by_place.get(place)
    started = [child for child in inside if child.started_at is not None]
    starts = [child.started_at for child in started if child.started_at is not None]
    ends = [child.ended_at for child in started if child.ended_at is not None]
    state = _state_of_block(step, started, own, place in rows.ways)
    return StepReport(
        place,
        step.kind,
        state,
        depth,
        detail,
        started_at=min(starts, default=own.started_at if own else None),
        ended_at=max(ends, default=own.finished_at if own else None) if len(ends) == len(started) else None,
        error=_error(own.error) if own else None,
        is_block=own is None or bool(started),
    )


def _state_of_block(
    step: StepSpec,
    started: Sequence[StepReport],
    own: StepRecord | None,
    is_decided: bool,  # noqa: FBT001
) -> StepWord:
    words = {child.state for child in started}
    if own is not None and own.state is StepState.FAILED:
        return StepWord.PASSED_OVER if step.optional else StepWord.FAILED
    for word in (StepWord.RUNNING, StepWord.RESTING, StepWord.WAITING, StepWord.INTERRUPTED):
        if word in words:
            return word
    if StepWord.FAILED in words and not _is_enough(step, started):
        return StepWord.PASSED_OVER if step.optional else StepWord.FAILED
    if StepWord.CANCELLED in words:
        return StepWord.CANCELLED
    if StepWord.LET_GO in words and not hasattr(step.body, "join"):
        return StepWord.LET_GO
    return StepWord.DONE if started or is_decided else StepWord.NOT_REACHED


def _is_enough(step: StepSpec, started: Sequence[StepReport]) -> bool:
    """Whether so many members of a block have succeeded that the others do not count."""
    join: Join = getattr(step.body, "join", "all")
    if join == "settle":
        return not any(
            child.error is not None and child.error.type == BudgetExceededError.__name__ for child in started
        )
    if join == "all":
        return False
    good = sum(map(_is_good, _members(step, started)))
    return good >= (join if isinstance(join, int) else 1)


def _undo(name: str, row: StepRecord, undoes: str) -> StepReport:
    return replace(_of_row(row, name, "undo", 0, "", is_alive=True), is_undo=True, undoes=undoes)


def _of_row(row: StepRecord, place: str, kind: str, depth: int, detail: str, *, is_alive: bool) -> StepReport:
    state = _WORDS[row.state]
    if state in (StepWord.RUNNING, StepWord.RESTING) and not is_alive:
        state = StepWord.INTERRUPTED
    return StepReport(
        place,
        kind,
        state,
        depth,
        detail,
        started_at=_first_start(row),
        ended_at=row.finished_at,
        attempts=_attempts(row),
        tries=row.attempt,
        error=_error(row.error),
        inputs=_inputs(row),
        output=row.result,
        wake_at=row.wake_at,
        code=row.code,
        key=row.key,
    )


def _first_start(row: StepRecord) -> float:
    return min([row.started_at, *(attempt.started_at for attempt in row.attempts if attempt.started_at is not None)])


def _inputs(row: StepRecord) -> object:
    return inputs_of(row) if row.kind == "step" else None


def _attempts(row: StepRecord) -> tuple[AttemptReport, ...]:
    """Counted through: the engine starts again with 1 where a run was resumed."""
    starts = [attempt.started_at for attempt in row.attempts[1:]] + [row.started_at]
    return tuple(
        AttemptReport(
            number,
            attempt.outcome,
            _error(attempt.error),
            attempt.started_at,
            attempt.finished_at,
            _next_at(attempt, start),
            attempt.code,
        )
        for number, (attempt, start) in enumerate(zip(row.attempts, starts, strict=False), start=1)
    )


def _next_at(attempt: Attempt, next_start: float | None) -> float | None:
    """When the next attempt was due. One that was let go of was followed by whoever came next, if anybody did."""
    if attempt.outcome != "interrupted" or next_start is None or next_start < attempt.finished_at:
        return attempt.next_at
    return next_start


def _error(error: Mapping[str, Any] | None) -> ErrorReport | None:
    if not error:
        return None
    words = [str(error.get(key) or "") for key in ("type", "message", "place", "line", "traceback")]
    return ErrorReport(*words)
