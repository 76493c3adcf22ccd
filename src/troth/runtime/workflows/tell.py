"""Knows how to tell a run's story from what the engine recorded: a fold over its rows, in the order of the workflow."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

from troth.runtime.agents.model import Usage
from troth.runtime.store import RunRecord, RunState, StepRecord, StepState
from troth.runtime.store.records import Attempt
from troth.runtime.workflows.allowance import limit_in
from troth.runtime.workflows.failures import BudgetExceededError, OverBudgetError
from troth.runtime.workflows.kinds import blocks_of, kind_of
from troth.runtime.workflows.lineage import doer
from troth.runtime.workflows.racing import LET_GO
from troth.runtime.workflows.report import AttemptReport, ErrorReport, RunReport, RunWord, StepReport, StepWord
from troth.runtime.workflows.spec import Join, Step, WorkflowSpec
from troth.runtime.workflows.waits import RACED_SLEEP, approval_signal

__all__ = ["tell"]

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
    gone_on_without: set[str] = field(default_factory=set)
    """Steps inside of blocks that the run went on without, or without some of whose members."""


def tell(
    run: RunRecord,
    rows: Sequence[StepRecord],
    spec: WorkflowSpec,
    inputs: Mapping[str, object],
    source: str | None,
    usage_of: Callable[[str], Usage],
) -> RunReport:
    """The report of `run`. `usage_of` says what the agent of a step with a certain key has used."""
    sorted_rows = _sort(rows)
    is_alive = run.state in (RunState.RUNNING, RunState.WAITING)
    steps = list(_walk(spec.steps, "", 0, sorted_rows, is_alive=is_alive))
    undos = [_undo(place, row) for place, row in sorted_rows.undos.items()]
    undone = tuple(one.place.removeprefix(_UNDO) for one in undos if one.state is StepWord.DONE)
    not_undone = tuple(one for one in undos if one.state is StepWord.FAILED)
    rolled_back = _rolled_back(rows, sorted_rows)
    left = [one for one in steps if one.state is StepWord.DONE and not one.is_block and one.place not in undone]
    steps = [
        replace(one, state=StepWord.UNDONE) if one.place in undone and one.state is StepWord.DONE else one
        for one in steps
    ]
    steps = [_with_more(one, run.id, sorted_rows, usage_of) for one in steps]
    error = _error(run.error)
    failures = tuple(one for one in steps if one.state is StepWord.FAILED and not one.is_block)
    return RunReport(
        id=run.id,
        workflow=spec.name,
        state=_run_word(run, rolled_back if spec.on_error == "undo" or not left else (), not_undone),
        inputs=inputs,
        output=run.result,
        steps=(*steps, *undos),
        created_at=run.created_at,
        ended_at=run.finished_at,
        source=source,
        failures=failures or tuple(one for one in steps if one.state is StepWord.FAILED),
        undone=undone,
        rolled_back=rolled_back,
        not_undone=not_undone,
        waiting_for=tuple(one for one in steps if one.state is StepWord.WAITING and not one.is_block),
        error=error,
        forked_from=run.forked_from,
        cancel_requested=run.is_cancel_requested,
        over_budget=limit_in(error.message) if error is not None and error.type == OverBudgetError.__name__ else None,
    )


def _with_more(one: StepReport, run_id: str, rows: _Rows, usage_of: Callable[[str], Usage]) -> StepReport:
    """What only some steps have: what an agent used, and who did it if it was not this run."""
    row = rows.by_place.get(one.place)
    if row is None or one.is_block:
        return one
    who = doer(row)
    if one.kind != "agent":
        return one if who == run_id else replace(one, done_by=who)
    used = usage_of(row.key) if who == run_id else Usage()  # what another run used is in that run's account
    tokens = used.input_tokens + used.output_tokens
    return replace(one, tokens=tokens, cost=used.cost, done_by="" if who == run_id else who)


def _rolled_back(rows: Sequence[StepRecord], found: _Rows) -> tuple[str, ...]:
    """The steps whose undoing was the last thing that their line of the run did: it was given up there.

    What was undone before the run went on without it, an optional saga or a branch that was let go, is not among them.
    """
    last: dict[str, list[str]] = {}
    for row in rows:
        line = last.setdefault(row.place.branch, [])
        if row.name.startswith(_UNDO) and row.kind == "step":
            line.append(row.name.removeprefix(_UNDO))
        else:
            line.clear()
    undone = {name for line in last.values() for name in line} - found.gone_on_without
    return tuple(name for name in undone if found.undos[_UNDO + name].state is StepState.DONE)


def _run_word(run: RunRecord, undone: tuple[str, ...], not_undone: tuple[StepReport, ...]) -> RunWord:
    word = _RUN_WORDS[run.state]
    if word in (RunWord.FAILED, RunWord.CANCELLED) and not_undone:
        return RunWord.ROLLBACK_INCOMPLETE
    if word is RunWord.FAILED and undone:
        return RunWord.ROLLED_BACK
    return word


def _sort(rows: Sequence[StepRecord]) -> _Rows:
    found = _Rows()
    for row in rows:
        if row.kind == "append":
            kind, payload = json.loads(row.args)
            place = payload["place"]
            if kind == "took":
                found.ways[place] = payload["way"]
            elif kind == "asking":
                found.questions[place] = payload
        elif row.kind == "sleep":
            found.by_place[row.name] = row
        elif row.kind == "wait":
            found.by_place[_waited_at(row)] = row
        elif row.kind == "step" and row.name.startswith(_UNDO):
            found.undos[row.name] = row
        elif row.kind == "step":
            found.by_place[row.name] = row
    return found


def _waited_at(row: StepRecord) -> str:
    """The place of the step that waits: a question, or a sleep in a branch that may be let go."""
    return row.name.removeprefix(_APPROVE) if row.name.startswith(_APPROVE) else row.name.removeprefix(RACED_SLEEP)


def _walk(steps: Sequence[Step], prefix: str, depth: int, rows: _Rows, *, is_alive: bool) -> Iterator[StepReport]:
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


def _passed_over(step: Step, block: StepReport, inside: Sequence[StepReport], rows: _Rows) -> Iterator[StepReport]:
    """What is inside of a block: a failure that the run went on without is none of the run."""
    tolerates = getattr(step.body, "join", "all") != "all" and block.state is StepWord.DONE
    for member in _members(step, inside):
        if block.state is not StepWord.PASSED_OVER and (not tolerates or _is_good(member)):
            yield from member
            continue
        rows.gone_on_without.update(one.place for one in member)
        for one in member:
            yield replace(one, state=StepWord.PASSED_OVER) if one.state is StepWord.FAILED else one


def _members(step: Step, inside: Sequence[StepReport]) -> list[list[StepReport]]:
    """What is inside of a block, by member or item; all of it together where it has none."""
    if step.kind not in ("parallel", "each"):
        return [list(inside)]
    members: dict[str, list[StepReport]] = {}
    top = min((one.depth for one in inside), default=0)
    name = ""
    for one in inside:
        if one.depth == top:
            name = one.place[: one.place.rindex("]") + 1] if step.kind == "each" else one.place
        members.setdefault(name, []).append(one)
    return list(members.values())


def _is_good(member: Sequence[StepReport]) -> bool:
    """Whether a member has succeeded, or was never begun."""
    top = min(one.depth for one in member)
    return not any(one.state in (StepWord.FAILED, StepWord.LET_GO) for one in member if one.depth == top)


def _inside(step: Step, prefix: str, depth: int, rows: _Rows, *, is_alive: bool) -> Iterator[StepReport]:
    place = f"{prefix}{step.id}"
    inner = kind_of(step).inner(step.body)
    if inner is not None:
        yield from _walk(inner.steps, f"{place}.", depth, rows, is_alive=is_alive)
        return
    taken = rows.ways.get(place)
    for block in blocks_of(step):
        if step.kind in ("each", "loop"):
            for part in _parts(place, rows):
                yield from _walk(block.steps, f"{part}.", depth, rows, is_alive=is_alive)
            continue
        children = list(_walk(block.steps, prefix, depth, rows, is_alive=is_alive))
        if step.kind == "branch":
            is_missed = taken is not None and block.label != taken
            children = [
                replace(one, way=block.label, state=StepWord.NOT_TAKEN if is_missed else one.state) for one in children
            ]
        yield from children


def _parts(place: str, rows: _Rows) -> list[str]:
    """The rounds or items of the block at `place` that were begun, as `place[0]` and so on."""
    start = f"{place}["
    known = (*rows.by_place, *rows.ways, *rows.questions)
    found = {name[: name.index("]", len(start)) + 1] for name in known if name.startswith(start)}
    return sorted(found, key=lambda part: int(part[len(start) : -1]))


def _leaf(step: Step, place: str, depth: int, rows: _Rows, *, is_alive: bool) -> StepReport:
    detail = kind_of(step).shows(step.body)
    row = rows.by_place.get(place)
    if row is None:
        return StepReport(place, step.kind, StepWord.NOT_REACHED, depth, detail)
    asked = rows.questions.get(place, {})
    report = _of_row(row, place, step.kind, depth, detail, is_alive=is_alive)
    if asked:
        report = replace(report, question=str(asked.get("question", "")), shown=asked.get("shown", {}))
    if step.kind == "sleep" and row.state is StepState.FAILED and row.kind == "wait":
        return replace(report, state=StepWord.DONE, error=None)
    if step.kind == "approval" and row.state is StepState.FAILED and row.kind == "wait":
        return replace(report, state=StepWord.DONE, error=None, detail="nobody answered in time")
    if step.kind == "approval" and row.state is StepState.DONE:
        word = "approved" if row.result.get("approved") else "denied"
        by = f" by {row.result['by']}" if row.result.get("by") else ""
        return replace(report, detail=f"{word}{by}")
    if report.state is StepWord.FAILED and report.error is not None and report.error.type in LET_GO:
        return replace(report, state=StepWord.LET_GO)
    if report.state is StepWord.FAILED and step.optional:
        return replace(report, state=StepWord.PASSED_OVER)
    return report


def _block(step: Step, place: str, depth: int, inside: Sequence[StepReport], rows: _Rows) -> StepReport:
    detail = rows.ways.get(place) or kind_of(step).shows(step.body)
    own = rows.by_place.get(place)
    begun = [one for one in inside if one.started_at is not None]
    starts = [one.started_at for one in begun if one.started_at is not None]
    ends = [one.ended_at for one in begun if one.ended_at is not None]
    state = _state_of_block(step, begun, own, place in rows.ways)
    return StepReport(
        place,
        step.kind,
        state,
        depth,
        detail,
        started_at=min(starts, default=own.started_at if own else None),
        ended_at=max(ends, default=own.finished_at if own else None) if len(ends) == len(begun) else None,
        error=_error(own.error) if own else None,
        is_block=own is None or bool(begun),
    )


def _state_of_block(step: Step, begun: Sequence[StepReport], own: StepRecord | None, is_decided: bool) -> StepWord:  # noqa: FBT001
    words = {one.state for one in begun}
    if own is not None and own.state is StepState.FAILED:
        return StepWord.PASSED_OVER if step.optional else StepWord.FAILED
    for word in (StepWord.RUNNING, StepWord.RESTING, StepWord.WAITING, StepWord.INTERRUPTED):
        if word in words:
            return word
    if StepWord.FAILED in words and not _is_enough(step, begun):
        return StepWord.PASSED_OVER if step.optional else StepWord.FAILED
    if StepWord.CANCELLED in words:
        return StepWord.CANCELLED
    if StepWord.LET_GO in words and not hasattr(step.body, "join"):
        return StepWord.LET_GO
    return StepWord.DONE if begun or is_decided else StepWord.NOT_REACHED


def _is_enough(step: Step, begun: Sequence[StepReport]) -> bool:
    """Whether so many members of a block have succeeded that the others do not count."""
    join: Join = getattr(step.body, "join", "all")
    if join == "settle":
        return not any(one.error is not None and one.error.type == BudgetExceededError.__name__ for one in begun)
    if join == "all":
        return False
    good = sum(map(_is_good, _members(step, begun)))
    return good >= (join if isinstance(join, int) else 1)


def _undo(name: str, row: StepRecord) -> StepReport:
    return replace(_of_row(row, name, "undo", 0, "", is_alive=True), is_undo=True)


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
        attempts=tuple(starmap(_attempt, enumerate(row.attempts, start=1))),
        tries=row.attempt,
        error=_error(row.error),
        inputs=_inputs(row),
        output=row.result,
        wake_at=row.wake_at,
    )


def _first_start(row: StepRecord) -> float:
    return min([row.started_at, *(one.started_at for one in row.attempts if one.started_at is not None)])


def _inputs(row: StepRecord) -> object:
    if row.kind != "step":
        return None
    given = json.loads(row.args)
    return given[1] if len(given) == 2 else {}


def _attempt(number: int, one: Attempt) -> AttemptReport:
    """Counted through: the engine begins anew with 1 where a run was resumed."""
    return AttemptReport(number, one.outcome, _error(one.error), one.started_at, one.finished_at, one.next_at)


def _error(error: Mapping[str, Any] | None) -> ErrorReport | None:
    if not error:
        return None
    words = [str(error.get(key) or "") for key in ("type", "message", "place", "line", "traceback")]
    return ErrorReport(*words)
