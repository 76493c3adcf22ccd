"""Knows how to carry out a decision: answers from the record as long as there are any, then asks the world.

A generator around the decision's generator. It decides what has to be written, tried, waited for and answered, and
never waits itself: it yields acts (`acts.py`), which a sync or an async driver performs. One commit for each step
keeps the answer of the step before and the intent of this one, so after a crash it is known which step was in flight.
"""

import json
import random
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.acts import Act, Acts, Commit, Fan, Invoke, Launch, Listen, Pause
from troth.runtime.engine.asks import Append, Ask, Join, Sleep, Start, Step, Together, Wait
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.current import CurrentStep
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.outcome import Outcome
from troth.runtime.engine.points import (
    BRANCH_END,
    CHILD_START,
    RUN_FINISH,
    SIGNAL_TAKE,
    STEP_BEGIN,
    STEP_RETRY,
    WAIT_BEGIN,
)
from troth.runtime.engine.replay import check_same, what_is_asked
from troth.runtime.store import Bell, CommitPoint, NotJsonError, RunState, StepRecord, StepState, Transaction
from troth.runtime.store.payload import keep, read
from troth.runtime.store.records import Place

__all__ = ["Conductor", "DecisionRaisedError"]

Write = Callable[[Transaction], object]
_UNCOUNTED = frozenset({"interrupted", "cancelled"})


class DecisionRaisedError(Exception):
    """Carries what a decision raised past our own frames; never seen outside."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _ThrownError(Exception):
    """Its cause is to be thrown into the decision: what a branch raised, whatever that is."""


class Conductor:
    """One run being carried out: who it is, what is recorded of it, and what all its strands share."""

    def __init__(
        self,
        run_id: str,
        token: str,
        *,
        clock: Callable[[], float],
        chance: random.Random,
        recorded: dict[tuple[str, int], StepRecord],
        name_of: Callable[[Any], str],
    ) -> None:
        self.run_id = run_id
        self.resource = f"run:{run_id}"
        self.token = token
        self.clock = clock
        self.chance = chance
        self.recorded = recorded
        self.name_of = name_of
        self.cancellation = Cancellation()
        self.bell = Bell()
        self.strands = 1
        self.waiting = 0

    def conduct(self, decision: Generator[Ask, Any, object]) -> Generator[Act, Any, RunState]:
        """Carry `decision` out to its end; the answer is the state in which the run ended."""
        strand = Strand(self, "")
        result: str | None = None
        error: Exception | None = None
        try:
            value = yield from strand.play(decision)
            result, _ = keep(value, f"result of run {self.run_id!r}")
            state = RunState.COMPLETED
        except (DecisionRaisedError, NotJsonError) as raised:
            error = raised.error if isinstance(raised, DecisionRaisedError) else raised
            state = RunState.CANCELLED if isinstance(error, RunCancelledError) else RunState.FAILED
        finally:
            _close(decision)
        text = None if error is None else json.dumps(_record_of(error))
        strand.write(partial(self._finish, state=state, result=result, error=text))
        yield from strand.commit(RUN_FINISH)
        return state

    def _finish(self, tx: Transaction, state: RunState, result: str | None, error: str | None) -> None:
        tx.finish_run(self.run_id, state, self.clock(), result=result, error=error)
        tx.release(self.resource, self.token)


def _record_of(error: Exception) -> dict[str, Any]:
    record = describe(error, "cancelled" if isinstance(error, RunCancelledError) else "failed")
    if isinstance(error, StepFailedError):
        cause = dict(error.error)
        return {**record, **cause, "step": error.step, "at": error.step_place}
    return record


def _close(decision: Generator[Ask, Any, object]) -> None:
    """End a decision that was left in the middle. It will be replayed, so what it still asks for is not wanted."""
    try:
        decision.close()
    except RuntimeError:  # it yielded in a `finally` block; the next owner's replay comes there again, and is heard
        return


class Strand:
    """One line of a run: the trunk, or one branch of a `Together`."""

    __slots__ = ("_branch", "_is_told", "_pending", "_run")

    def __init__(self, run: Conductor, branch: str, *, is_told: bool = False) -> None:
        self._run = run
        self._branch = branch
        self._is_told = is_told  # of the run's cancellation: each strand once, and what it then asks for is performed
        self._pending: list[Write] = []

    def write(self, write: Write) -> None:
        """Keep `write` for this strand's next commit."""
        self._pending.append(write)

    def commit(self, point: CommitPoint) -> Generator[Act, Any, bool]:
        """Commit what is pending; the answer is whether the decision has to be told of a cancellation."""
        run, writes = self._run, self._pending
        self._pending = []

        def work(tx: Transaction) -> bool:
            is_requested = tx.hold_run(run.run_id, run.resource, run.token)
            for write in writes:
                write(tx)
            return is_requested

        is_requested: bool = yield Commit(point, work)
        if is_requested:
            run.cancellation.is_asked = True
        return self._has_news()

    def _has_news(self) -> bool:
        """Whether the run is to be cancelled and this strand has not been told."""
        return self._run.cancellation.is_asked and not self._is_told

    def play(self, decision: Generator[Ask, Any, object]) -> Generator[Act, Any, object]:
        """Send the decision the answers to what it asks for, until it returns."""
        run, branch, seq = self._run, self._branch, 0
        answer: Any = None
        failure: Exception | None = None
        while True:
            try:
                ask = decision.send(answer) if failure is None else decision.throw(failure)
            except StopIteration as done:
                return done.value
            except Exception as error:
                raise DecisionRaisedError(error) from error
            answer = failure = None
            seq += 1
            place = Place(run.run_id, branch, seq)
            try:
                perform = _PERFORM[type(ask)]
            except KeyError:
                failure = _not_an_ask(ask)
                continue
            record = run.recorded.pop((branch, seq), None) if run.recorded else None
            if record is not None:
                check_same(ask, record, run.name_of)
            try:
                answer = yield from perform(self, ask, place, record)
            except (StepFailedError, RunCancelledError, NotJsonError, _ThrownError) as error:
                failure = error.__cause__ if isinstance(error, _ThrownError) else error  # type: ignore[assignment]

    # Steps

    def _step(self, step: Step, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        key = step.key or f"{run.run_id}:{place.branch}{place.seq}:{step.name}"
        number, failed = 1, 0
        if record is None:
            now = run.clock()
            color, code, text = step.color.value, step.code, step.recorded
            self.write(
                lambda tx: tx.begin_step(
                    place, kind="step", name=step.name, key=key, args=text, now=now, color=color, code=code
                )
            )
        elif record.state.is_settled:
            return self._answer(record)
        else:
            key = record.key
            number = record.attempt + 1
            failed = sum(attempt.outcome not in _UNCOUNTED for attempt in record.attempts)
            yield from self._pick_up(step, place, record)
        while True:
            if (yield from self.commit(STEP_BEGIN)):
                raise self._cancelled(place)
            info = CurrentStep(run.run_id, place, step.name, key, number, run.clock())
            outcome: Outcome = yield Invoke(step, info, _DEAF if self._is_told else run.cancellation)
            now = run.clock()
            if outcome.ended == "done":
                try:
                    text, value = keep(outcome.value, f"result of step {step.name!r}")
                except NotJsonError as refused:
                    outcome = Outcome("failed", error=refused)
                else:
                    self._settle(info, text, now)
                    return value
            if outcome.ended == "cancelled":
                self._note_attempt(info, outcome, now, None)
                raise self._cancelled(place)
            failed += 1
            error = outcome.error or InterruptedError("nothing is known of it")
            if not _is_worth_another(step, outcome, error, failed):
                raise self._fail(info, outcome, error, now)
            next_at = now + step.retry.wait_after(failed, run.chance)
            yield from self._rest(info, outcome, now, next_at)
            number += 1
            again, began = number, run.clock()
            self.write(lambda tx: tx.begin_attempt(place, again, began))  # noqa: B023  flushed in this same turn

    def _pick_up(self, step: Step, place: Place, record: StepRecord) -> Generator[Act, Any, None]:
        """Go on with a step that a dead owner left begun or resting."""
        run, now = self._run, self._run.clock()
        number = record.attempt
        if record.state is StepState.RESTING:
            yield from self._until(record.wake_at or now, place)
        else:
            error = InterruptedError(
                f"The process that ran step {step.name!r} was gone before its result was recorded. "
                "Whether its effect happened is unknown."
            )
            info = CurrentStep(run.run_id, place, step.name, record.key, number, record.started_at)
            outcome = Outcome("timeout", error=error)
            if step.after_crash == "fail":
                raise self._fail(info, outcome, error, now, "interrupted")
            self._note_attempt(info, outcome, now, now, "interrupted")
        began = run.clock()
        self.write(lambda tx: tx.begin_attempt(place, number + 1, began))

    def _rest(self, info: CurrentStep, outcome: Outcome, now: float, next_at: float) -> Generator[Act, Any, None]:
        self._note_attempt(info, outcome, now, next_at)
        self.write(lambda tx: tx.rest_step(info.place, next_at))
        if (yield from self.commit(STEP_RETRY)):
            raise self._cancelled(info.place)
        yield from self._until(next_at, info.place)

    def _settle(self, info: CurrentStep, text: str, now: float) -> None:
        place = info.place
        self.write(lambda tx: tx.settle_step(place, StepState.DONE, now, result=text))
        for stream, kind, payload in info.appended:
            self.write(partial(_append, stream=stream, kind=kind, payload=payload, now=now))

    def _note_attempt(
        self, info: CurrentStep, outcome: Outcome, now: float, next_at: float | None, ended: str | None = None
    ) -> None:
        ended = ended or outcome.ended
        text = None if outcome.error is None else json.dumps(describe(outcome.error, ended))
        self.write(
            lambda tx: tx.add_attempt(
                info.place,
                number=info.attempt,
                outcome=ended,
                error=text,
                started_at=info.started_at,
                now=now,
                next_at=next_at,
            )
        )

    def _fail(
        self, info: CurrentStep, outcome: Outcome, error: BaseException, now: float, ended: str | None = None
    ) -> StepFailedError:
        """Settle a step as failed for good; the answer is what the decision is thrown."""
        self._note_attempt(info, outcome, now, None, ended)
        record = describe(error, ended or outcome.ended)
        text = json.dumps(record)
        self.write(lambda tx: tx.settle_step(info.place, StepState.FAILED, now, error=text))
        failure = StepFailedError(info.name, str(info.place), record)
        failure.__cause__ = error
        return failure

    def _answer(self, record: StepRecord) -> object:
        """What the record answers: the result, or the failure thrown again."""
        if record.state is StepState.DONE:
            return record.result
        if record.state is StepState.CANCELLED:
            self._is_told = True
            raise _cancelled_error(self._run.run_id)
        error = record.error or {}
        kind = WaitTimeoutError if record.kind == "wait" else StepFailedError
        raise kind(record.name, str(record.place), error)

    def _cancelled(self, place: Place) -> RunCancelledError:
        """Deliver the cancellation at `place`; the answer is what the decision is thrown."""
        now = self._run.clock()
        self._is_told = True
        self.write(lambda tx: tx.settle_step(place, StepState.CANCELLED, now))
        return _cancelled_error(self._run.run_id)

    # Waiting

    def _until(self, moment: float, place: Place) -> Generator[Act, Any, None]:
        """Wait for a moment; news of the run interrupt it only to look whether it is cancelled."""
        run = self._run
        while run.clock() < moment:
            seen = run.bell.count
            if self._has_news() or (yield from self.commit(WAIT_BEGIN)):
                raise self._cancelled(place)
            yield Pause(seen, moment)

    def _begin_wait(self, ask: Ask, place: Place, wake_at: float | None, why: str) -> None:
        """Write down that this strand waits; the run waits when all its strands do."""
        run, now = self._run, self._run.clock()
        kind, name, args = what_is_asked(ask, run.name_of)
        self.write(
            lambda tx: tx.begin_step(
                place,
                kind=kind,
                name=name,
                key=f"{run.run_id}:{place.branch}{place.seq}:{name}",
                args=args,
                now=now,
                state=StepState.WAITING,
                wake_at=wake_at,
            )
        )
        self._wait_for(why, wake_at)

    def _wait_for(self, why: str, wake_at: float | None) -> None:
        run, now = self._run, self._run.clock()
        run.waiting += 1
        if run.waiting >= run.strands:
            self.write(lambda tx: tx.set_run_state(run.run_id, RunState.WAITING, now, waiting_for=why, wake_at=wake_at))

    def _end_wait(self, write: Write) -> None:
        run, now = self._run, self._run.clock()
        if run.waiting >= run.strands:
            self.write(lambda tx: tx.set_run_state(run.run_id, RunState.RUNNING, now))
        run.waiting -= 1
        self.write(write)

    def _sleep(self, ask: Sleep, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        if record is not None and record.state.is_settled:
            return self._answer(record)
        wake_at = run.clock() + ask.seconds
        if record is None:
            self._begin_wait(ask, place, wake_at, "a moment")
        else:
            wake_at = record.wake_at or wake_at
            self._wait_for("a moment", wake_at)
        try:
            if (yield from self.commit(WAIT_BEGIN)):
                raise self._cancelled(place)
            yield from self._until(wake_at, place)
        except RunCancelledError:
            self._end_wait(lambda _: None)
            raise
        now = run.clock()
        self._end_wait(lambda tx: tx.settle_step(place, StepState.DONE, now, result="null"))
        return None

    def _wait(self, ask: Wait, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        if record is not None and record.state.is_settled:
            return self._answer(record)
        wake_at = None if ask.timeout is None else run.clock() + ask.timeout
        if record is None:
            self._begin_wait(ask, place, wake_at, f"signal {ask.signal!r}")
        else:
            wake_at = record.wake_at
            self._wait_for(f"signal {ask.signal!r}", wake_at)
        point = WAIT_BEGIN
        while True:
            seen = run.bell.count
            taken: list[str] = []
            self.write(partial(self._take, ask=ask, place=place, taken=taken))
            is_cancelled = yield from self.commit(point)
            point = SIGNAL_TAKE
            if taken:
                self._end_wait(lambda _: None)
                return read(taken[0])
            if is_cancelled:
                self._end_wait(lambda _: None)
                raise self._cancelled(place)
            if wake_at is not None and run.clock() >= wake_at:
                return self._give_up_waiting(ask, place)
            yield Pause(seen, wake_at)

    def _take(self, tx: Transaction, ask: Wait, place: Place, taken: list[str]) -> None:
        payload = tx.take_signal(place.run_id, ask.signal, str(place))
        taken.clear()
        if payload is not None:
            taken.append(payload)
            tx.settle_step(place, StepState.DONE, self._run.clock(), result=payload)

    def _give_up_waiting(self, ask: Wait, place: Place) -> object:
        now = self._run.clock()
        late = TimeoutError(f"Nobody sent the signal {ask.signal!r} within {ask.timeout:g} s.")
        error = describe(late, "timeout")
        text = json.dumps(error)
        self._end_wait(lambda tx: tx.settle_step(place, StepState.FAILED, now, error=text))
        raise WaitTimeoutError(ask.signal, str(place), error)

    # Other runs

    def _start(self, ask: Start, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        if record is not None and record.state.is_settled:
            answer = self._answer(record)
            yield Launch(str(answer))
            return answer
        child = ask.run_id or f"{run.run_id}.{place}"
        kind, name, args = what_is_asked(ask, run.name_of)
        given, _ = keep(list(ask.args), f"arguments of run {child!r}")
        now = run.clock()

        def work(tx: Transaction) -> None:
            tx.add_run(child, name, given, now, label=ask.label, parent=run.run_id)
            tx.begin_step(place, kind=kind, name=name, key=child, args=args, now=now)
            tx.settle_step(place, StepState.DONE, now, result=json.dumps(child))

        self.write(work)
        yield from self.commit(CHILD_START)
        yield Launch(child)
        return child

    def _join(self, ask: Join, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        if record is not None and record.state.is_settled:
            return self._answer(record)
        if record is None:
            self._begin_wait(ask, place, None, f"run {ask.run_id!r}")
        else:
            self._wait_for(f"run {ask.run_id!r}", None)
        yield Listen(f"run:{ask.run_id}")
        while True:
            seen = run.bell.count
            over: list[tuple[str, str]] = []
            self.write(partial(self._look, ask=ask, place=place, over=over))
            is_cancelled = yield from self.commit(WAIT_BEGIN)
            if over:
                self._end_wait(lambda _: None)
                ended, text = over[0]
                if ended == "done":
                    return read(text)
                raise StepFailedError(ask.run_id, str(place), read(text))
            if is_cancelled:
                self._end_wait(lambda _: None)
                raise self._cancelled(place)
            yield Pause(seen, run.clock() + _LOOK_AGAIN)

    def _look(self, tx: Transaction, ask: Join, place: Place, over: list[tuple[str, str]]) -> None:
        over.clear()
        ended = tx.ending_of(ask.run_id)
        if ended is None:
            if tx.state_of(ask.run_id) is not None:
                return
            unknown = {"type": "UnknownRunError", "message": f"There is no run {ask.run_id!r} to wait for."}
            ended = RunState.FAILED, None, json.dumps(unknown)
        state, result, error = ended
        if state is RunState.COMPLETED:
            tx.settle_step(place, StepState.DONE, self._run.clock(), result=result)
            over.append(("done", result or "null"))
            return
        text = json.dumps({**(read(error) or {}), "outcome": "child", "run": ask.run_id, "state": state.value})
        tx.settle_step(place, StepState.FAILED, self._run.clock(), error=text)
        over.append(("failed", text))

    # Several at once

    def _together(self, ask: Together, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        run = self._run
        kind, name, args = what_is_asked(ask, run.name_of)
        now = run.clock()
        if record is None:
            self.write(
                lambda tx: tx.begin_step(place, kind=kind, name=name, key=f"{run.run_id}:{place}", args=args, now=now)
            )
            if (yield from self.commit(STEP_BEGIN)):
                raise self._cancelled(place)
        elif record.state is StepState.CANCELLED:
            return self._answer(record)
        branches = [
            Strand(run, f"{self._branch}{place.seq}.{index}/", is_told=self._is_told)
            for index in range(len(ask.branches))
        ]
        run.strands += len(branches) - 1
        try:
            outcomes: list[object] = yield Fan(
                tuple(strand.branch(one) for strand, one in zip(branches, ask.branches, strict=True)), ask.limit
            )
        finally:
            run.strands += 1
        failures = [outcome.error for outcome in outcomes if isinstance(outcome, DecisionRaisedError)]
        ended = run.clock()
        if record is None or not record.state.is_settled:
            state = StepState.FAILED if failures else StepState.DONE
            self.write(lambda tx: tx.settle_step(place, state, ended, result=None if failures else "null"))
        if failures:
            first = _first(failures)
            self._is_told = self._is_told or isinstance(first, RunCancelledError)
            raise _ThrownError from first
        return outcomes

    def branch(self, one: Ask | Generator[Ask, Any, object]) -> Acts:
        """Play one branch to its end; the answer is what it returned, or a DecisionRaisedError as a value."""
        decision = one if isinstance(one, Generator) else _alone(one)
        value: object
        try:
            value = yield from self.play(decision)
        except DecisionRaisedError as raised:
            value = raised
        finally:
            _close(decision)
        yield from self._end_branch()
        return value

    def _end_branch(self) -> Generator[Act, Any, None]:
        run, now = self._run, self._run.clock()
        run.strands -= 1
        if 0 < run.strands <= run.waiting:
            self.write(lambda tx: tx.set_run_state(run.run_id, RunState.WAITING, now, waiting_for="its other branches"))
        if self._pending:
            yield from self.commit(BRANCH_END)

    def _append(self, ask: Append, place: Place, record: StepRecord | None) -> Generator[Act, Any, object]:
        if record is not None:
            return None
        yield from ()
        _, name, args = what_is_asked(ask, self._run.name_of)
        now = self._run.clock()

        def work(tx: Transaction) -> None:
            tx.append_event(ask.stream, ask.kind, ask.payload, now)
            tx.begin_step(place, kind="append", name=name, key=f"{place.run_id}:{place}", args=args, now=now)
            tx.settle_step(place, StepState.DONE, now, result="null")

        self.write(work)
        return None


_DEAF = Cancellation()  # for the steps of a strand that knows already
_LOOK_AGAIN = 1.0  # seconds after which somebody who waits for another run looks at it without being told

_PERFORM: dict[type, Callable[..., Generator[Act, Any, object]]] = {
    Step: Strand._step,
    Sleep: Strand._sleep,
    Wait: Strand._wait,
    Start: Strand._start,
    Join: Strand._join,
    Together: Strand._together,
    Append: Strand._append,
}


def _append(tx: Transaction, stream: str, kind: str, payload: object, now: float) -> None:
    tx.append_event(stream, kind, payload, now)


def _alone(ask: Ask) -> Generator[Ask, Any, object]:
    return (yield ask)


def _is_worth_another(step: Step, outcome: Outcome, error: BaseException, failed: int) -> bool:
    if failed >= step.retry.attempts or outcome.ended in {"lost", "refused"}:
        return False
    return step.retry.covers(error)


def _first(failures: list[Exception]) -> Exception:
    """The first failure; a cancellation of the run before anything else."""
    first, *others = sorted(failures, key=lambda failure: not isinstance(failure, RunCancelledError))
    for other in others:
        first.add_note(f"Beside it: {other}")
    return first


def _cancelled_error(run_id: str) -> RunCancelledError:
    return RunCancelledError(f"The run {run_id!r} was cancelled.")


def _not_an_ask(ask: object) -> MisuseError:
    hint = "`yield from` it" if isinstance(ask, Generator) else "yield a `Step`, `Sleep`, `Wait`, `Start` or `Together`"
    return MisuseError(f"The decision yielded {ask!r}, which an engine cannot perform. To have it done, {hint}.")
