"""How a step is carried out: written down, tried, tried again, and answered."""

import contextlib
import json
import logging
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.code_digest import has_changed
from troth.runtime.engine.commands import Step
from troth.runtime.engine.commit_points import STEP_BEGIN, STEP_RETRY
from troth.runtime.engine.current_step import CurrentStep
from troth.runtime.engine.errors import UNKNOWN, StepFailedError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.interpreter.branch import Branch
from troth.runtime.engine.interpreter.effects import Commit, Effect, Invoke
from troth.runtime.engine.interpreter.timers_and_signals import until
from troth.runtime.engine.invoke.interruption import CancelledAfterError
from troth.runtime.engine.invoke.outcome import StepOutcome, Unkeepable
from troth.runtime.store import NotJsonError, StepRecord, StepState, Transaction
from troth.runtime.store.json_codec import keep
from troth.runtime.store.large_values import KeptValue
from troth.runtime.store.records import BegunStep, Place

__all__ = ["perform_step"]

log = logging.getLogger("troth.engine")

_BEGIN_SHOWN = frozenset({"all", "begin"})
_END_SHOWN = frozenset({"all", "end"})
_UNCOUNTED = frozenset({"interrupted", "cancelled"})  # attempts that do not use up a step's retries
_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor: all this is done for every step
_DEAF = Cancellation()  # for the steps of a branch that knows of the cancellation already


def perform_step(branch: Branch, step: Step, place: Place, record: StepRecord | None) -> Generator[Effect, Any, object]:
    """Answer with what the step's function returned, or throw a StepFailedError."""
    run = branch.run
    clock = run.clock
    number, failed, is_unknown = 1, 0, False
    if record is None:
        if run.earlier and (before := run.earlier.get((place.branch, place.seq))) is not None:
            is_unknown = _was_unknown(before)
            _compare_code(branch, step, place, before)
        key = step.key or f"{run.run_id}:{place.branch}{place.seq}:{step.name}"
        is_shown = step.shows in _BEGIN_SHOWN
        begun_step = _make(BegunStep, (step.name, key, step.recorded, step.color._value_, step.code, clock(), is_shown))
        commit = branch.commit_begin(STEP_BEGIN, place, begun_step)
    elif record.state.is_settled:
        return branch.answer(record)
    else:
        key, number = record.key, record.attempt
        failed = _failed(record)
        if run.not_called == (place.branch, place.seq):
            run.not_called, is_unknown = None, _was_unknown(record)  # written down, and nobody has called it yet
        else:
            number, is_unknown = number + 1, record.state is StepState.BEGUN or _was_unknown(record)
            yield from _pick_up(branch, step, place, record)
        commit = branch.commit(STEP_BEGIN)
    while True:
        if run.governor is not None:
            opinion = run.governor.consult(step)
            if type(opinion) is Step:
                info = CurrentStep(run.run_id, place, step.name, key, number, clock())
                opinion = yield _make(Invoke, (opinion, info, _DEAF))
            commit = _governed(branch, commit, step, place, number, opinion)
        answer = yield commit
        if type(answer) is _Refused:
            raise StepFailedError(step.name, str(place), answer.error)
        if branch.is_cancelled(answer):
            raise branch.cancelled(step, place, number, has_begun=number > 1)
        info = CurrentStep(run.run_id, place, step.name, key, number, clock())
        outcome: StepOutcome
        try:
            called = step if run.governor is None else run.governor.placed(step)
            outcome = yield _make(Invoke, (called, info, _DEAF if branch.is_told else run.cancellation))
        except CancelledAfterError as cancelled:
            _leave_behind(branch, step, info, cancelled.outcome)
            raise
        except GeneratorExit:
            raise
        except BaseException:
            _leave_unfinished(branch, step, info)
            raise
        now = clock()
        if outcome.ended == "done":
            try:
                text, value = _kept(outcome.value, step.name, run.max_result)
            except NotJsonError as refused:
                outcome = StepOutcome("failed", error=refused)
                is_unknown = True  # of what it did, that is: it did return
            else:
                branch.write(partial(_settle, branch, step, info, text, now), len(text))
                return value
        if outcome.ended == "cancelled":
            _note(branch, step, info, outcome, now)
            raise branch.cancelled(step, place, number)
        is_unknown = is_unknown or outcome.ended in UNKNOWN
        if outcome.ended == "interrupted":
            error = outcome.error or _gone(step)
            if step.after_crash == "fail":
                raise _fail(branch, step, info, outcome, error, now=now, is_unknown=True)
            _note(branch, step, info, outcome._replace(error=error), now, next_at=now)
            number += 1
            branch.write(partial(_again, place=place, step=step, number=number, now=now))
            commit = branch.commit(STEP_BEGIN)
            continue
        failed += 1
        error = outcome.error or InterruptedError("nothing is known about it")
        if not _is_worth_another(step, outcome, error, failed):
            raise _fail(branch, step, info, outcome, error, now=now, is_unknown=is_unknown)
        next_at = now + step.retry.wait_after(failed, run.chance)
        yield from _rest(branch, step, info, outcome, now, next_at)
        number += 1
        branch.write(partial(_again, place=place, step=step, number=number, now=clock()))
        commit = branch.commit(STEP_BEGIN)


def _kept(value: object, name: str, limit: int | None) -> tuple[str, Any]:
    """The JSON text of the result of a step, and what reading it gives; refused if it is too large."""
    if type(value) is int and value.bit_length() < 64:
        return repr(value), value  # what `keep` gives, without a look at whether it can be kept
    if value is None or isinstance(value, bool):
        return keep(value, "")  # without a name for an error that cannot be
    if type(value) is Unkeepable:
        raise value.error
    title = f"result of step {name!r}"
    text, back = value if type(value) is KeptValue else keep(value, title)
    if limit is not None and len(text) > limit:
        size = f"{len(text):,} characters of JSON, and at most {limit:,} are kept"
        why = f"{size} (`max_result`); keep it in a file, and return its path"
        raise NotJsonError(title, title, why)
    return text, back


class _Refused:
    """The answer of a commit in which the governor refused the step: it is settled as failed."""

    __slots__ = ("error",)

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.error = error


def _governed(branch: Branch, commit: Commit, step: Step, place: Place, number: int, opinion: object) -> Commit:
    """The commit that begins a step, with the governor asked in it. A refusal is kept with what came before."""
    governor, clock = branch.run.governor, branch.run.clock
    assert governor is not None

    def work(tx: Transaction) -> object:
        is_requested = commit.work(tx)
        now = clock()
        if is_requested and not branch.is_told:
            return is_requested  # the cancellation is delivered instead
        error = governor.begins(tx, place, step, opinion, now)
        if error is None:
            return is_requested
        text = json.dumps(error)
        name = step.name
        tx.add_attempt(
            place, name=name, number=number, outcome="refused", error=text, started_at=None, now=now, next_at=None
        )
        tx.settle_step(place, StepState.FAILED, now, kind="step", name=name, attempt=number, error=text)
        return _Refused(error)

    return Commit(commit.point, work, commit.is_large)


def _leave_behind(branch: Branch, step: Step, info: CurrentStep, outcome: StepOutcome) -> None:
    """Have an answer written when the run is let go of: nobody goes on here, but what is done is not done again."""
    if outcome.ended == "done":
        with contextlib.suppress(NotJsonError):  # then it was no success; the next owner finds out
            text, _ = _kept(outcome.value, step.name, branch.run.max_result)
            now = branch.run.clock()
            branch.run.left_behind.append(partial(_settle, branch, step, info, text, now))


def _leave_unfinished(branch: Branch, step: Step, info: CurrentStep) -> None:
    """Have written, when the run is let go of, until when somebody was at work on the step."""
    now = branch.run.clock()
    branch.run.left_behind.append(
        lambda tx: tx.add_attempt(
            info.place,
            name=step.name,
            number=info.attempt,
            outcome="interrupted",
            error=None,
            started_at=info.started_at,
            now=now,
            next_at=None,
            is_shown=step.shows in _END_SHOWN,
        )
    )


def _settle(branch: Branch, step: Step, info: CurrentStep, text: str, now: float, tx: Transaction) -> None:
    governor = branch.run.governor
    is_shown = step.shows in _END_SHOWN
    tx.settle_step(
        info.place,
        StepState.DONE,
        now,
        kind="step",
        name=step.name,
        attempt=info.attempt,
        result=text,
        is_shown=is_shown,
    )
    for stream, kind, payload in info.appended:
        tx.append_event(stream, kind, payload, now)
        if governor is not None:
            governor.appended(tx, info.place, stream, kind, payload, now)
    if governor is not None:
        governor.settled(tx, info.place, step, StepState.DONE, now)


def _again(tx: Transaction, place: Place, step: Step, number: int, now: float) -> None:
    tx.begin_attempt(place, number, now, name=step.name, code=step.code)


def _compare_code(branch: Branch, step: Step, place: Place, before: StepRecord) -> None:
    """Tell if the next attempt calls other code than the one before it did."""
    if step.code is None or before.code is None or not has_changed(before.code, step.code):
        return
    now = branch.run.clock()
    log.warning(
        "The code of step %r of run %r has changed since the last attempt: it was %s and is now %s.",
        step.name,
        place.run_id,
        before.code,
        step.code,
    )
    branch.write(partial(_write_code_changed, place=place, now=now, name=step.name, before=before.code, code=step.code))


def _write_code_changed(tx: Transaction, place: Place, now: float, name: str, before: str, code: str) -> None:
    tx.tell_code_changed(place, now, name=name, before=before, code=code)


def _pick_up(branch: Branch, step: Step, place: Place, record: StepRecord) -> Generator[Effect, Any, None]:
    """Go on with a step that a dead owner left begun or resting."""
    run, now = branch.run, branch.run.clock()
    if record.state is StepState.RESTING:
        yield from until(branch, record.wake_at or now, step, place, record.attempt)
    else:
        error = _gone(step)
        info = CurrentStep(run.run_id, place, step.name, record.key, record.attempt, record.started_at)
        outcome = StepOutcome("timeout", error=error)
        if step.after_crash == "fail":
            raise _fail(branch, step, info, outcome, error, now=now, is_unknown=True, ended="interrupted")
        if not any(
            attempt.outcome == "interrupted" and attempt.number == record.attempt for attempt in record.attempts
        ):
            last_seen = record.started_at if run.last_seen is None else run.last_seen
            ended_at = min(now, max(last_seen, record.started_at))
            _note(branch, step, info, outcome, ended_at, next_at=now, ended="interrupted")
    _compare_code(branch, step, place, record)
    branch.write(partial(_again, place=place, step=step, number=record.attempt + 1, now=run.clock()))


def _gone(step: Step) -> InterruptedError:
    return InterruptedError(
        f"The process that ran step {step.name!r} ended before its result was recorded. "
        "Whether its effect happened is unknown."
    )


def _rest(
    branch: Branch, step: Step, info: CurrentStep, outcome: StepOutcome, now: float, next_at: float
) -> Generator[Effect, Any, None]:
    _note(branch, step, info, outcome, now, next_at=next_at)
    if branch.is_cancelled((yield branch.commit(STEP_RETRY))):
        raise branch.cancelled(step, info.place, info.attempt)
    yield from until(branch, next_at, step, info.place, info.attempt)


def _note(
    branch: Branch,
    step: Step,
    info: CurrentStep,
    outcome: StepOutcome,
    now: float,
    *,
    next_at: float | None = None,
    ended: str | None = None,
) -> None:
    """Write down an attempt that did not succeed, with its own error."""
    text = None if outcome.error is None else json.dumps(describe(outcome.error, ended or outcome.ended))
    branch.write(
        lambda tx: tx.add_attempt(
            info.place,
            name=step.name,
            number=info.attempt,
            outcome=ended or outcome.ended,
            error=text,
            started_at=info.started_at,
            now=now,
            next_at=next_at,
            is_shown=step.shows in _END_SHOWN,
        )
    )


def _fail(
    branch: Branch,
    step: Step,
    info: CurrentStep,
    outcome: StepOutcome,
    error: BaseException,
    *,
    now: float,
    is_unknown: bool,
    ended: str | None = None,
) -> StepFailedError:
    """Settle a step as failed for good; the answer is what the decision is thrown."""
    _note(branch, step, info, outcome, now, ended=ended)
    record = describe(error, ended or outcome.ended)
    if is_unknown:
        record["is_outcome_unknown"] = True
    text = json.dumps(record)
    branch.write(partial(_settle_failed, branch=branch, step=step, info=info, text=text, now=now))
    failure = StepFailedError(info.name, str(info.place), record)
    failure.__cause__ = error
    return failure


def _settle_failed(tx: Transaction, branch: Branch, step: Step, info: CurrentStep, text: str, now: float) -> None:
    is_shown = step.shows in _END_SHOWN
    tx.settle_step(
        info.place,
        StepState.FAILED,
        now,
        kind="step",
        name=step.name,
        attempt=info.attempt,
        error=text,
        is_shown=is_shown,
    )
    if branch.run.governor is not None:
        branch.run.governor.settled(tx, info.place, step, StepState.FAILED, now)


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


def _is_worth_another(step: Step, outcome: StepOutcome, error: BaseException, failed: int) -> bool:
    if failed >= step.retry.attempts or outcome.ended in {"lost", "refused"}:
        return False
    return step.retry.covers(error)
