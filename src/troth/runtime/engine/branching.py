"""Knows how a run does several things at once, starts other runs, and appends to streams."""

import json
from collections.abc import Generator
from typing import Any

from troth.runtime.engine.acts import Act, Acts, Fan, Launch
from troth.runtime.engine.asks import Append, Ask, Start, Together
from troth.runtime.engine.errors import RunCancelledError, RunMismatchError, StepFailedError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.points import BRANCH_END, CHILD_START, STEP_BEGIN
from troth.runtime.engine.replay import what_is_asked
from troth.runtime.engine.strand import DecisionRaisedError, Strand, ThrownError
from troth.runtime.store import RunState, StepRecord, StepState, Transaction
from troth.runtime.store.payload import keep, read
from troth.runtime.store.records import Place

__all__ = ["close", "perform_append", "perform_start", "perform_together"]


def perform_together(
    strand: Strand, ask: Together, place: Place, record: StepRecord | None
) -> Generator[Act, Any, object]:
    """Answer with the list of the branches' answers. A replay replays the branches, each from its own record."""
    run = strand.run
    kind, name, args = what_is_asked(ask, run.name_of)
    now = run.clock()
    if record is None:
        strand.write(
            lambda tx: tx.begin_step(place, kind=kind, name=name, key=f"{run.run_id}:{place}", args=args, now=now)
        )
        if strand.is_cancelled((yield strand.commit(STEP_BEGIN))):
            raise strand.cancelled(place)
    elif record.state is StepState.CANCELLED:
        return strand.answer(record)
    branches = [strand.fork(place.seq, index) for index in range(len(ask.branches))]
    run.strands += len(branches) - 1
    try:
        acts = tuple(_branch(one, asked) for one, asked in zip(branches, ask.branches, strict=True))
        outcomes: list[object] = yield Fan(acts, ask.limit)
    finally:
        run.strands += 1
    failures = [outcome.error for outcome in outcomes if isinstance(outcome, DecisionRaisedError)]
    if record is None or not record.state.is_settled:
        state, ended = StepState.FAILED if failures else StepState.DONE, run.clock()
        strand.write(lambda tx: tx.settle_step(place, state, ended, result=None if failures else "null"))
    if failures:
        first = _first(failures)
        strand.is_told = strand.is_told or isinstance(first, RunCancelledError)
        raise ThrownError(first)
    return outcomes


def _branch(strand: Strand, asked: Ask | Generator[Ask, Any, object]) -> Acts:
    """Play one branch to its end; the answer is what it returned, or a DecisionRaisedError as a value."""
    decision = asked if isinstance(asked, Generator) else _alone(asked)
    value: object
    try:
        value = yield from strand.play(decision)
    except DecisionRaisedError as raised:
        value = raised
    finally:
        close(decision)
    run, now = strand.run, strand.run.clock()
    run.strands -= 1
    if 0 < run.strands <= run.waiting:
        strand.write(lambda tx: tx.set_run_state(run.run_id, RunState.WAITING, now, waiting_for="its other branches"))
    if strand.has_pending:
        yield strand.commit(BRANCH_END)
    return value


def _alone(ask: Ask) -> Generator[Ask, Any, object]:
    return (yield ask)


def _first(failures: list[Exception]) -> Exception:
    """The first failure; a cancellation of the run before anything else."""
    first, *others = sorted(failures, key=lambda failure: not isinstance(failure, RunCancelledError))
    for other in others:
        first.add_note(f"Beside it: {other}")
    return first


def close(decision: Generator[Ask, Any, object]) -> None:
    """End a decision that was left in the middle. It will be replayed, so what it still asks for is not wanted."""
    try:
        decision.close()
    except RuntimeError:  # it yielded in a `finally` block; the next owner's replay comes there again, and is heard
        return


def perform_start(strand: Strand, ask: Start, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with the id of the new run, which is written down in the same commit."""
    run = strand.run
    if record is not None and record.state.is_settled:
        answer = strand.answer(record)
        yield Launch(str(answer))  # if it is not over, and nobody has it
        return answer
    child = ask.run_id or f"{run.run_id}.{place}"
    kind, name, args = what_is_asked(ask, run.name_of)
    given, _ = keep(list(ask.args), f"arguments of run {child!r}")
    now = run.clock()

    wrong: list[dict[str, Any]] = []

    def work(tx: Transaction) -> None:
        wrong.clear()
        tx.begin_step(place, kind=kind, name=name, key=child, args=args, now=now)
        is_new = tx.add_run(child, name, given, now, label=ask.label, parent=run.run_id)
        asked = None if is_new else tx.asked_of(child)
        if asked is None or (asked[0] == name and read(asked[1]) == read(given)):
            tx.settle_step(place, StepState.DONE, now, result=json.dumps(child))
            return
        wrong.append(describe(_other_run(child, asked[0], name), "refused"))
        tx.settle_step(place, StepState.FAILED, now, error=json.dumps(wrong[0]))

    strand.write(work)
    yield strand.commit(CHILD_START)
    if wrong:
        raise StepFailedError(name, str(place), wrong[0])
    yield Launch(child)
    return child


def _other_run(run_id: str, theirs: str, ours: str) -> RunMismatchError:
    return RunMismatchError(
        f"The id {run_id!r} belongs to a run of `{theirs}`, or of other arguments; `{ours}` was not started under it."
    )


def perform_append(strand: Strand, ask: Append, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
    """Answer with nothing; the event is written with the strand's next commit."""
    yield from ()
    if record is not None:
        return None
    _, name, args = what_is_asked(ask, strand.run.name_of)
    now = strand.run.clock()

    def work(tx: Transaction) -> None:
        tx.append_event(ask.stream, ask.kind, ask.payload, now)
        tx.begin_step(place, kind="append", name=name, key=f"{place.run_id}:{place}", args=args, now=now)
        tx.settle_step(place, StepState.DONE, now, result="null")

    strand.write(work)
    return None
