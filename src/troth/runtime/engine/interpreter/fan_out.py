"""How a run does several things at once, starts other runs, and appends to streams."""

import json
from collections.abc import Generator
from functools import partial
from typing import Any

from troth.runtime.engine.commands import Append, Command, Start, Together
from troth.runtime.engine.commit_points import BRANCH_END, CHILD_START, STEP_BEGIN
from troth.runtime.engine.errors import RunCancelledError, RunMismatchError, StepFailedError
from troth.runtime.engine.failure import describe, message_of
from troth.runtime.engine.interpreter.branch import Branch, DecisionRaisedError, ThrownError
from troth.runtime.engine.interpreter.effects import Effect, Effects, Fan, Launch
from troth.runtime.engine.interpreter.replay import what_is_asked
from troth.runtime.engine.interpreter.shown import note_of, shows_begin, shows_end
from troth.runtime.store import RunState, StepRecord, StepState, Transaction
from troth.runtime.store.json_codec import keep, read
from troth.runtime.store.records import Place

__all__ = ["close", "perform_append", "perform_start", "perform_together"]


def perform_together(
    branch: Branch, ask: Together, place: Place, record: StepRecord | None
) -> Generator[Effect, Any, object]:
    """Answer with the list of the branches' answers. A replay replays the branches, each from its own record."""
    run = branch.run
    kind, name, args = what_is_asked(ask, run.name_of)
    now = run.clock()
    if record is None:
        branch.write(
            lambda tx: tx.begin_step(
                place, kind=kind, name=name, key=f"{run.run_id}:{place}", args=args, now=now, is_shown=False
            )
        )
        if branch.is_cancelled((yield branch.commit(STEP_BEGIN))):
            raise branch.cancelled(ask, place)
    elif record.state is StepState.CANCELLED:
        return branch.answer(record)
    branches = [branch.fork(place.seq, index) for index in range(len(ask.branches))]
    run.branches += len(branches) - 1
    try:
        acts = tuple(_branch(child, command) for child, command in zip(branches, ask.branches, strict=True))
        outcomes: list[object] = yield Fan(acts, ask.limit)
    finally:
        run.branches += 1
    failures = [outcome.error for outcome in outcomes if isinstance(outcome, DecisionRaisedError)]
    if record is None or not record.state.is_settled:
        state, ended = StepState.FAILED if failures else StepState.DONE, run.clock()
        branch.settle(ask, place, state, ended, result=None if failures else "null")
    if failures:
        first = _first(failures)
        branch.is_told = branch.is_told or isinstance(first, RunCancelledError)
        raise ThrownError(first)
    return outcomes


def _branch(branch: Branch, command: Command | Generator[Command, Any, object]) -> Effects:
    """Play one branch to its end; the answer is what it returned, or a DecisionRaisedError as a value."""
    decision = command if isinstance(command, Generator) else _alone(command)
    value: object
    try:
        value = yield from branch.play(decision)
    except DecisionRaisedError as raised:
        value = raised
    finally:
        close(decision)
    run, now = branch.run, branch.run.clock()
    run.branches -= 1
    if 0 < run.branches <= run.waiting:
        branch.write(
            lambda tx: tx.set_run_state(run.run_id, RunState.WAITING, now, waiting_for="its other branches"),
            run.letters,
        )
    if branch.has_pending:
        yield branch.commit(BRANCH_END)
    return value


def _alone(ask: Command) -> Generator[Command, Any, object]:
    return (yield ask)


def _first(failures: list[BaseException]) -> BaseException:
    """The first failure; a cancellation of the run before anything else."""
    first, *later = sorted(failures, key=lambda failure: not isinstance(failure, RunCancelledError))
    for failure in later:
        first.add_note(f"Beside it: {message_of(failure)}")
    return first


def close(decision: Generator[Command, Any, object]) -> None:
    """End a decision that was left in the middle. It will be replayed, so what it still asks for is not wanted."""
    try:
        decision.close()
    except RuntimeError:  # it yielded in a `finally` block; the next owner's replay comes there again, and is heard
        return


def perform_start(
    branch: Branch, ask: Start, place: Place, record: StepRecord | None
) -> Generator[Effect, Any, object]:
    """Answer with the id of the new run, which is written down in the same commit."""
    run = branch.run
    if record is not None and record.state.is_settled:
        answer = branch.answer(record)
        yield Launch(str(answer))  # if it is not over, and nobody has it
        return answer
    child = ask.run_id or f"{run.run_id}.{place}"
    kind, name, args = what_is_asked(ask, run.name_of)
    child_args, _ = keep(list(ask.args), f"arguments of run {child!r}")
    now = run.clock()

    wrong: list[dict[str, Any]] = []

    def work(tx: Transaction) -> None:
        wrong.clear()
        tx.begin_step(place, kind=kind, name=name, key=child, args=args, now=now, is_shown=False)
        settle = partial(tx.settle_step, place, now=now, kind=kind, name=name, is_shown=False)
        is_new = tx.add_run(child, name, child_args, now, label=ask.label, parent=run.run_id)
        opening = None if is_new else tx.asked_of(child)
        if opening is None or (opening[0] == name and read(opening[1], f"run {child!r}") == json.loads(child_args)):
            settle(state=StepState.DONE, result=json.dumps(child))
            return
        wrong.append(describe(_other_run(child, opening[0], name), "refused"))
        settle(state=StepState.FAILED, error=json.dumps(wrong[0]))

    branch.write(work, len(args) + len(child_args))
    yield branch.commit(CHILD_START)
    if wrong:
        raise StepFailedError(name, str(place), wrong[0])
    yield Launch(child)
    return child


def _other_run(run_id: str, theirs: str, ours: str) -> RunMismatchError:
    return RunMismatchError(
        f"The id {run_id!r} belongs to a run of `{theirs}`, or of other arguments; `{ours}` was not started under it."
    )


def perform_append(
    branch: Branch, ask: Append, place: Place, record: StepRecord | None
) -> Generator[Effect, Any, object]:
    """Answer with nothing; the event is written with the branch's next commit."""
    yield from ()
    if record is not None:
        return None
    _, name, args = what_is_asked(ask, branch.run.name_of)
    now = branch.run.clock()

    def work(tx: Transaction) -> None:
        tx.append_event(ask.stream, ask.kind, ask.payload, now)
        if branch.run.governor is not None:
            branch.run.governor.appended(tx, place, ask.stream, ask.kind, ask.payload, now)
        key = f"{place.run_id}:{place}"
        begins, ends, note = shows_begin(ask), shows_end(ask), note_of(ask)
        tx.begin_step(place, kind="append", name=name, key=key, args=args, now=now, note=note, is_shown=begins)
        tx.settle_step(place, StepState.DONE, now, kind="append", name=name, result="null", note=note, is_shown=ends)

    branch.write(work, 2 * len(args))
    return None
