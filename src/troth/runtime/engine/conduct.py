"""Knows how to carry out a run: answers from the record as long as there are any, then asks the world.

A generator around the decision's generator. It decides what has to be written, tried, waited for and answered, and
never waits itself: it yields acts (`acts.py`), which a sync or an async driver performs.
"""

import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.runtime.engine.acts import Act
from troth.runtime.engine.asks import Append, Ask, Join, Sleep, Start, Step, Together, Wait
from troth.runtime.engine.branching import close, perform_append, perform_start, perform_together
from troth.runtime.engine.errors import RunCancelledError, StepFailedError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.points import RUN_FINISH
from troth.runtime.engine.stepping import perform_step
from troth.runtime.engine.strand import DecisionRaisedError, Perform, RunInProgress, Strand
from troth.runtime.engine.waiting import perform_join, perform_sleep, perform_wait
from troth.runtime.store import NotJsonError, RunState, Transaction
from troth.runtime.store.payload import keep

__all__ = ["conduct"]

_PERFORM: dict[type, Perform] = {
    Step: perform_step,
    Sleep: perform_sleep,
    Wait: perform_wait,
    Start: perform_start,
    Join: perform_join,
    Together: perform_together,
    Append: perform_append,
}


def conduct(run: RunInProgress, decision: Generator[Ask, Any, object]) -> Generator[Act, Any, RunState]:
    """Carry `decision` out to its end; the answer is the state in which the run ended."""
    strand = Strand(run, "", _PERFORM)
    result: str | None = None
    error: Exception | None = None
    try:
        value = yield from strand.play(decision)
        result, _ = keep(value, f"result of run {run.run_id!r}")
        state = RunState.COMPLETED
    except (DecisionRaisedError, NotJsonError) as raised:
        error = raised.error if isinstance(raised, DecisionRaisedError) else raised
        state = RunState.CANCELLED if isinstance(error, RunCancelledError) else RunState.FAILED
    finally:
        close(decision)
    text = None if error is None else json.dumps(_record_of(error))
    strand.write(partial(_finish, run=run, state=state, result=result, error=text))
    yield strand.commit(RUN_FINISH)
    return state


def _finish(tx: Transaction, run: RunInProgress, state: RunState, result: str | None, error: str | None) -> None:
    tx.finish_run(run.run_id, state, run.clock(), result=result, error=error)
    tx.release(run.resource, run.token)


def _record_of(error: Exception) -> dict[str, Any]:
    record = describe(error, "cancelled" if isinstance(error, RunCancelledError) else "failed")
    if isinstance(error, StepFailedError):
        return {**record, **error.error, "step": error.step, "at": error.step_place}
    origin = _origin(error)
    return record if origin is None else {**record, "origin": origin}


def _origin(error: BaseException | None) -> str | None:
    """The place of the failure or cancellation that the decision was dealing with when it raised `error`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, StepFailedError | RunCancelledError):
            return error.step_place
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
