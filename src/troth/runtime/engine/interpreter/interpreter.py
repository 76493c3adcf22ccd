"""Carry out a run: take answers from the record as long as there are any, then ask the world.

A decision is a generator that yields commands (`commands.py`). The interpreter is a generator around it that yields
effects (`effects.py`): commit this, call that, wait until then. A driver performs the effects, blocking or awaiting,
and sends the answers back. So replay, retry, recording and cancellation are written once, for both colors and for
Temporal.

A run is a trunk, and each `Together` adds branches to it; `branch.py` plays one of them. For each command it takes
the next place in the record. If something is recorded there, the command is compared with it, and one that differs is
refused, because the answer would belong to another question. The function for the command's type in `_PERFORM` then
takes the answer from the record: this is a replay, and nothing happens. Where the record has no answer, it carries
the command out.

What a branch writes is collected until its next commit. So one transaction has the answer of a step and the intent of
the next, together with the proof that the run's lease is still held. After a crash, the record tells of each branch
which step was in flight: it is done again under the same key, or fails if it says `after_crash="fail"`.

The end of a run is written in the same manner: result or error, what the governor keeps, and the release of the lease
are one commit. A cancellation is not an end but an error that is thrown into the decision at the command that it
waits for, or at the next one, so that a saga can undo what it did. `Finish` ends the run inside the decision, and is
refused in a branch.
"""

import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.commands import Append, Command, Finish, Join, Sleep, Start, Step, Together, Wait
from troth.runtime.engine.commit_points import RUN_FINISH
from troth.runtime.engine.errors import RunCancelledError, StepFailedError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.interpreter.branch import (
    Branch,
    DecisionRaisedError,
    Perform,
    RunInProgress,
    ThrownError,
)
from troth.runtime.engine.interpreter.effects import Commit, Effect, Encode
from troth.runtime.engine.interpreter.fan_out import close, perform_append, perform_start, perform_together
from troth.runtime.engine.interpreter.steps import perform_step
from troth.runtime.engine.interpreter.timers_and_signals import perform_join, perform_sleep, perform_wait
from troth.runtime.store import NotJsonError, RunState, StepRecord, Transaction
from troth.runtime.store.json_codec import keep
from troth.runtime.store.large_values import LARGE, KeptValue, is_large
from troth.runtime.store.records import Place

__all__ = ["interpret"]


def _perform_finish(
    branch: Branch,
    ask: Finish,
    place: Place,
    record: StepRecord | None,  # noqa: ARG001  there is none: the run's own record tells
) -> Generator[Effect, Any, object]:
    """Answer with nothing once the run has ended; or throw its cancellation."""
    if branch.branch:
        raise ThrownError(MisuseError("A branch of a `Together` cannot `Finish` its run. Return from it instead."))
    run = branch.run
    result, run.value = yield from _kept(ask.value, run)
    commit = branch.commit(RUN_FINISH)

    def work(tx: Transaction) -> bool:
        is_requested = bool(commit.work(tx))
        if is_requested and not branch.is_told:
            return True
        _finish(tx, run, RunState.COMPLETED, result, None)
        return False

    if (yield Commit(RUN_FINISH, work, commit.is_large or run.letters + len(result) > LARGE)):
        branch.is_cancelled(True)
        raise branch.cancelled_unrecorded(place)
    run.is_finished = True
    return None


def _kept(value: object, run: RunInProgress) -> Generator[Effect, Any, KeptValue]:
    """What the run returns, as it is kept."""
    what = f"result of run {run.run_id!r}"
    if is_large(value):
        kept: KeptValue = yield Encode(value, what)
        return kept
    return KeptValue(*keep(value, what))


_PERFORM: dict[type, Perform] = {
    Step: perform_step,
    Sleep: perform_sleep,
    Wait: perform_wait,
    Start: perform_start,
    Join: perform_join,
    Together: perform_together,
    Append: perform_append,
    Finish: _perform_finish,
}


def interpret(run: RunInProgress, decision: Generator[Command, Any, object]) -> Generator[Effect, Any, RunState]:
    """Carry `decision` out to its end; the answer is the state in which the run ended."""
    branch = Branch(run, "", _PERFORM)
    result: str | None = None
    error: BaseException | None = None
    try:
        value = yield from branch.play(decision)
        if run.is_finished:
            return RunState.COMPLETED
        result, run.value = yield from _kept(value, run)
        state = RunState.COMPLETED
    except (DecisionRaisedError, NotJsonError) as raised:
        error = raised.error if isinstance(raised, DecisionRaisedError) else raised
        state = RunState.CANCELLED if isinstance(error, RunCancelledError) else RunState.FAILED
    finally:
        close(decision)
    text = None if error is None else json.dumps(_record_of(error))
    letters = run.letters + len(result or "")
    branch.write(partial(_finish, run=run, state=state, result=result, error=text), letters)
    yield branch.commit(RUN_FINISH)
    return state


def _finish(tx: Transaction, run: RunInProgress, state: RunState, result: str | None, error: str | None) -> None:
    now = run.clock()
    ending = None
    if run.conclude is not None and state is not RunState.COMPLETED:
        ending = run.conclude.word(state, lambda: tx.steps(run.run_id))
    tx.finish_run(run.run_id, state, now, result=result, error=error, ending=ending)
    if run.governor is not None:
        run.governor.finished(tx, run.run_id, state, now)
    tx.release(run.resource, run.token)


def _record_of(error: BaseException) -> dict[str, Any]:
    record = describe(error, "cancelled" if isinstance(error, RunCancelledError) else "failed")
    if isinstance(error, StepFailedError):
        return {**record, **error.error, "step": error.step, "at": error.step_place}
    origin = _origin(error)
    return record if origin is None else {**record, "origin": origin}


def _origin(error: BaseException | None) -> str | None:
    """The place of the failure or cancellation that the decision was dealing with when it raised `error`."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        if isinstance(error, StepFailedError | RunCancelledError):
            return error.step_place
        visited.add(id(error))
        error = error.__cause__ or error.__context__
    return None
