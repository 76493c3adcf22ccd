"""The embedded engine: decisions carried out in this process, with everything remembered in one store.

A run is driven where it was asked for: `run` on the caller's thread, `arun` and `astart` on the caller's loop, `start`
and everything that is taken over from a dead owner on the engine's home loop. The verbs stand here; `claims` knows how
a run becomes ours, `lease_driver` how it is driven, `await_result` how it is waited for, `supervisor` what happens by
itself.
"""

import logging
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from troth.runtime.arguments import check_path
from troth.runtime.engine.await_result import ResultWaiter
from troth.runtime.engine.commands import Decision
from troth.runtime.engine.commit_points import (
    RUN_CANCEL,
    RUN_FORK,
    RUN_RESUME,
    RUN_START,
    SIGNAL_SEND,
)
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.embedded.claims import Claim, Claims
from troth.runtime.engine.embedded.lease_driver import LeaseDriver
from troth.runtime.engine.embedded.ownership import Ownership
from troth.runtime.engine.embedded.supervisor import Supervisor
from troth.runtime.engine.invoke import lost_coroutines
from troth.runtime.engine.invoke.worker_pool import GRACE, MAX_RESULT, WorkerPool
from troth.runtime.engine.read_pool import ReadPool
from troth.runtime.engine.recorded_runs import RecordedRuns, signal_text
from troth.runtime.store import (
    CommitPoint,
    RunState,
    Store,
    Transaction,
    open_store,
)
from troth.runtime.store.large_values import is_large
from troth.runtime.store.open import is_store

__all__ = ["EmbeddedEngine"]

log = logging.getLogger("troth.engine")

_PATIENCE = 10.0  # seconds that a second `close` waits for the first one
_engines: "weakref.WeakSet[EmbeddedEngine]" = weakref.WeakSet()


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


class EmbeddedEngine(RecordedRuns):
    """An engine on one store. Give it a path or an address, or a store to share with others, which then stays open.

    `decisions` are those it goes on with when their owner has died: at once when the engine is first used or entered,
    and then all the time. `recover=False` leaves other processes' runs alone, for a program that only looks. An async
    step whose time is up, or whose run is interrupted, is cancelled and then has `grace` seconds for its `finally`
    blocks; one that is not over then is left behind. The result of a step may have `max_result` characters of JSON.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str],
        *,
        decisions: Iterable[Decision] = (),
        recover: bool = True,
        threads: int = 32,
        abandoned_threads: int = 16,
        grace: float = GRACE,
        max_result: int | None = MAX_RESULT,
        chance: random.Random | None = None,
    ) -> None:
        self._decisions = DecisionRegistry(decisions)
        if not is_store(store):
            check_path("store", store)
        self._owns_store = isinstance(store, str | os.PathLike)
        super().__init__(open_store(store) if isinstance(store, str | os.PathLike) else store, ReadPool())
        self.workers = WorkerPool(threads, abandoned_threads, grace=grace, max_result=max_result)
        self._ownership = Ownership(self.store)
        self._claims = Claims(self.store, self._ownership, self._decisions)
        self._supervisor = Supervisor(
            self.store, self._ownership, self._decisions, self._claims, lambda: self._driver, recover=recover
        )
        self._driver = LeaseDriver(
            self.store,
            self.workers,
            self._read_pool,
            self._ownership,
            self._decisions,
            chance or random.Random(),  # noqa: S311  for jitter
            self._supervisor.launch,
        )
        self._waiter = ResultWaiter(self.store, self._supervisor.look_after, self._supervisor.refuse_if_closed)
        self._has_let_go = threading.Event()
        lost_coroutines.start_watching()
        _engines.add(self)

    def open(self) -> None:
        """Begin to look after runs; does nothing the second time."""
        self._supervisor.open()

    # Decisions

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known, so that its runs can go on after a restart."""
        return self._decisions.register(decision, name)

    def decisions(self) -> Sequence[str]:
        """The names of the decisions that it knows."""
        return self._decisions.names

    # Carrying out

    def run(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> Any:
        """Carry out a run to its end, on this thread, and return its result.

        Works wherever sync code works, also inside a running loop, which it then blocks: `arun` does not. If the id
        belongs to a run that is over, its result is returned; to one that was interrupted, it goes on here; to one
        that somebody else carries out, that one is waited for. Ctrl-C interrupts the run as cancelling does `arun`.
        `promise` writes more in the commit that writes down the run, which has to be new then.
        """
        self._supervisor.open()
        return self._carry_out(RUN_START, self._claims.to_open(decision, args, run_id, label, promise))

    def commits_to(self, store: object) -> bool:
        """Whether that is the store it commits to."""
        return store is self.store

    def run_short(
        self, begin_point: CommitPoint, decision: Decision | str, /, *args: object, run_id: str | None = None
    ) -> Any:
        """`run` with one commit less, for a run of one short step: it is written down together with that step.

        `begin_point` is the point of that commit.
        """
        self._supervisor.open()
        return self._carry_out(RUN_START, self._claims.to_open(decision, args, run_id, None), begin_point)

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` in this task, without blocking its loop: sync steps run in worker threads.

        Cancelling the task interrupts the run: the step in flight is cancelled, the run is "interrupted", and goes on
        when it is asked for again. Wherever the cancellation comes, nobody is left holding the run. `cancel` is the
        way to end it for good.
        """
        await self._aopen()
        return await self._acarry_out(RUN_START, await self._ato_open(decision, args, run_id, label))

    def start(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> RunHandle:
        """Begin a run on the engine's home loop and return. It is written down before this returns.

        `promise` writes what is promised of the run, in the commit that writes down the run itself.
        """
        self._supervisor.open()
        return self._begin(RUN_START, self._claims.to_open(decision, args, run_id, label, promise))

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> RunHandle:
        """`start`, but the run goes on on the caller's loop, and is interrupted when that loop ends.

        Cancelled while the start is being written, the run may have been begun all the same; it is then interrupted.
        """
        await self._aopen()
        return await self._abegin(RUN_START, await self._ato_open(decision, args, run_id, label))

    async def _ato_open(
        self, decision: Decision | str, args: tuple[object, ...], run_id: str | None, label: str | None
    ) -> Claim:
        """A claim for a run whose arguments may be large: then they are made JSON of beside the loop."""
        if not is_large(args):
            return self._claims.to_open(decision, args, run_id, label)
        return await self._read_pool.beside(lambda: self._claims.to_open(decision, args, run_id, label))

    async def _aopen(self) -> None:
        """Open beside the loop: to enroll is a commit, and with FULL that is a wait for the disk."""
        if not self._supervisor.is_open:
            await self._read_pool.beside(self._supervisor.open)

    def _carry_out(self, point: CommitPoint, claim: Claim, begin_point: CommitPoint | None = None) -> Any:
        """Drive a run to its end here; wait for it if somebody else does. The answer is its result."""
        with self._supervisor.in_foreground(claim.run_id):
            ended = None if begin_point is None else self._driver.drive_new(begin_point, claim)
            if ended is None:
                claimed = self._driver.take(point, claim)
                ended = None if claimed is None else self._driver.drive(claim, claimed)
            if ended is not None and ended[0] is RunState.COMPLETED:
                return ended[1]
        return self.result(claim.run_id)

    async def _acarry_out(self, point: CommitPoint, claim: Claim) -> Any:
        with self._supervisor.in_foreground(claim.run_id):
            claimed = await self._driver.atake(point, claim)
            if claimed is not None:
                state, value = await self._driver.adrive(claim, claimed)
                if state is RunState.COMPLETED:
                    return value
        return await self.aresult(claim.run_id)

    def _begin(self, point: CommitPoint, claim: Claim) -> RunHandle:
        claimed = self._driver.take(point, claim)
        if claimed is not None:
            self._supervisor.pursue(claim, claimed)
        return RunHandle(self, claim.run_id)

    async def _abegin(self, point: CommitPoint, claim: Claim) -> RunHandle:
        claimed = await self._driver.atake(point, claim)
        if claimed is not None:
            self._supervisor.pursue_here(claim, claimed)
        return RunHandle(self, claim.run_id)

    # Waiting for

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result; go on with it if its owner dies."""
        return self._waiter.result(run_id, timeout)

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task. Cancelling it only ends the waiting."""
        return await self._waiter.aresult(run_id, timeout)

    # Telling

    def signal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """Send a run a message, durably. Answers whether it is new; `key` makes a second sending harmless.

        `awaited=True` sends it only if the run waits for it just now, and refuses it otherwise: `TooLateError` if the
        time of the wait is up, `NotAwaitedError` if there is no such wait, or if its answer was sent already.
        """
        return self.store.commit(SIGNAL_SEND, self._sending(run_id, name, payload, key, awaited=awaited))

    async def asignal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """`signal` for a task. Cancelled, it may have been sent all the same."""
        is_big = is_large(payload)
        text = await self._read_pool.beside(lambda: signal_text(name, payload)) if is_big else None
        work = self._sending(run_id, name, payload, key, awaited=awaited, text=text)
        return await self.store.acommit(SIGNAL_SEND, work, is_large=is_big)

    def cancel(self, run_id: str) -> bool:
        """Command for a run's cancellation, durably. Answers whether there was anything left to cancel.

        An async step in flight is cancelled at once (from another process: within a tick), a sync one is let finish.
        The decision is thrown a RunCancelledError where it stands, and may clean up with more steps.
        """
        is_new = self.store.commit(RUN_CANCEL, self._cancelling(run_id))
        self._supervisor.reach(run_id)
        return is_new

    async def acancel(self, run_id: str) -> bool:
        """`cancel` for a task. Cancelled itself, it may have been asked for all the same."""
        is_new = await self.store.acommit(RUN_CANCEL, self._cancelling(run_id))
        self._supervisor.reach(run_id)
        return is_new

    # Going on, and going another way

    def resume(self, run_id: str) -> Any:
        """Go on with a run that failed, was cancelled or interrupted, from where it stopped; return its result."""
        self._supervisor.open()
        return self._carry_out(RUN_RESUME, self._claims.to_resume(run_id))

    async def aresume(self, run_id: str) -> Any:
        """`resume` in this task."""
        await self._aopen()
        claim = await self._read_pool.beside(lambda: self._claims.to_resume(run_id))
        return await self._acarry_out(RUN_RESUME, claim)

    def fork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """Begin a new run that has the answers of another one up to, not including, the trunk step `before`.

        `before` is a step's number, or its name where only one trunk step has it. The other run stays as it is.
        """
        self._supervisor.open()
        return self._begin(RUN_FORK, self._claims.to_fork(run_id, before, fork_id))

    async def afork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """`fork`, but the new run goes on on the caller's loop."""
        await self._aopen()
        claim = await self._read_pool.beside(lambda: self._claims.to_fork(run_id, before, fork_id))
        return await self._abegin(RUN_FORK, claim)

    # Looking

    def time_in(self, run_id: str) -> float:
        """What time it is in a run that is carried out here: as on the wall, but it never goes back."""
        driven = self._driver.runs.get(run_id)
        return self.store.clock() if driven is None else driven.run.clock()

    def is_driving(self, run_id: str) -> bool:
        """Whether a run is being carried out here."""
        return run_id in self._driver.runs

    # The end

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of everything. May be called twice."""
        if self._supervisor.begin_close():
            self._let_go()
        self._has_let_go.wait(_PATIENCE)  # a task may have been cancelled while it waited for the same

    async def aclose(self) -> None:
        """`close` for a task: waits for the runs on this loop to let go. Cancelled, it lets go all the same."""
        if self._supervisor.begin_close():
            try:
                await self._supervisor.end_here()
            finally:
                await self._read_pool.beside(self._let_go)  # it commits, and waits for the engine's own loop

    def _let_go(self) -> None:
        try:
            self._supervisor.close()
            self._ownership.close()
            self._read_pool.close()
            stuck = self.workers.close()
            if stuck:
                log.warning("The engine was closed while %d threads were stuck in: %s", len(stuck), ", ".join(stuck))
            if self._owns_store:
                self.store.close()
            lost_coroutines.stop_watching()
            _engines.discard(self)
        finally:
            self._has_let_go.set()

    def _after_fork(self) -> None:
        self._ownership.after_fork()
        self._supervisor.after_fork()
        self._driver.runs = {}

    def __enter__(self) -> Self:
        self._supervisor.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _forked() -> None:
    for engine in list(_engines):
        engine._after_fork()


os.register_at_fork(after_in_child=_forked)
