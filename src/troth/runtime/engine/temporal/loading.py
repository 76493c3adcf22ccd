"""What a workflow begins with that goes on with a run of which something is recorded, in pages that can travel."""

import json
from typing import Any, TypedDict

from troth.runtime.engine.commit_points import RUN_CLAIM
from troth.runtime.engine.temporal.limits import MAX_BATCH, MAX_STEP, NotOnTemporalError
from troth.runtime.engine.temporal.recording import token_of
from troth.runtime.store import Attempt, StepRecord, StepState, Store, Transaction
from troth.runtime.store.records import Place
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = ["StepPage", "claim", "page_of", "steps_of"]


class StepPage(TypedDict):
    """Some steps of a run: as they are, and as they were before their answers were taken back."""

    steps: list[list[Any]]
    taken_back: list[list[Any]]
    next: int | None
    letters: int


async def claim(store: Store, owner: str, run_id: str, base: str) -> dict[str, Any]:
    """Take a run for a workflow that begins: it is the only one of its name on the server, so an older one is over.

    Answers whether it may go on, whether its cancellation is asked for, and when somebody else last worked on it.
    """
    resource, token = run_topic(run_id), token_of(base, 0)

    def work(tx: Transaction) -> dict[str, Any]:
        now = store.clock()
        opening = tx.asked_of(run_id)
        if opening is None or opening[2].is_over:
            return {"goes_on": False}
        holder = tx.holder_of(resource)
        is_ours = holder is not None and holder.id == owner and tx.renew(resource, owner, token, now)
        if not is_ours and tx.claim(resource, owner, token, now) is not None:
            return {"goes_on": False}
        last_seen = None if holder is None or holder.id == owner else holder.beat_at
        return {"goes_on": True, "is_requested": tx.hold_run(run_id, resource, token), "last_seen": last_seen}

    return await store.acommit(RUN_CLAIM, work)


def page_of(store: Store, run_id: str, first: int) -> StepPage:
    """The steps from number `first` on, as many as can travel together."""
    recorded = store.recorded(run_id)
    rows = [*((0, step) for step in recorded.steps), *((1, step) for step in recorded.taken_back)]
    page: StepPage = {"steps": [], "taken_back": [], "next": None, "letters": 0}
    for number, (is_old, step) in enumerate(rows[first:], start=first):
        values = _values(step)
        letters = page["letters"] + len(json.dumps(values))
        if letters > MAX_BATCH and number > first:
            page["next"] = number
            break
        if letters > MAX_STEP:
            raise NotOnTemporalError(
                f"What is recorded of step {step.name!r} of the run {run_id!r} has {letters:,} characters of JSON, "
                "and at "
                f"most {MAX_STEP:,} travel through Temporal. Keep large values in files or tables, and pass their "
                "names."
            )
        page["letters"] = letters
        page["taken_back" if is_old else "steps"].append(values)
    return page


def _values(step: StepRecord) -> list[Any]:
    attempts = [
        [attempt.number, attempt.outcome, attempt.error, attempt.started_at, attempt.finished_at, attempt.next_at]
        for attempt in step.attempts
    ]
    return [
        step.place.branch,
        step.place.seq,
        step.kind,
        step.name,
        step.state.value,
        step.key,
        step.attempt,
        step.args,
        step.code,
        step.color,
        step.result,
        step.error,
        step.started_at,
        step.finished_at,
        step.wake_at,
        attempts,
    ]


def steps_of(run_id: str, rows: list[list[Any]]) -> list[StepRecord]:
    """The steps again."""
    return [_step(run_id, row) for row in rows]


def _step(run_id: str, row: list[Any]) -> StepRecord:
    branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started, finished, wake, *tail = row
    attempts = tuple(Attempt(*values) for values in tail[0])
    return StepRecord(
        Place(run_id, branch, seq),
        kind,
        name,
        StepState(state),
        key,
        attempt,
        args,
        code,
        color,
        result,
        error,
        started,
        finished,
        wake,
        attempts,
    )
