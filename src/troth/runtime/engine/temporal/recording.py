"""Write what happened in a run into the store, in order and once.

A workflow numbers what it writes: batch 1, batch 2, and so on. The token of its run's lease carries the number of the
last batch that is written; each transaction proves the token and moves it on. So a batch that arrives twice is not
written twice, one that arrives late is refused, and a workflow whose run was taken over writes nothing more.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from troth.runtime.engine.commit_points import RUN_RECORD
from troth.runtime.engine.temporal.journal import Operation
from troth.runtime.store import LeaseLostError, RunState, StepState, Store, Transaction
from troth.runtime.store.json_codec import keep
from troth.runtime.store.records import Place
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = ["PendingRecord", "RecordedAnswers", "record", "token_of"]


class PendingRecord(TypedDict):
    """What a workflow has written since it last heard that it was recorded."""

    run: str
    base: str
    """What all tokens of this owner begin with."""
    after: int
    """How many batches are known to be recorded."""
    batches: list[list[Operation]]
    questions: list[dict[str, Any]]


class RecordedAnswers(NamedTuple):
    """The answers to the questions, and whether somebody asked for the run's cancellation."""

    answers: list[Any]
    is_cancel_requested: bool
    started: list[str]
    """Runs that were written down, and are to be started now."""


def token_of(base: str, number: int) -> str:
    """The token of a lease under which `number` batches are written."""
    return f"{base}.{number}"


async def record(store: Store, owner: str, message: PendingRecord) -> RecordedAnswers | None:
    """Write what is not written yet, and answer the questions; None if the run belongs to somebody else now."""
    last: LeaseLostError | None = None
    for done in range(len(message["batches"]) + 1):
        try:
            taken = await _taken(store, message)
            return await store.acommit(RUN_RECORD, _writing(store, owner, message, done, taken))
        except LeaseLostError as lost:
            last = lost
    assert last is not None
    if _ends(message):
        run = store.run(message["run"])
        if run is not None and run.state.is_over:
            return RecordedAnswers([], is_cancel_requested=False, started=[])  # with its end, the lease was given back
    return None


async def _taken(store: Store, message: PendingRecord) -> dict[str, str]:
    """The messages that steps which ask for one have taken already: the answer was lost on its way, and is the same."""
    steps = {question["taken_by"] for question in message["questions"] if question["ask"] == "take_signal"}
    if not steps:
        return {}
    signals = await asyncio.to_thread(store.signals, message["run"])
    return {
        signal.taken_by: keep(signal.payload, f"signal {signal.name!r}")[0]
        for signal in signals
        if signal.taken_by in steps and signal.taken_by is not None
    }


def _ends(message: PendingRecord) -> bool:
    return any(operation["do"] == "release" for batch in message["batches"] for operation in batch)


def _writing(
    store: Store, owner: str, message: PendingRecord, done: int, taken: dict[str, str]
) -> Callable[[Transaction], RecordedAnswers]:
    run_id, base, batches = message["run"], message["base"], message["batches"]
    resource = run_topic(run_id)
    last = token_of(base, message["after"] + len(batches))

    def work(tx: Transaction) -> RecordedAnswers:
        now = store.clock()
        is_requested = tx.hold_run(run_id, resource, token_of(base, message["after"] + done))
        if done < len(batches):
            tx.renew(resource, owner, last, now)
        for operation in (operation for batch in batches[done:] for operation in batch):
            if operation["do"] == "release":
                tx.release(resource, last)
            else:
                _apply(tx, run_id, operation)
        started: list[str] = []
        answers = [_answer(tx, taken, owner, question, now, started) for question in message["questions"]]
        return RecordedAnswers(answers, is_requested, started)

    return work


_STATES: dict[str, Callable[[str], object]] = {
    "set_run_state": RunState,
    "finish_run": RunState,
    "begin_step": StepState,
    "settle_step": StepState,
}


def _apply(tx: Transaction, run_id: str, operation: Operation) -> None:
    values = dict(operation)
    do = values.pop("do")
    if do in _STATES:
        values["state"] = _STATES[do](values["state"])
    where: list[object] = []
    if "place" in values:
        where = [Place(run_id, *values.pop("place"))]
    elif "run" in values:
        where = [values.pop("run")]
    getattr(tx, do)(*where, **values)


def _answer(
    tx: Transaction, taken: dict[str, str], owner: str, question: dict[str, Any], now: float, started: list[str]
) -> object:
    match question["ask"]:
        case "take_signal":
            step = question["taken_by"]
            if step in taken:
                return taken[step]
            return tx.take_signal(question["run"], question["name"], step, before=question["before"])
        case "ending_of":
            ending = tx.ending_of(question["run"])
            return None if ending is None else [ending[0].value, ending[1], ending[2]]
        case "state_of":
            state = tx.state_of(question["run"])
            return None if state is None else state.value
        case "asked_of":
            opening = tx.asked_of(question["run"])
            return None if opening is None else [opening[0], opening[1], opening[2].value]
        case "add_run":
            child = question["run"]
            is_new = tx.add_run(
                child,
                question["decision"],
                question["args"],
                question["now"],
                label=question["label"],
                parent=question["parent"],
            )
            if is_new:
                tx.claim(run_topic(child), owner, token_of(child, 0), now)
            started.append(child)
            return is_new
    raise AssertionError(question)
