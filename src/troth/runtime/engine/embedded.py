"""Knows how to carry out decisions in this process, with everything remembered in one store.

A run is driven where it was asked for: `run` on the caller's thread, `arun` and `astart` on the caller's loop, `start`
and everything that is taken over from a dead owner on the engine's home loop.
"""

import asyncio
import contextlib
import json
import logging
import os
import random
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from troth.errors import MisuseError
from troth.runtime.engine import lost
from troth.runtime.engine.asks import Decision
from troth.runtime.engine.conduct import conduct
from troth.runtime.engine.decisions import Decisions
from troth.runtime.engine.drive import adrive, drive
from troth.runtime.engine.driven import DrivenRun
from troth.runtime.engine.errors import (
    CannotResumeError,
    EngineClosedError,
    ResultTimeoutError,
    RunMismatchError,
    UnknownDecisionError,
    UnknownRunError,
)
from troth.runtime.engine.home import Home
from troth.runtime.engine.ownership import Ownership, new_token
from troth.runtime.engine.points import RUN_CANCEL, RUN_CLAIM, RUN_FORK, RUN_RESUME, RUN_START, SIGNAL_SEND
from troth.runtime.engine.strand import RunInProgress
from troth.runtime.engine.verdict import failure_of
from troth.runtime.engine.workers import Job, Workers
from troth.runtime.store import (
    Bell,
    LeaseLostError,
    RunRecord,
    RunState,
    SqliteStore,
    StepRecord,
    StepState,
    Transaction,
)
from troth.runtime.store.payload import keep, read
from troth.runtime.store.transaction import run_topic

__all__ = ["EmbeddedEngine"]

T = TypeVar("T")
log = logging.getLogger("troth.engine")

_TICK = 0.25  # seconds between looks for runs whose owner died, and for cancellations from other processes
_engines: "weakref.WeakSet[EmbeddedEngine]" = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A run that is ours to drive: the token says so, its decision and arguments say what."""

    run_id: str
    token: str
    decision: str
    args: tuple[Any, ...]
    is_new: bool


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that goes on by itself."""

    engine: "EmbeddedEngine"
    id: str

    def result(self, timeout: float | None = None) -> Any:
        """What the run returned, waiting for it; RunFailedError or RunCancelledError if it did not complete."""
        return self.engine.result(self.id, timeout)

    async def aresult(self, timeout: float | None = None) -> Any:
        """`result` for a task."""
        return await self.engine.aresult(self.id, timeout)


class EmbeddedEngine:
    """An engine on one SQLite file. Give it a path, or a store to share with others, which then stays open.

    `decisions` are those it goes on with when their owner has died: at once when the engine is first used or entered,
    and then all the time. `recover=False` leaves other processes' runs alone, for a program that only looks.
    """

    def __init__(
        self,
        store: SqliteStore | str | os.PathLike[str],
        *,
        decisions: Iterable[Decision] = (),
        recover: bool = True,
        threads: int = 32,
        abandoned_threads: int = 16,
        chance: random.Random | None = None,
    ) -> None:
        self._decisions = Decisions(decisions)
        self._owns_store = not isinstance(store, SqliteStore)
        self.store = store if isinstance(store, SqliteStore) else SqliteStore(store)
        self.workers = Workers(threads, abandoned_threads)
        self._recover = recover
        self._chance = chance or random.Random()  # noqa: S311  for jitter
        self._ownership = Ownership(self.store)
        self._home = Home()
        self._driven: dict[str, DrivenRun] = {}
        self._refused: dict[str, Exception] = {}
        self._stop_ticking: Callable[[], None] | None = None
        self._is_closed = False
        lost.start_watching()
        _engines.add(self)

    # Decisions

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known, so that its runs can go on after a restart."""
        return self._decisions.register(decision, name)

    # Carrying out

    def run(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """Carry out a run to its end, on this thread, and return its result.

        Works wherever sync code works, also inside a running loop, which it then blocks: `arun` does not. If the id
        belongs to a run that is over, its result is returned; to one that was interrupted, it goes on here; to one
        that somebody else carries out, that one is waited for.
        """
        self._open()
        this_id, opening = self._opening(decision, args, run_id, label)
        claimed = self.store.commit(RUN_START, opening)
        if claimed is not None:
            self._drive(claimed)
        return self.result(this_id)

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` in this task, without blocking its loop: sync steps run in worker threads.

        Cancelling the task interrupts the run: the step in flight is cancelled, the run is "interrupted", and goes on
        when it is asked for again. `cancel` is the way to end it for good.
        """
        self._open()
        this_id, opening = self._opening(decision, args, run_id, label)
        claimed = await self.store.acommit(RUN_START, opening)
        if claimed is not None:
            await self._adrive(claimed)
        return await self.aresult(this_id)

    def start(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> RunHandle:
        """Begin a run on the engine's home loop and return. It is written down before this returns."""
        self._open()
        this_id, opening = self._opening(decision, args, run_id, label)
        claimed = self.store.commit(RUN_START, opening)
        if claimed is not None:
            self._home.settle(self._pursue(claimed), f"run {this_id!r}")
        return RunHandle(self, this_id)

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> RunHandle:
        """`start`, but the run goes on on the caller's loop, and is interrupted when that loop ends."""
        self._open()
        this_id, opening = self._opening(decision, args, run_id, label)
        claimed = await self.store.acommit(RUN_START, opening)
        if claimed is not None:
            self._home.settle_here(self._pursue(claimed), f"run {this_id!r}")
        return RunHandle(self, this_id)

    def _opening(
        self, decision: Decision | str, args: tuple[object, ...], run_id: str | None, label: str | None
    ) -> tuple[str, Callable[[Transaction], _Claimed | None]]:
        """What has to be written to begin a run, or to find that there is nothing to begin."""
        name = self._decisions.name_of(decision)
        run_id = run_id or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(self.store.clock()))}-{uuid.uuid4().hex[:8]}"
        text, given = keep(list(args), f"arguments of run {run_id!r}")
        owner, token = self._ownership.owner(), new_token()

        def work(tx: Transaction) -> _Claimed | None:
            now = self.store.clock()
            is_new = tx.add_run(run_id, name, text, now, label=label)
            if not is_new and not _can_go_on(tx, run_id, name, text):
                return None
            holder = tx.claim(run_topic(run_id), owner.id, token, now)
            return None if holder is not None else _Claimed(run_id, token, name, tuple(given), is_new)

        return run_id, work

    def _claiming(self, run_id: str) -> Callable[[Transaction], _Claimed | None]:
        """What has to be written to go on with a run that nobody living holds."""
        owner, token = self._ownership.owner(), new_token()

        def work(tx: Transaction) -> _Claimed | None:
            asked = tx.asked_of(run_id)
            if asked is None:
                raise _unknown(run_id)
            name, args, state = asked
            self._decisions.find(name)
            if state.is_over or tx.claim(run_topic(run_id), owner.id, token, self.store.clock()) is not None:
                return None
            return _Claimed(run_id, token, name, tuple(read(args)), is_new=False)

        return work

    @contextlib.contextmanager
    def _driving(self, claimed: _Claimed) -> Iterator[DrivenRun]:
        steps = () if claimed.is_new else self.store.steps(claimed.run_id)
        run = RunInProgress(
            claimed.run_id,
            claimed.token,
            clock=self.store.clock,
            chance=self._chance,
            recorded={(step.place.branch, step.place.seq): step for step in steps},
            name_of=self._decisions.name_of,
        )
        driven = DrivenRun(self.store, self.workers, run, self._launch, lambda: len(self._driven))
        driven.listen(run_topic(claimed.run_id))
        self._driven[claimed.run_id] = driven
        try:
            yield driven
        finally:
            self._driven.pop(claimed.run_id, None)
            driven.close()

    def _drive(self, claimed: _Claimed) -> None:
        with self._driving(claimed) as driven:
            try:
                decision = self._decisions.begin(claimed.decision, claimed.args)
                drive(conduct(driven.run, decision), driven)
            except BaseException as error:
                self._let_go(claimed, error)
                raise

    def _let_go(self, claimed: _Claimed, error: BaseException) -> None:
        if not isinstance(error, LeaseLostError) and not self._is_closed:
            self._ownership.release(run_topic(claimed.run_id), claimed.token)

    async def _adrive(self, claimed: _Claimed) -> None:
        with self._driving(claimed) as driven:
            try:
                decision = self._decisions.begin(claimed.decision, claimed.args)
                await adrive(conduct(driven.run, decision), driven)
            except BaseException as error:
                if not isinstance(error, LeaseLostError) and not self._is_closed:
                    release = self._ownership.arelease(run_topic(claimed.run_id), claimed.token)
                    await asyncio.shield(asyncio.ensure_future(release))
                raise

    # Runs that nobody waits for

    def _launch(self, run_id: str) -> None:
        """Go on with a run on the home loop, unless somebody does already. From any thread, without waiting."""
        if run_id not in self._driven and run_id not in self._refused and not self._is_closed:
            self._home.settle(self._take_over(run_id), f"run {run_id!r}")

    async def _take_over(self, run_id: str) -> None:
        try:
            claimed = await self.store.acommit(RUN_CLAIM, self._claiming(run_id))
        except UnknownDecisionError as error:
            self._refuse(run_id, error)
            return
        if claimed is not None:
            await self._pursue(claimed)

    async def _pursue(self, claimed: _Claimed) -> None:
        """Drive a run that nobody awaits: what goes wrong with the driving itself is kept for those who ask."""
        try:
            await self._adrive(claimed)
        except LeaseLostError as error:
            log.warning("Run %r went to another owner: %s", claimed.run_id, error)
        except MisuseError as error:
            self._refuse(claimed.run_id, error)
        except EngineClosedError:
            log.debug("Run %r is interrupted: the engine was closed.", claimed.run_id)

    def _refuse(self, run_id: str, error: Exception) -> None:
        self._refused[run_id] = error
        log.error("Run %r cannot go on here: %s", run_id, error)

    def _open(self) -> None:
        """Begin to beat and to look after orphans; does nothing the second time."""
        if self._stop_ticking is None:
            if self._is_closed:
                raise EngineClosedError("The engine is closed. Nothing was started; open a new one.")
            self._ownership.owner()
            self._stop_ticking = self.store.chore(_TICK, self._tick)
            if self._recover:
                self._look_after_orphans()

    def _tick(self) -> None:
        if self._is_closed:
            return
        self._ownership.beat()
        if self._driven:
            for run_id in self.store.cancelling():
                driven = self._driven.get(run_id)
                if driven is not None:
                    driven.run.cancellation.ask()
        if self._recover:
            self._look_after_orphans()

    def _look_after_orphans(self) -> None:
        names = self._decisions.names
        if names:
            for run_id, _ in self.store.orphans(names):
                self._launch(run_id)

    # Waiting for

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result; go on with it if its owner dies."""
        deadline = None if timeout is None else time.monotonic() + timeout
        is_over, value = self._look(run_id)
        if is_over:
            return value
        bell = Bell()
        with self.store.listening(bell, run_topic(run_id)):
            while True:
                seen = bell.count
                is_over, value = self._look(run_id)
                if is_over:
                    return value
                bell.wait(seen, _patience(run_id, deadline, timeout))

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task. Cancelling it only ends the waiting."""
        deadline = None if timeout is None else time.monotonic() + timeout
        is_over, value = self._look(run_id)
        if is_over:
            return value
        bell = Bell()
        with self.store.listening(bell, run_topic(run_id)):
            while True:
                seen = bell.count
                is_over, value = self._look(run_id)
                if is_over:
                    return value
                await bell.await_ring(seen, _patience(run_id, deadline, timeout))

    def _look(self, run_id: str) -> tuple[bool, Any]:
        """Whether a run is over, and its result; raises if it did not complete or cannot go on."""
        run = self.store.run(run_id)
        if run is None:
            raise _unknown(run_id)
        if run.state is RunState.COMPLETED:
            return True, run.result
        if run.state.is_over:
            raise failure_of(run, self.store.steps(run_id))
        if run_id in self._refused:
            raise self._refused[run_id]
        if self._is_closed:
            raise EngineClosedError(f"The engine was closed while somebody waited for run {run_id!r}. The run is kept.")
        is_orphan = run.state is RunState.INTERRUPTED or self.store.holder(run_topic(run_id)) is None
        if is_orphan and run.decision in self._decisions.names:
            self._open()
            self._launch(run_id)
        return False, None

    # Telling

    def signal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """Send a run a message, durably. Answers whether it is new; `key` makes a second sending harmless."""
        return self.store.commit(SIGNAL_SEND, self._sending(run_id, name, payload, key))

    async def asignal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """`signal` for a task."""
        return await self.store.acommit(SIGNAL_SEND, self._sending(run_id, name, payload, key))

    def _sending(self, run_id: str, name: str, payload: object, key: str | None) -> Callable[[Transaction], bool]:
        text, _ = keep(payload, f"signal {name!r}")

        def work(tx: Transaction) -> bool:
            state = tx.state_of(run_id)
            if state is None:
                raise _unknown(run_id)
            if state.is_over:
                raise MisuseError(
                    f"The signal {name!r} was not sent: run {run_id!r} is {state.value}, so nobody would receive it."
                )
            return tx.send_signal(run_id, name, text, self.store.clock(), key=key)

        return work

    def cancel(self, run_id: str) -> bool:
        """Ask for a run's cancellation, durably. Answers whether there was anything left to cancel.

        An async step in flight is cancelled at once (from another process: within a tick), a sync one is let finish.
        The decision is thrown a RunCancelledError where it stands, and may clean up with more steps.
        """
        is_new = self.store.commit(RUN_CANCEL, self._cancelling(run_id))
        self._reach(run_id)
        return is_new

    async def acancel(self, run_id: str) -> bool:
        """`cancel` for a task."""
        is_new = await self.store.acommit(RUN_CANCEL, self._cancelling(run_id))
        self._reach(run_id)
        return is_new

    def _cancelling(self, run_id: str) -> Callable[[Transaction], bool]:
        def work(tx: Transaction) -> bool:
            if tx.state_of(run_id) is None:
                raise _unknown(run_id)
            return tx.request_cancel(run_id, self.store.clock())

        return work

    def _reach(self, run_id: str) -> None:
        driven = self._driven.get(run_id)
        if driven is not None:
            driven.run.cancellation.ask()

    # Going on, and going another way

    def resume(self, run_id: str) -> Any:
        """Go on with a run that failed, was cancelled or interrupted, from where it stopped; return its result."""
        self._open()
        self._refused.pop(run_id, None)
        claimed = self.store.commit(RUN_RESUME, self._resuming(run_id))
        if claimed is not None:
            self._drive(claimed)
        return self.result(run_id)

    async def aresume(self, run_id: str) -> Any:
        """`resume` in this task."""
        self._open()
        self._refused.pop(run_id, None)
        claimed = await self.store.acommit(RUN_RESUME, self._resuming(run_id))
        if claimed is not None:
            await self._adrive(claimed)
        return await self.aresult(run_id)

    def _resuming(self, run_id: str) -> Callable[[Transaction], _Claimed | None]:
        run = self.store.run(run_id)
        if run is None:
            raise _unknown(run_id)
        self._decisions.find(run.decision)
        again = [] if not run.state.is_over else _to_ask_again(run, self.store.steps(run_id))
        claiming = self._claiming(run_id)

        def work(tx: Transaction) -> _Claimed | None:
            if tx.state_of(run_id) in {RunState.FAILED, RunState.CANCELLED}:
                for step in again:
                    tx.forget_step(step.place)
                tx.reopen_run(run_id, self.store.clock())
            return claiming(tx)

        return work

    def fork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """Begin a new run that has the answers of another one up to, not including, the trunk step `before`.

        `before` is a step's number, or its name where only one trunk step has it. The other run stays as it is.
        """
        self._open()
        new_id, work = self._forking(run_id, before, fork_id)
        claimed = self.store.commit(RUN_FORK, work)
        self._home.settle(self._pursue(claimed), f"run {new_id!r}")
        return RunHandle(self, new_id)

    async def afork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """`fork`, but the new run goes on on the caller's loop."""
        self._open()
        new_id, work = self._forking(run_id, before, fork_id)
        claimed = await self.store.acommit(RUN_FORK, work)
        self._home.settle_here(self._pursue(claimed), f"run {new_id!r}")
        return RunHandle(self, new_id)

    def _forking(
        self, run_id: str, before: int | str, fork_id: str | None
    ) -> tuple[str, Callable[[Transaction], _Claimed]]:
        run = self.store.run(run_id)
        if run is None:
            raise _unknown(run_id)
        self._decisions.find(run.decision)
        seq = _trunk_step(run_id, self.store.steps(run_id, with_attempts=False), before)
        fork_id = fork_id or f"{run_id}-fork-{uuid.uuid4().hex[:6]}"
        owner, token = self._ownership.owner(), new_token()

        def work(tx: Transaction) -> _Claimed:
            now = self.store.clock()
            args = json.dumps(run.args)
            if not tx.add_run(fork_id, run.decision, args, now, label=run.label, code=run.code, forked_from=run_id):
                raise RunMismatchError(f"The run {fork_id!r} exists already, so run {run_id!r} was not forked to it.")
            tx.copy_steps(run_id, fork_id, seq)
            tx.claim(run_topic(fork_id), owner.id, token, now)
            return _Claimed(fork_id, token, run.decision, run.args, is_new=False)

        return fork_id, work

    # Looking

    def find(self, run_id: str) -> RunRecord | None:
        """A run as it is now."""
        return self.store.run(run_id)

    async def afind(self, run_id: str) -> RunRecord | None:
        """`find` for a task."""
        return await self._beside(lambda: self.find(run_id))

    def list(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
        return self.store.runs(states=states, decision=decision, label=label, before=before, limit=limit)

    async def alist(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """`list` for a task."""
        return await self._beside(
            lambda: self.list(states=states, decision=decision, label=label, before=before, limit=limit)
        )

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """What a run has asked for, in order, with every failed attempt."""
        return self.store.steps(run_id)

    async def asteps(self, run_id: str) -> Sequence[StepRecord]:
        """`steps` for a task."""
        return await self._beside(lambda: self.steps(run_id))

    async def _beside(self, look: Callable[[], T]) -> T:
        """Read in a thread: a long list takes longer than a loop should wait."""
        job = self.workers.submit(Job("a look at the store", look))
        await job.await_done(None)
        if job.error is not None:
            raise job.error
        answer: T = job.value
        return answer

    # The end

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of everything. May be called twice."""
        if self._begin_close():
            self._home.close()
            self._end_close()

    async def aclose(self) -> None:
        """`close` for a task: waits for the runs on this loop to let go."""
        if self._begin_close():
            await self._home.aclose()
            self._end_close()

    def _begin_close(self) -> bool:
        if self._is_closed:
            return False
        self._is_closed = True
        if self._stop_ticking is not None:
            self._stop_ticking()
        return True

    def _end_close(self) -> None:
        self._ownership.close()
        stuck = self.workers.close()
        if stuck:
            log.warning("The engine was closed while %d threads were stuck in: %s", len(stuck), ", ".join(stuck))
        if self._owns_store:
            self.store.close()
        lost.stop_watching()
        _engines.discard(self)

    def _after_fork(self) -> None:
        self._ownership.after_fork()
        self._home.after_fork()
        self._driven = {}
        self._stop_ticking = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._beside(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _unknown(run_id: str) -> UnknownRunError:
    return UnknownRunError(f"There is no run {run_id!r} in this store. `engine.list()` shows those that there are.")


def _can_go_on(tx: Transaction, run_id: str, decision: str, args: str) -> bool:
    """Whether the run of that id is the one that is meant, and not over."""
    asked = tx.asked_of(run_id)
    if asked is None:
        raise _unknown(run_id)
    their_decision, their_args, state = asked
    if (their_decision, their_args) != (decision, args):
        raise RunMismatchError(
            f"The id {run_id!r} belongs to a run of `{their_decision}` with {their_args}; this one is of `{decision}` "
            f"with {args}.\nNothing was started. Leave the id out to get a new one, or name another."
        )
    return not state.is_over


def _patience(run_id: str, deadline: float | None, timeout: float | None) -> float:
    if deadline is None:
        return _TICK
    left = deadline - time.monotonic()
    if left <= 0:
        raise ResultTimeoutError(f"Run {run_id!r} was not over after {timeout:g} s. It goes on; ask again.")
    return min(left, _TICK)


def _trunk_step(run_id: str, steps: Sequence[StepRecord], before: int | str) -> int:
    trunk = [step for step in steps if not step.place.branch]
    found = [step.place.seq for step in trunk if before in {step.name, step.place.seq}]
    if len(found) == 1:
        return found[0]
    asked = ", ".join(f"{step.place.seq} {step.name}" for step in trunk) or "none"
    why = "is not one of its steps" if not found else "is the name of several of its steps; give a number"
    raise MisuseError(f"Run {run_id!r} was not forked: {before!r} {why}. Its steps: {asked}.")


def _to_ask_again(run: RunRecord, steps: Sequence[StepRecord]) -> "list[StepRecord]":
    """The steps whose recorded answer ended the run: taken back, so that the decision asks anew."""
    failed = [step for step in steps if step.state in {StepState.FAILED, StepState.CANCELLED}]
    if not failed:
        return []
    first = failed[0].place
    later = [
        step
        for step in steps
        if step.state is StepState.DONE
        and step.kind == "step"
        and not step.place.branch
        and step.place.seq > _trunk(first)
    ]
    if later:
        raise CannotResumeError(
            f"Run {run.id!r} cannot go on from step {first}, where it stopped: after that, its decision did "
            f"{', '.join(repr(step.name) for step in later)}, which would be repeated.\n"
            f"It was left as it is. `engine.fork({run.id!r}, {_trunk(first)})` begins a new run from there."
        )
    return failed


def _trunk(place: Any) -> int:
    return int(place.branch.split(".")[0]) if place.branch else int(place.seq)


def _forked() -> None:
    for engine in list(_engines):
        engine._after_fork()


os.register_at_fork(after_in_child=_forked)
