"""Knows how a step is carried out: written down, tried, tried again, and answered."""

import contextlib
import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.runtime.engine.acts import Act, Invoke
from troth.runtime.engine.asks import Step
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.current import CurrentStep
from troth.runtime.engine.errors import UNKNOWN, StepFailedError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.interruption import CancelledAfterError
from troth.runtime.engine.outcome import Outcome
from troth.runtime.engine.points import STEP_BEGIN, STEP_RETRY
from troth.runtime.engine.strand import Strand
from troth.runtime.engine.waiting import until
from troth.runtime.store import NotJsonError, StepRecord, StepState, Transaction
from troth.runtime.store.payload import keep
from troth.runtime.store.records import BegunStep, Place

__all__ = ["perform_step"]

_UNCOUNTED = frozenset({"interrupted", "cancelled"})  # attempts that do not use up a step's retries
_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor: all this is done for every step
_DEAF = Cancellation()  # for the steps of a strand that knows of the cancellation already


def perform_step(strand: Strand, step: Step, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with what the step's function returned, or throw a StepFailedError."""
    run = strand.run
    clock = run.clock
    number, failed, is_unknown = 1, 0, False
    if record is None:
        if run.earlier and (before := run.earlier.get((place.branch, place.seq))) is not None:
            is_unknown = _was_unknown(before)
        key = step.key or f"{run.run_id}:{place.branch}{place.seq}:{step.name}"
        begun = _make(BegunStep, (step.name, key, step.recorded, step.color._value_, step.code, clock()))
        commit = strand.commit_begin(STEP_BEGIN, place, begun)
    elif record.state.is_settled:
        return strand.answer(record)
    else:
        key, number = record.key, record.attempt + 1
        failed, is_unknown = _failed(record), record.state is StepState.BEGUN or _was_unknown(record)
        yield from _pick_up(strand, step, place, record)
        commit = strand.commit(STEP_BEGIN)
    while True:
        if strand.is_cancelled((yield commit)):
            raise strand.cancelled(place)
        info = CurrentStep(run.run_id, place, step.name, key, number, clock())
        outcome: Outcome
        try:
            outcome = yield _make(Invoke, (step, info, _DEAF if strand.is_told else run.cancellation))
        except CancelledAfterError as cancelled:
            _leave_behind(strand, info, cancelled.outcome)
            raise
        now = clock()
        if outcome.ended == "done":
            try:
                text, value = keep(outcome.value, f"result of step {step.name!r}")
            except NotJsonError as refused:
                outcome = Outcome("failed", error=refused)
                is_unknown = True  # of what it did, that is: it did return
            else:
                strand.write(partial(_settle, info=info, text=text, now=now))
                return value
        if outcome.ended == "cancelled":
            _note(strand, info, outcome, now)
            raise strand.cancelled(place)
        failed += 1
        is_unknown = is_unknown or outcome.ended in UNKNOWN
        error = outcome.error or InterruptedError("nothing is known of it")
        if not _is_worth_another(step, outcome, error, failed):
            raise _fail(strand, info, outcome, error, now=now, is_unknown=is_unknown)
        next_at = now + step.retry.wait_after(failed, run.chance)
        yield from _rest(strand, info, outcome, now, next_at)
        number += 1
        strand.write(partial(_again, place=place, number=number, now=clock()))
        commit = strand.commit(STEP_BEGIN)


def _leave_behind(strand: Strand, info: CurrentStep, outcome: Outcome) -> None:
    """Have an answer written when the run is let go of: nobody goes on here, but what is done is not done again."""
    if outcome.ended == "done":
        with contextlib.suppress(NotJsonError):  # then it was no success; the next owner finds out
            text, _ = keep(outcome.value, "result")
            strand.run.left_behind.append(partial(_settle, info=info, text=text, now=strand.run.clock()))


def _settle(tx: Transaction, info: CurrentStep, text: str, now: float) -> None:
    tx.settle_step(info.place, StepState.DONE, now, result=text)
    for stream, kind, payload in info.appended:
        tx.append_event(stream, kind, payload, now)


def _again(tx: Transaction, place: Place, number: int, now: float) -> None:
    tx.begin_attempt(place, number, now)


def _pick_up(strand: Strand, step: Step, place: Place, record: StepRecord) -> Generator[Act, Any, None]:
    """Go on with a step that a dead owner left begun or resting."""
    run, now = strand.run, strand.run.clock()
    if record.state is StepState.RESTING:
        yield from until(strand, record.wake_at or now, place)
    else:
        error = InterruptedError(
            f"The process that ran step {step.name!r} was gone before its result was recorded. "
            "Whether its effect happened is unknown."
        )
        info = CurrentStep(run.run_id, place, step.name, record.key, record.attempt, record.started_at)
        outcome = Outcome("timeout", error=error)
        if step.after_crash == "fail":
            raise _fail(strand, info, outcome, error, now=now, is_unknown=True, ended="interrupted")
        _note(strand, info, outcome, now, next_at=now, ended="interrupted")
    strand.write(partial(_again, place=place, number=record.attempt + 1, now=run.clock()))


def _rest(strand: Strand, info: CurrentStep, outcome: Outcome, now: float, next_at: float) -> Generator[Act, Any, None]:
    _note(strand, info, outcome, now, next_at=next_at)
    strand.write(lambda tx: tx.rest_step(info.place, next_at))
    if strand.is_cancelled((yield strand.commit(STEP_RETRY))):
        raise strand.cancelled(info.place)
    yield from until(strand, next_at, info.place)


def _note(
    strand: Strand,
    info: CurrentStep,
    outcome: Outcome,
    now: float,
    *,
    next_at: float | None = None,
    ended: str | None = None,
) -> None:
    """Write down an attempt that did not succeed, with its own error."""
    text = None if outcome.error is None else json.dumps(describe(outcome.error, ended or outcome.ended))
    strand.write(
        lambda tx: tx.add_attempt(
            info.place,
            number=info.attempt,
            outcome=ended or outcome.ended,
            error=text,
            started_at=info.started_at,
            now=now,
            next_at=next_at,
        )
    )


def _fail(
    strand: Strand,
    info: CurrentStep,
    outcome: Outcome,
    error: BaseException,
    *,
    now: float,
    is_unknown: bool,
    ended: str | None = None,
) -> StepFailedError:
    """Settle a step as failed for good; the answer is what the decision is thrown."""
    _note(strand, info, outcome, now, ended=ended)
    record = describe(error, ended or outcome.ended)
    if is_unknown:
        record["is_outcome_unknown"] = True
    text = json.dumps(record)
    strand.write(lambda tx: tx.settle_step(info.place, StepState.FAILED, now, error=text))
    failure = StepFailedError(info.name, str(info.place), record)
    failure.__cause__ = error
    return failure


def _failed(record: StepRecord) -> int:
    """How many attempts are used up: those since the step was last given up, if the run was resumed after that."""
    used = 0
    for attempt in record.attempts:
        if attempt.outcome not in _UNCOUNTED:
            used = 0 if attempt.next_at is None else used + 1
    return used


def _was_unknown(record: StepRecord) -> bool:
    """Whether an attempt that is on record may have had its effect."""
    error = record.error or {}
    return bool(error.get("is_outcome_unknown")) or any(attempt.outcome in UNKNOWN for attempt in record.attempts)


def _is_worth_another(step: Step, outcome: Outcome, error: BaseException, failed: int) -> bool:
    if failed >= step.retry.attempts or outcome.ended in {"lost", "refused"}:
        return False
    return step.retry.covers(error)
