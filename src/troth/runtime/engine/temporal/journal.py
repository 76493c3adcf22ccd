"""What a run writes, as seen from inside the workflow: kept in memory, and sent to the store in order.

The interpreter writes through a `Transaction`. Here its writes become operations, plain JSON, that an activity carries
out on the real one later. What it reads that is not known here is a question: the work is left off, an activity asks
the store, and the work is done again with the answer. It is made to be done again: a store repeats it, too.
"""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from troth.runtime.engine.temporal.limits import MAX_TEXT, NotOnTemporalError, check_size, cut_error
from troth.runtime.store import Attempt, RunState, StepRecord, StepState
from troth.runtime.store.json_codec import read
from troth.runtime.store.records import BegunStep, Place

__all__ = ["Journal", "JournalTransaction", "Operation", "QuestionError"]

Operation = dict[str, Any]
"""`do` is the name of a method of `Transaction`, `place` or `run` what it is about; the rest are its arguments."""


class QuestionError(Exception):
    """Leaves the work of a commit to ask the store something; never seen outside."""

    def __init__(self, question: dict[str, Any]) -> None:
        super().__init__()
        self.question = question


class Journal:
    """What is known of one run in its workflow."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.is_cancel_requested = False
        self.steps: dict[tuple[str, int], StepRecord] = {}

    def load(self, steps: Sequence[StepRecord]) -> None:
        """Begin with what the store has."""
        self.steps.update({(step.place.branch, step.place.seq): step for step in steps})

    def ordered(self) -> list[StepRecord]:
        """The steps in the order in which they were asked for; branches after the step that opened them."""
        return [self.steps[place] for place in sorted(self.steps, key=_order)]

    def fold(self, operation: Operation) -> None:
        """Follow an operation, as far as it changes a step."""
        fold = _FOLDS.get(operation["do"])
        if fold is not None:
            place = Place(self.run_id, *operation["place"])
            key = (place.branch, place.seq)
            self.steps[key] = fold(place, self.steps.get(key), operation)


def _order(place: tuple[str, int]) -> list[int]:
    branch, seq = place
    return [int(part) for part in f"{branch}{seq}".replace("/", ".").split(".")]


def _begun(place: Place, _: StepRecord | None, operation: Operation) -> StepRecord:
    return StepRecord(
        place,
        operation["kind"],
        operation["name"],
        StepState(operation["state"]),
        operation["key"],
        1,
        operation["args"],
        operation["code"],
        operation["color"],
        None,
        None,
        operation["now"],
        None,
        operation["wake_at"],
    )


def _settled(_: Place, step: StepRecord | None, operation: Operation) -> StepRecord:
    assert step is not None
    return dataclasses.replace(
        step,
        state=StepState(operation["state"]),
        attempt=operation["attempt"],
        result=read(operation["result"], "an answer"),
        error=read(operation["error"], "an error"),
        finished_at=operation["now"],
    )


def _attempted(_: Place, step: StepRecord | None, operation: Operation) -> StepRecord:
    assert step is not None
    attempt = Attempt(
        operation["number"],
        operation["outcome"],
        read(operation["error"], "an error"),
        operation["started_at"],
        operation["now"],
        operation["next_at"],
        step.code,
    )
    state = step.state if operation["next_at"] is None else StepState.RESTING
    return dataclasses.replace(step, state=state, wake_at=operation["next_at"], attempts=(*step.attempts, attempt))


def _again(_: Place, step: StepRecord | None, operation: Operation) -> StepRecord:
    assert step is not None
    return dataclasses.replace(
        step, state=StepState.BEGUN, attempt=operation["attempt"], code=operation["code"] or step.code
    )


_FOLDS = {"begin_step": _begun, "settle_step": _settled, "add_attempt": _attempted, "begin_attempt": _again}


class JournalTransaction:
    """One commit of a run, as its interpreter sees it.

    `answers` are those to the questions of this commit so far, in order; the first `skip` operations were sent with
    them already.
    """

    def __init__(self, journal: Journal, answers: Sequence[Any], skip: int) -> None:
        self._journal = journal
        self._answers: Iterator[Any] = iter(answers)
        self._skip = skip
        self._count = 0
        self.operations: list[Operation] = []

    def _write(self, do: str, place: Place | None = None, **values: Any) -> None:
        self._count += 1
        if self._count > self._skip:
            where = {} if place is None else {"place": [place.branch, place.seq]}
            operation = {"do": do, **where, **values}
            self.operations.append(operation)
            self._journal.fold(operation)

    def _ask(self, ask: str, **values: Any) -> Any:
        try:
            return next(self._answers)
        except StopIteration:
            raise QuestionError({"ask": ask, **values}) from None

    def __getattr__(self, name: str) -> NoReturn:
        raise NotOnTemporalError(
            f"The run {self._journal.run_id!r} uses `{name}` of its store inside a commit, which cannot be kept on "
            "Temporal: a governed session decides in the commit that begins a step, and here that commit is another "
            "machine's. Run it on an engine without Temporal: `Runtime(store)`."
        )

    # Leases: whoever records proves them

    def hold_run(self, run_id: str, resource: str, token: str) -> bool:  # noqa: ARG002
        """Whether somebody asked for the run's cancellation, as far as is known here."""
        return self._journal.is_cancel_requested

    def release(self, resource: str, token: str) -> None:  # noqa: ARG002
        """Have the lease given back."""
        self._write("release")

    # The run

    def set_run_state(
        self, run_id: str, state: RunState, now: float, *, waiting_for: str | None = None, wake_at: float | None = None
    ) -> None:
        """Say that the run works or waits."""
        self._write("set_run_state", run=run_id, state=state.value, now=now, waiting_for=waiting_for, wake_at=wake_at)

    def finish_run(
        self,
        run_id: str,
        state: RunState,
        now: float,
        *,
        result: str | None = None,
        error: str | None = None,
        ending: str | None = None,
    ) -> None:
        """Close the run."""
        if error is not None and len(error) > MAX_TEXT // 2:
            error = json.dumps(cut_error(json.loads(error)))
        self._write("finish_run", run=run_id, state=state.value, now=now, result=result, error=error, ending=ending)

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of this very run."""
        assert run_id == self._journal.run_id
        return self._journal.ordered()

    # Its steps

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> bool:
        """Write down a step before its effect."""
        is_requested = self.hold_run(place.run_id, resource, token)
        name, key, args, color, code, now, is_shown = begun
        self.begin_step(
            place, kind="step", name=name, key=key, args=args, now=now, color=color, code=code, is_shown=is_shown
        )
        return is_requested

    def begin_step(
        self,
        place: Place,
        *,
        kind: str,
        name: str,
        key: str,
        args: str,
        now: float,
        state: StepState = StepState.BEGUN,
        wake_at: float | None = None,
        color: str | None = None,
        code: str | None = None,
        note: str | None = None,
        is_shown: bool = True,
    ) -> None:
        """Write down a step, or a wait."""
        self._write(
            "begin_step",
            place,
            kind=kind,
            name=name,
            key=key,
            args=args,
            now=now,
            state=state.value,
            wake_at=wake_at,
            color=color,
            code=code,
            note=note,
            is_shown=is_shown,
        )

    def settle_step(
        self,
        place: Place,
        state: StepState,
        now: float,
        *,
        kind: str,
        name: str,
        attempt: int = 1,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,
        is_shown: bool = True,
    ) -> None:
        """Write down a step's answer."""
        self._write(
            "settle_step",
            place,
            state=state.value,
            now=now,
            kind=kind,
            name=name,
            attempt=attempt,
            result=result,
            error=error,
            note=note,
            is_shown=is_shown,
        )

    def begin_attempt(
        self, place: Place, attempt: int, now: float, *, kind: str = "step", name: str, code: str | None = None
    ) -> None:
        """Write down that a step is tried once more."""
        self._write("begin_attempt", place, attempt=attempt, now=now, kind=kind, name=name, code=code)

    def add_attempt(
        self,
        place: Place,
        *,
        name: str,
        number: int,
        outcome: str,
        error: str | None,
        started_at: float | None,
        now: float,
        next_at: float | None,
        kind: str = "step",
        is_shown: bool = True,
    ) -> None:
        """Write down an attempt that did not succeed."""
        self._write(
            "add_attempt",
            place,
            name=name,
            number=number,
            outcome=outcome,
            error=error,
            started_at=started_at,
            now=now,
            next_at=next_at,
            kind=kind,
            is_shown=is_shown,
        )

    def tell_code_changed(self, place: Place, now: float, *, name: str, before: str, code: str) -> None:
        """Write down that a step's next attempt calls other code."""
        self._write("tell_code_changed", place, now=now, name=name, before=before, code=code)

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream. The number is not known yet: nobody who decides asks for it."""
        check_size(json.dumps(payload), f"event {kind!r}")
        self._write("append_event", stream=stream, kind=kind, payload=payload, now=now)
        return 0

    def append_events(self, stream: str, entries: Sequence[tuple[str, object]], now: float) -> int:
        """The same for several entries."""
        first, *_ = [self.append_event(stream, kind, payload, now) for kind, payload in entries]
        return first

    # What only the store knows

    def take_signal(self, run_id: str, name: str, taken_by: str, *, before: float | None = None) -> str | None:
        """The oldest message of that name; the store gives it to this step and to no other."""
        answer: str | None = self._ask("take_signal", run=run_id, name=name, taken_by=taken_by, before=before)
        return answer

    def ending_of(self, run_id: str) -> tuple[RunState, str | None, str | None] | None:
        """State, result and error of another run, if it is over."""
        answer = self._ask("ending_of", run=run_id)
        return None if answer is None else (RunState(answer[0]), answer[1], answer[2])

    def state_of(self, run_id: str) -> RunState | None:
        """The written state of another run."""
        answer = self._ask("state_of", run=run_id)
        return None if answer is None else RunState(answer)

    def add_run(
        self,
        run_id: str,
        decision: str,
        args: str,
        now: float,
        *,
        label: str | None = None,
        parent: str | None = None,
    ) -> bool:
        """Write down another run, and start it."""
        answer = self._ask("add_run", run=run_id, decision=decision, args=args, now=now, label=label, parent=parent)
        return bool(answer)

    def asked_of(self, run_id: str) -> tuple[str, str, RunState] | None:
        """Decision, arguments and state of another run."""
        answer = self._ask("asked_of", run=run_id)
        return None if answer is None else (answer[0], answer[1], RunState(answer[2]))
