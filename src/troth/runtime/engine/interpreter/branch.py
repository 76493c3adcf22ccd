"""One line of a run: the trunk, or one branch of a `Together`. It sends a decision the answers it asks for.

What a branch writes is kept until its next commit, so one commit holds the answer of the step before and the intent of
the next: after a crash it is known which step was in flight, at the price of one transaction for each step.
"""

import random
from collections.abc import Callable, Generator
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.commands import Command, Conclude, Govern, Step
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.failure import is_ctrl_c
from troth.runtime.engine.governor import Governor
from troth.runtime.engine.interpreter.effects import Commit, Effect, Encode
from troth.runtime.engine.interpreter.replay import check_same, what_is_asked
from troth.runtime.engine.interpreter.shown import note_of, shows_end
from troth.runtime.store import CommitPoint, Notifier, NotJsonError, RunState, StepRecord, StepState, Transaction
from troth.runtime.store.large_values import LARGE
from troth.runtime.store.records import BegunStep, Place

__all__ = ["Branch", "DecisionRaisedError", "Perform", "RunInProgress", "ThrownError"]

_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor
Write = Callable[[Transaction], object]
Perform = Callable[["Branch", Any, Place, StepRecord | None], Generator[Effect, Any, object]]


class DecisionRaisedError(Exception):
    """Carries what a decision raised past our own frames; never seen outside."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class ThrownError(Exception):
    """Carries what is to be thrown into a decision, whatever it is: what one of its branches raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class RunInProgress:
    """What all branches of one run share: who it is, what is recorded of it, how to reach it."""

    __slots__ = (
        "bell",
        "branches",
        "cancellation",
        "chance",
        "clock",
        "conclude",
        "earlier",
        "governor",
        "is_awaited",
        "is_finished",
        "last_seen",
        "left_behind",
        "letters",
        "look_again",
        "max_result",
        "name_of",
        "not_called",
        "recorded",
        "resource",
        "run_id",
        "token",
        "value",
        "waiting",
    )

    def __init__(
        self,
        run_id: str,
        token: str,
        *,
        clock: Callable[[], float],
        chance: random.Random,
        name_of: Callable[[Any], str],
    ) -> None:
        self.run_id = run_id
        self.resource = f"run:{run_id}"
        self.token = token
        self.clock = clock
        self.chance = chance
        self.recorded: dict[tuple[str, int], StepRecord] = {}
        self.earlier: dict[tuple[str, int], StepRecord] = {}  # as they were before their answers were taken back
        self.last_seen: float | None = None  # when the owner before us last said that it lives, if it died
        self.letters = 0  # of JSON in its arguments: what is written of the run itself is written beside them
        self.look_again = 1.0  # seconds after which somebody who waits for another run looks at it without being told
        self.not_called: tuple[str, int] | None = None  # the place of a step that was written down, and not called yet
        self.max_result: int | None = None  # letters of JSON that the result of a step may have
        self.left_behind: list[Write] = []  # what is known when the driving ends, and nobody commits any more
        self.name_of = name_of
        self.governor: Governor | None = None
        self.is_awaited = True  # by the one on whose thread it is driven, to whom `SystemExit` and Ctrl-C belong
        self.is_finished = False  # by the decision itself, before it has returned
        self.value: Any = None  # what a completed run has returned, as it is read back
        self.conclude: Conclude | None = None
        self.cancellation = Cancellation()
        self.bell = Notifier()
        self.branches = 1
        self.waiting = 0


class Branch:
    """One line of a run."""

    __slots__ = ("_letters", "_pending", "_perform", "branch", "is_told", "run")

    def __init__(self, run: RunInProgress, branch: str, perform: dict[type, Perform], *, is_told: bool = False) -> None:
        self.run = run
        self.branch = branch
        self.is_told = is_told  # of the run's cancellation: each branch once, and what it then asks for is performed
        self._perform = perform
        self._pending: list[Write] = []
        self._letters = 0  # of JSON in what is pending, as far as it may be large

    def fork(self, seq: int, index: int) -> "Branch":
        """The branch of branch `index` of a `Together` that stands at `seq`."""
        return Branch(self.run, f"{self.branch}{seq}.{index}/", self._perform, is_told=self.is_told)

    def play(self, decision: Generator[Command, Any, object]) -> Generator[Effect, Any, object]:
        """Send the decision the answers to what it asks for, until it returns."""
        run_id, branch, recorded, seq = self.run.run_id, self.branch, self.run.recorded, 0
        answer: Any = None
        failure: BaseException | None = None
        while True:
            try:
                ask = decision.send(answer) if failure is None else decision.throw(failure)
            except StopIteration as end:
                return end.value
            except Exception as error:
                raise DecisionRaisedError(error) from error
            except BaseException as error:
                if self.run.is_awaited or is_ctrl_c(error):
                    raise
                raise DecisionRaisedError(error) from error  # left where it is, it would be taken up again forever
            answer = failure = None
            if type(ask) is Govern:
                self.run.governor = ask.governor
                continue
            if type(ask) is Conclude:
                self.run.conclude = ask
                continue
            seq += 1
            perform = self._perform.get(type(ask))
            if perform is None:
                failure = _not_an_ask(ask)
                continue
            record = recorded.pop((branch, seq), None) if recorded else None
            try:
                if type(ask) is Step and not ask.recorded:
                    kept = yield Encode(ask.arguments, f"arguments of step {ask.name!r}")
                    ask = ask._replace(recorded=kept.text)
                if record is not None:
                    check_same(ask, record, self.run.name_of)
                answer = yield from perform(self, ask, _make(Place, (run_id, branch, seq)), record)
            except (StepFailedError, RunCancelledError, NotJsonError) as error:
                failure = error
            except ThrownError as thrown:
                failure = thrown.error

    def write(self, write: Write, letters: int = 0) -> None:
        """Keep `write` for this branch's next commit. `letters` is how many of JSON it writes, if they may be many."""
        self._pending.append(write)
        self._letters += letters

    @property
    def has_pending(self) -> bool:
        """Whether anything waits for a commit."""
        return bool(self._pending)

    def commit(self, point: CommitPoint) -> Commit:
        """The act that commits what is pending, if the run is still ours; send its answer to `is_cancelled`."""
        run, writes, letters = self.run, self._pending, self._letters
        self._pending, self._letters = [], 0

        def work(tx: Transaction) -> bool:
            is_requested = tx.hold_run(run.run_id, run.resource, run.token)
            for write in writes:
                write(tx)
            return is_requested

        return Commit(point, work, letters > LARGE)

    def commit_begin(self, point: CommitPoint, place: Place, step: BegunStep) -> Commit:
        """`commit` with the intent of a new step as its last write: nearly every commit of a run."""
        run, writes, letters = self.run, self._pending, self._letters + len(step.args)
        self._pending, self._letters = [], 0

        def work(tx: Transaction) -> bool:
            for write in writes:
                write(tx)
            return tx.begin_held_step(place, run.resource, run.token, step)  # refuses the writes above as well

        return _make(Commit, (point, work, letters > LARGE))

    def is_cancelled(self, is_requested: bool = False) -> bool:  # noqa: FBT001, FBT002  the answer of a commit
        """Whether the run is to be cancelled and this branch has not been told."""
        if is_requested:
            self.run.cancellation.is_asked = True
        return self.run.cancellation.is_asked and not self.is_told

    def cancelled(self, ask: Command, place: Place, attempt: int = 1, *, has_begun: bool = True) -> RunCancelledError:
        """Deliver the cancellation at `place`; the answer is what the decision is thrown."""
        self.settle(ask, place, StepState.CANCELLED, self.run.clock(), attempt=attempt)
        self.is_told = True
        return _cancelled_error(place, has_begun=has_begun)

    def settle(
        self,
        ask: Command,
        place: Place,
        state: StepState,
        now: float,
        *,
        result: str | None = None,
        attempt: int = 1,
    ) -> None:
        """Write down the answer to `ask`."""
        kind, name, _ = what_is_asked(ask, self.run.name_of)
        note, is_shown = note_of(ask), shows_end(ask)
        self.write(
            lambda tx: tx.settle_step(
                place, state, now, kind=kind, name=name, attempt=attempt, result=result, note=note, is_shown=is_shown
            )
        )

    def cancelled_unrecorded(self, place: Place) -> RunCancelledError:
        """`cancelled` at a place of which nothing is written down. A replay comes to the same: the request is kept."""
        self.is_told = True
        return _cancelled_error(place)

    def answer(self, record: StepRecord) -> object:
        """What a settled record answers: the result, or the failure thrown again."""
        if record.state is StepState.DONE:
            return record.result
        if record.state is StepState.CANCELLED:
            self.is_told = True
            # Whoever cancels a call that was made writes down that attempt too.
            raise _cancelled_error(record.place, has_begun=record.kind != "step" or bool(record.attempts))
        kind = WaitTimeoutError if record.kind == "wait" else StepFailedError
        raise kind(record.name, str(record.place), record.error or {})

    # The run waits when all its branches do

    def begin_wait(self, why: str, wake_at: float | None) -> None:
        """Write down that this branch waits."""
        run, now = self.run, self.run.clock()
        run.waiting += 1
        if run.waiting >= run.branches:
            self.write(
                lambda tx: tx.set_run_state(run.run_id, RunState.WAITING, now, waiting_for=why, wake_at=wake_at),
                run.letters,
            )

    def end_wait(self) -> None:
        """Write down that it goes on."""
        run, now = self.run, self.run.clock()
        if run.waiting >= run.branches:
            self.write(lambda tx: tx.set_run_state(run.run_id, RunState.RUNNING, now), run.letters)
        run.waiting -= 1


def _cancelled_error(place: Place, *, has_begun: bool = True) -> RunCancelledError:
    return RunCancelledError(f"The run {place.run_id!r} was cancelled.", step_place=str(place), has_begun=has_begun)


def _not_an_ask(ask: object) -> MisuseError:
    hint = "`yield from` it" if isinstance(ask, Generator) else "yield a `Step`, `Sleep`, `Wait`, `Start` or `Together`"
    return MisuseError(f"The decision yielded {ask!r}, which an engine cannot perform. To perform it, {hint}.")
