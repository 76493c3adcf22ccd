"""How a run waits: for a moment, for a signal, for another run. Nothing of it is lost if the process dies."""

import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.runtime.engine.commands import Command, Join, Sleep, Wait
from troth.runtime.engine.commit_points import SIGNAL_TAKE, WAIT_BEGIN
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.interpreter.branch import Branch
from troth.runtime.engine.interpreter.effects import Effect, Listen, Pause
from troth.runtime.engine.interpreter.replay import what_is_asked
from troth.runtime.engine.interpreter.shown import note_of, shows_begin
from troth.runtime.store import RunState, StepRecord, StepState, Transaction
from troth.runtime.store.json_codec import read
from troth.runtime.store.large_values import ANY_SIZE
from troth.runtime.store.records import Place

__all__ = ["perform_join", "perform_sleep", "perform_wait", "until"]


def until(branch: Branch, moment: float, ask: Command, place: Place, attempt: int = 1) -> Generator[Effect, Any, None]:
    """Wait for a moment; news of the run interrupt it only to look whether it is cancelled."""
    run = branch.run
    while run.clock() < moment:
        rings = run.bell.count
        if branch.is_cancelled() or branch.is_cancelled((yield branch.commit(WAIT_BEGIN))):
            raise branch.cancelled(ask, place, attempt)
        yield Pause(rings, moment)


def _begin(branch: Branch, ask: Command, place: Place, wake_at: float | None, why: str) -> None:
    now = branch.run.clock()
    kind, name, args = what_is_asked(ask, branch.run.name_of)
    note, is_shown = note_of(ask), shows_begin(ask)
    branch.write(
        lambda tx: tx.begin_step(
            place,
            kind=kind,
            name=name,
            key=f"{place.run_id}:{place}:{name}",
            args=args,
            now=now,
            state=StepState.WAITING,
            wake_at=wake_at,
            note=note,
            is_shown=is_shown,
        )
    )
    branch.begin_wait(why, wake_at)


def perform_sleep(
    branch: Branch, ask: Sleep, place: Place, record: StepRecord | None
) -> Generator[Effect, Any, object]:
    """Answer with nothing, once the moment has come."""
    run = branch.run
    if record is not None and record.state.is_settled:
        return branch.answer(record)
    if record is None:
        wake_at = run.clock() + ask.seconds
        _begin(branch, ask, place, wake_at, "a moment")
    else:
        wake_at = record.wake_at or 0.0
        branch.begin_wait("a moment", wake_at)
    try:
        if branch.is_cancelled((yield branch.commit(WAIT_BEGIN))):
            raise branch.cancelled(ask, place)
        yield from until(branch, wake_at, ask, place)
    except RunCancelledError:
        branch.end_wait()
        raise
    now = run.clock()
    branch.end_wait()
    branch.settle(ask, place, StepState.DONE, now, result="null")
    return None


def perform_wait(branch: Branch, ask: Wait, place: Place, record: StepRecord | None) -> Generator[Effect, Any, object]:
    """Answer with the payload of the oldest signal of that name that no step has taken."""
    run = branch.run
    if record is not None and record.state.is_settled:
        return branch.answer(record)
    if record is None:
        wake_at = None if ask.timeout is None else run.clock() + ask.timeout
        _begin(branch, ask, place, wake_at, f"signal {ask.signal!r}")
    else:
        wake_at = record.wake_at
        branch.begin_wait(f"signal {ask.signal!r}", wake_at)
    point = WAIT_BEGIN
    while True:
        rings = run.bell.count
        over: list[tuple[bool, str]] = []
        # How large a signal is, the commit that takes it finds out: too late to choose where that is written.
        branch.write(partial(_receive, branch=branch, ask=ask, place=place, wake_at=wake_at, over=over), ANY_SIZE)
        is_cancelled = branch.is_cancelled((yield branch.commit(point)))
        point = SIGNAL_TAKE
        if over:
            branch.end_wait()
            is_sent, text = over[0]
            if is_sent:
                return json.loads(text)
            raise WaitTimeoutError(ask.signal, str(place), json.loads(text))
        if is_cancelled:
            branch.end_wait()
            raise branch.cancelled(ask, place)
        yield Pause(rings, wake_at)


def _receive(
    tx: Transaction, branch: Branch, ask: Wait, place: Place, wake_at: float | None, over: list[tuple[bool, str]]
) -> None:
    """Take a signal that was sent in time, or write down that the time is up; both in the commit that looks.

    When a signal was sent decides, not when somebody looks: a process that is late, or was dead meanwhile, takes one
    that came in time and no other. After this commit nothing can be sent that would have been in time.
    """
    over.clear()
    now = branch.run.clock()
    is_timed = ask.timeout is not None and ask.timeout > 0  # without time, whatever is there is taken
    payload = tx.take_signal(place.run_id, ask.signal, str(place), before=wake_at if is_timed else None)
    settle = partial(tx.settle_step, place, now=now, kind="wait", name=ask.signal, note=note_of(ask))
    if payload is not None:
        answer = read(payload, f"the signal {ask.signal!r} to run {place.run_id!r}")  # what is damaged stays there
        settle(state=StepState.DONE, result=payload, is_shown=ask.is_the_end(answer))
        over.append((True, payload))
    elif wake_at is not None and now >= wake_at:
        text = json.dumps(
            describe(TimeoutError(f"The signal {ask.signal!r} was not sent within {ask.timeout:g} s."), "timeout")
        )
        settle(state=StepState.FAILED, error=text, is_shown=ask.is_the_end(None))
        over.append((False, text))


def perform_join(branch: Branch, ask: Join, place: Place, record: StepRecord | None) -> Generator[Effect, Any, object]:
    """Answer with the result of another run once it is over."""
    run = branch.run
    if record is not None and record.state.is_settled:
        return branch.answer(record)
    if record is None:
        _begin(branch, ask, place, None, f"run {ask.run_id!r}")
    else:
        branch.begin_wait(f"run {ask.run_id!r}", None)
    yield Listen(f"run:{ask.run_id}")
    while True:
        rings = run.bell.count
        over: list[tuple[bool, str]] = []
        branch.write(partial(_look, branch=branch, ask=ask, place=place, over=over), ANY_SIZE)
        is_cancelled = branch.is_cancelled((yield branch.commit(WAIT_BEGIN)))
        if over:
            branch.end_wait()
            is_done, text = over[0]
            if is_done:
                return json.loads(text)
            raise StepFailedError(ask.run_id, str(place), json.loads(text))
        if is_cancelled:
            branch.end_wait()
            raise branch.cancelled(ask, place)
        yield Pause(rings, run.clock() + run.look_again)


def _look(tx: Transaction, branch: Branch, ask: Join, place: Place, over: list[tuple[bool, str]]) -> None:
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
    settle = partial(tx.settle_step, place, now=branch.run.clock(), kind="join", name=ask.run_id, is_shown=False)
    if state is RunState.COMPLETED:
        read(result, f"run {ask.run_id!r}")
        settle(state=StepState.DONE, result=result)
        over.append((True, result or "null"))
        return
    failure = read(error, f"run {ask.run_id!r}") or {}
    text = json.dumps({**failure, "outcome": "child", "run": ask.run_id, "state": state.value})
    settle(state=StepState.FAILED, error=text)
    over.append((False, text))
