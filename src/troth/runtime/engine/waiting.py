"""Knows how a run waits: for a moment, for a signal, for another run. Nothing of it is lost if the process dies."""

import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.runtime.engine.acts import Act, Listen, Pause
from troth.runtime.engine.asks import Ask, Join, Sleep, Wait
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.points import SIGNAL_TAKE, WAIT_BEGIN
from troth.runtime.engine.replay import what_is_asked
from troth.runtime.engine.strand import Strand
from troth.runtime.store import RunState, StepRecord, StepState, Transaction
from troth.runtime.store.payload import read
from troth.runtime.store.records import Place

__all__ = ["perform_join", "perform_sleep", "perform_wait", "until"]

_LOOK_AGAIN = 1.0  # seconds after which somebody who waits for another run looks at it without being told


def until(strand: Strand, moment: float, place: Place) -> Generator[Act, Any, None]:
    """Wait for a moment; news of the run interrupt it only to look whether it is cancelled."""
    run = strand.run
    while run.clock() < moment:
        seen = run.bell.count
        if strand.is_cancelled() or strand.is_cancelled((yield strand.commit(WAIT_BEGIN))):
            raise strand.cancelled(place)
        yield Pause(seen, moment)


def _begin(strand: Strand, ask: Ask, place: Place, wake_at: float | None, why: str) -> None:
    now = strand.run.clock()
    kind, name, args = what_is_asked(ask, strand.run.name_of)
    strand.write(
        lambda tx: tx.begin_step(
            place,
            kind=kind,
            name=name,
            key=f"{place.run_id}:{place}:{name}",
            args=args,
            now=now,
            state=StepState.WAITING,
            wake_at=wake_at,
        )
    )
    strand.begin_wait(why, wake_at)


def perform_sleep(strand: Strand, ask: Sleep, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with nothing, once the moment has come."""
    run = strand.run
    if record is not None and record.state.is_settled:
        return strand.answer(record)
    if record is None:
        wake_at = run.clock() + ask.seconds
        _begin(strand, ask, place, wake_at, "a moment")
    else:
        wake_at = record.wake_at or 0.0
        strand.begin_wait("a moment", wake_at)
    try:
        if strand.is_cancelled((yield strand.commit(WAIT_BEGIN))):
            raise strand.cancelled(place)
        yield from until(strand, wake_at, place)
    except RunCancelledError:
        strand.end_wait()
        raise
    now = run.clock()
    strand.end_wait()
    strand.write(lambda tx: tx.settle_step(place, StepState.DONE, now, result="null"))
    return None


def perform_wait(strand: Strand, ask: Wait, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with the payload of the oldest signal of that name that no step has taken."""
    run = strand.run
    if record is not None and record.state.is_settled:
        return strand.answer(record)
    if record is None:
        wake_at = None if ask.timeout is None else run.clock() + ask.timeout
        _begin(strand, ask, place, wake_at, f"signal {ask.signal!r}")
    else:
        wake_at = record.wake_at
        strand.begin_wait(f"signal {ask.signal!r}", wake_at)
    point = WAIT_BEGIN
    while True:
        seen = run.bell.count
        taken: list[str] = []
        strand.write(partial(_take, strand=strand, ask=ask, place=place, taken=taken))
        is_cancelled = strand.is_cancelled((yield strand.commit(point)))
        point = SIGNAL_TAKE
        if taken:
            strand.end_wait()
            return read(taken[0])
        if is_cancelled:
            strand.end_wait()
            raise strand.cancelled(place)
        if wake_at is not None and run.clock() >= wake_at:
            raise _too_late(strand, ask, place)
        yield Pause(seen, wake_at)


def _take(tx: Transaction, strand: Strand, ask: Wait, place: Place, taken: list[str]) -> None:
    taken.clear()
    payload = tx.take_signal(place.run_id, ask.signal, str(place))
    if payload is not None:
        taken.append(payload)
        tx.settle_step(place, StepState.DONE, strand.run.clock(), result=payload)


def _too_late(strand: Strand, ask: Wait, place: Place) -> WaitTimeoutError:
    now = strand.run.clock()
    error = describe(TimeoutError(f"Nobody sent the signal {ask.signal!r} within {ask.timeout:g} s."), "timeout")
    text = json.dumps(error)
    strand.end_wait()
    strand.write(lambda tx: tx.settle_step(place, StepState.FAILED, now, error=text))
    return WaitTimeoutError(ask.signal, str(place), error)


def perform_join(strand: Strand, ask: Join, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with the result of another run once it is over."""
    run = strand.run
    if record is not None and record.state.is_settled:
        return strand.answer(record)
    if record is None:
        _begin(strand, ask, place, None, f"run {ask.run_id!r}")
    else:
        strand.begin_wait(f"run {ask.run_id!r}", None)
    yield Listen(f"run:{ask.run_id}")
    while True:
        seen = run.bell.count
        over: list[tuple[bool, str]] = []
        strand.write(partial(_look, strand=strand, ask=ask, place=place, over=over))
        is_cancelled = strand.is_cancelled((yield strand.commit(WAIT_BEGIN)))
        if over:
            strand.end_wait()
            is_done, text = over[0]
            if is_done:
                return read(text)
            raise StepFailedError(ask.run_id, str(place), read(text))
        if is_cancelled:
            strand.end_wait()
            raise strand.cancelled(place)
        yield Pause(seen, run.clock() + _LOOK_AGAIN)


def _look(tx: Transaction, strand: Strand, ask: Join, place: Place, over: list[tuple[bool, str]]) -> None:
    """Take over the other run's ending as this step's answer, in one commit."""
    over.clear()
    ended = tx.ending_of(ask.run_id)
    if ask.run_id == place.run_id:
        endless = {"type": "MisuseError", "message": f"Run {ask.run_id!r} cannot wait for its own end."}
        ended = RunState.RUNNING, None, json.dumps(endless)
    elif ended is None:
        if tx.state_of(ask.run_id) is not None:
            return
        unknown = {"type": "UnknownRunError", "message": f"There is no run {ask.run_id!r} to wait for."}
        ended = RunState.FAILED, None, json.dumps(unknown)
    state, result, error = ended
    if state is RunState.COMPLETED:
        tx.settle_step(place, StepState.DONE, strand.run.clock(), result=result)
        over.append((True, result or "null"))
        return
    text = json.dumps({**(read(error) or {}), "outcome": "child", "run": ask.run_id, "state": state.value})
    tx.settle_step(place, StepState.FAILED, strand.run.clock(), error=text)
    over.append((False, text))
