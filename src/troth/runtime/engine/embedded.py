"""The embedded engine: decisions carried out in this process, with everything remembered in one store.

A run is driven where it was asked for: `run` on the caller's thread, `arun` and `astart` on the caller's loop, `start`
and everything that is taken over from a dead owner on the engine's home loop. The verbs stand here; `claims` knows how
a run becomes ours, `driving` how it is driven, `attending` how it is waited for, `tending` what happens by itself.
"""

import logging
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from troth.errors import MisuseError
from troth.runtime.engine import lost
from troth.runtime.engine.asks import Decision
from troth.runtime.engine.attending import Attendance
from troth.runtime.engine.claims import Claim, Claims, unknown_run
from troth.runtime.engine.decisions import Decisions
from troth.runtime.engine.driving import Driving
from troth.runtime.engine.looking import Lookout
from troth.runtime.engine.ownership import Ownership
from troth.runtime.engine.points import RUN_CANCEL, RUN_FORK, RUN_RESUME, RUN_START, SIGNAL_SEND
from troth.runtime.engine.tending import Tending
from troth.runtime.engine.workers import Workers
from troth.runtime.store import CommitPoint, RunRecord, RunState, SqliteStore, StepRecord, Transaction
from troth.runtime.store.payload import keep

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
        self._lookout = Lookout()
        self._ownership = Ownership(self.store)
        self._claims = Claims(self.store, self._ownership, self._decisions)
        self._tending = Tending(
            self.store, self._ownership, self._decisions, self._claims, lambda: self._driving, recover=recover
        )
        self._driving = Driving(
            self.store,
            self.workers,
            self._lookout,
            self._ownership,
            self._decisions,
            chance or random.Random(),  # noqa: S311  for jitter
            self._tending.launch,
        )
        self._attendance = Attendance(self.store, self._tending.look_after)
        self._has_let_go = threading.Event()
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
        that somebody else carries out, that one is waited for. Ctrl-C interrupts the run as cancelling does `arun`.
        """
        self._tending.open()
        claim = self._claims.to_open(decision, args, run_id, label)
        self._carry_out(RUN_START, claim)
        return self.result(claim.run_id)

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` in this task, without blocking its loop: sync steps run in worker threads.

        Cancelling the task interrupts the run: the step in flight is cancelled, the run is "interrupted", and goes on
        when it is asked for again. Wherever the cancellation comes, nobody is left holding the run. `cancel` is the
        way to end it for good.
        """
        await self._aopen()
        claim = self._claims.to_open(decision, args, run_id, label)
        await self._acarry_out(RUN_START, claim)
        return await self.aresult(claim.run_id)

    def start(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> RunHandle:
        """Begin a run on the engine's home loop and return. It is written down before this returns."""
        self._tending.open()
        return self._begin(RUN_START, self._claims.to_open(decision, args, run_id, label))

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> RunHandle:
        """`start`, but the run goes on on the caller's loop, and is interrupted when that loop ends.

        Cancelled while the start is being written, the run may have been begun all the same; it is then interrupted.
        """
        await self._aopen()
        return await self._abegin(RUN_START, self._claims.to_open(decision, args, run_id, label))

    async def _aopen(self) -> None:
        """Open beside the loop: to enroll is a commit, and with FULL that is a wait for the disk."""
        if not self._tending.is_open:
            await self._lookout.beside(self._tending.open)

    def _carry_out(self, point: CommitPoint, claim: Claim) -> None:
        with self._tending.in_foreground(claim.run_id):
            claimed = self._driving.take(point, claim)
            if claimed is not None:
                self._driving.drive(claim, claimed)

    async def _acarry_out(self, point: CommitPoint, claim: Claim) -> None:
        with self._tending.in_foreground(claim.run_id):
            claimed = await self._driving.atake(point, claim)
            if claimed is not None:
                await self._driving.adrive(claim, claimed)

    def _begin(self, point: CommitPoint, claim: Claim) -> RunHandle:
        claimed = self._driving.take(point, claim)
        if claimed is not None:
            self._tending.pursue(claim, claimed)
        return RunHandle(self, claim.run_id)

    async def _abegin(self, point: CommitPoint, claim: Claim) -> RunHandle:
        claimed = await self._driving.atake(point, claim)
        if claimed is not None:
            self._tending.pursue_here(claim, claimed)
        return RunHandle(self, claim.run_id)

    # Waiting for

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result; go on with it if its owner dies."""
        return self._attendance.result(run_id, timeout)

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task. Cancelling it only ends the waiting."""
        return await self._attendance.aresult(run_id, timeout)

    # Telling

    def signal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """Send a run a message, durably. Answers whether it is new; `key` makes a second sending harmless."""
        return self.store.commit(SIGNAL_SEND, self._sending(run_id, name, payload, key))

    async def asignal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """`signal` for a task. Cancelled, it may have been sent all the same."""
        return await self.store.acommit(SIGNAL_SEND, self._sending(run_id, name, payload, key))

    def _sending(self, run_id: str, name: str, payload: object, key: str | None) -> Callable[[Transaction], bool]:
        text, _ = keep(payload, f"signal {name!r}")

        def work(tx: Transaction) -> bool:
            state = tx.state_of(run_id)
            if state is None:
                raise unknown_run(run_id)
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
        self._tending.reach(run_id)
        return is_new

    async def acancel(self, run_id: str) -> bool:
        """`cancel` for a task. Cancelled itself, it may have been asked for all the same."""
        is_new = await self.store.acommit(RUN_CANCEL, self._cancelling(run_id))
        self._tending.reach(run_id)
        return is_new

    def _cancelling(self, run_id: str) -> Callable[[Transaction], bool]:
        def work(tx: Transaction) -> bool:
            if tx.state_of(run_id) is None:
                raise unknown_run(run_id)
            return tx.request_cancel(run_id, self.store.clock())

        return work

    # Going on, and going another way

    def resume(self, run_id: str) -> Any:
        """Go on with a run that failed, was cancelled or interrupted, from where it stopped; return its result."""
        self._tending.open()
        self._carry_out(RUN_RESUME, self._claims.to_resume(run_id))
        return self.result(run_id)

    async def aresume(self, run_id: str) -> Any:
        """`resume` in this task."""
        await self._aopen()
        await self._acarry_out(RUN_RESUME, await self._lookout.beside(lambda: self._claims.to_resume(run_id)))
        return await self.aresult(run_id)

    def fork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """Begin a new run that has the answers of another one up to, not including, the trunk step `before`.

        `before` is a step's number, or its name where only one trunk step has it. The other run stays as it is.
        """
        self._tending.open()
        return self._begin(RUN_FORK, self._claims.to_fork(run_id, before, fork_id))

    async def afork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> RunHandle:
        """`fork`, but the new run goes on on the caller's loop."""
        await self._aopen()
        claim = await self._lookout.beside(lambda: self._claims.to_fork(run_id, before, fork_id))
        return await self._abegin(RUN_FORK, claim)

    # Looking

    def find(self, run_id: str) -> RunRecord | None:
        """A run as it is now."""
        return self.store.run(run_id)

    async def afind(self, run_id: str) -> RunRecord | None:
        """`find` for a task."""
        return await self._lookout.beside(lambda: self.find(run_id))

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
        return await self._lookout.beside(
            lambda: self.list(states=states, decision=decision, label=label, before=before, limit=limit)
        )

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """What a run has asked for, in order, with every failed attempt."""
        return self.store.steps(run_id)

    async def asteps(self, run_id: str) -> Sequence[StepRecord]:
        """`steps` for a task."""
        return await self._lookout.beside(lambda: self.steps(run_id))

    # The end

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of everything. May be called twice."""
        if self._tending.begin_close():
            self._let_go()
        self._has_let_go.wait(_PATIENCE)  # a task may have been cancelled while it waited for the same

    async def aclose(self) -> None:
        """`close` for a task: waits for the runs on this loop to let go. Cancelled, it lets go all the same."""
        if self._tending.begin_close():
            try:
                await self._tending.end_here()
            finally:
                await self._lookout.beside(self._let_go)  # it commits, and waits for the engine's own loop

    def _let_go(self) -> None:
        try:
            self._tending.close()
            self._ownership.close()
            self._lookout.close()
            stuck = self.workers.close()
            if stuck:
                log.warning("The engine was closed while %d threads were stuck in: %s", len(stuck), ", ".join(stuck))
            if self._owns_store:
                self.store.close()
            lost.stop_watching()
            _engines.discard(self)
        finally:
            self._has_let_go.set()

    def _after_fork(self) -> None:
        self._ownership.after_fork()
        self._tending.after_fork()
        self._driving.runs = {}

    def __enter__(self) -> Self:
        self._tending.open()
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
