"""Take a run and drive it, so that its lease is never left without a driver.

From the moment a claim is made until the run is over, whatever ends the driving gives the lease back: an error, Ctrl-C,
a cancellation at any await, also one that comes while the claim is still being committed.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.clock import SteadyClock, last_moment
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.embedded.active_run import ActiveRun
from troth.runtime.engine.embedded.claims import Claim, Claimed
from troth.runtime.engine.embedded.drivers import adrive, drive
from troth.runtime.engine.embedded.ownership import Ownership
from troth.runtime.engine.errors import EngineClosedError
from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.interpreter.effects import Commit
from troth.runtime.engine.interpreter.interpreter import interpret
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.engine.read_pool import ReadPool
from troth.runtime.store import CommitPoint, LeaseLostError, Recorded, RunState, Store, Transaction

__all__ = ["LeaseDriver"]

_NOTHING = Recorded((), ())


class _NotNewError(Exception):
    """Takes back a commit that was to begin a run that is there already."""


def _begin(claim: Claim, first: Commit, tx: Transaction) -> object:
    claimed = claim.write(tx)
    if claimed is None or not claimed.is_new:
        raise _NotNewError
    return first.work(tx)


class LeaseDriver:
    """The runs that one engine drives. `launch` begins another run beside one that asks for it."""

    def __init__(
        self,
        store: Store,
        workers: WorkerPool,
        lookout: ReadPool,
        ownership: Ownership,
        decisions: DecisionRegistry,
        chance: random.Random,
        launch: Callable[[str], None],
    ) -> None:
        self._store = store
        self._workers = workers
        self._read_pool = lookout
        self._ownership = ownership
        self._decisions = decisions
        self._chance = chance
        self._launch = launch
        self.runs: dict[str, ActiveRun] = {}

    def take(self, point: CommitPoint, claim: Claim) -> Claimed | None:
        """Commit a claim; nothing if there is nothing for us to drive."""
        try:
            return self._store.commit(point, claim.write)
        except BaseException:
            self._ownership.give_back(claim)  # it may be kept: the interruption, or a fault, can come after the commit
            raise

    async def atake(self, point: CommitPoint, claim: Claim) -> Claimed | None:
        """`take` for a task."""
        try:
            return await self._store.acommit(point, claim.write, is_large=claim.is_large)
        except BaseException:
            await self._ownership.agive_back(claim)
            raise

    def drive(self, claim: Claim, claimed: Claimed) -> tuple[RunState, Any]:
        """Drive a run of ours to its end, on this thread: the state in which it ended, and what it has returned."""
        run = self._in_progress(claim, claimed)
        try:
            with self._driven(run, _NOTHING if claimed.is_new else self._store.recorded(claim.run_id)) as driven:
                state = drive(interpret(run, self._decisions.begin(claimed.decision, claimed.args)), driven)
        except BaseException as error:
            self._ownership.give_back(claim, run.left_behind)
            self._tell_if_closed(claim, error)
            raise
        return state, run.value

    def drive_new(self, point: CommitPoint, claim: Claim) -> tuple[RunState, Any] | None:
        """Write a new run down in one commit with the first of its decision's, and drive it like `drive`.

        Nothing is done, and nothing answered, if it is not new, or if its decision wants something else first.
        """
        assert claim.begins is not None  # it is one that opens a run
        run = self._in_progress(claim, claim.begins)
        try:
            with self._driven(run, _NOTHING) as driven:
                acts = interpret(run, self._decisions.begin(claim.begins.decision, claim.begins.args))
                first = next(acts)
                with contextlib.suppress(_NotNewError):
                    if type(first) is Commit:
                        answer = self._store.commit(point, partial(_begin, claim, first))
                        return drive(acts, driven, answer), run.value
                acts.close()
                return None
        except BaseException as error:
            self._ownership.give_back(claim, run.left_behind)
            self._tell_if_closed(claim, error)
            raise

    async def adrive(self, claim: Claim, claimed: Claimed, *, is_awaited: bool = True) -> tuple[RunState, Any]:
        """`drive` in this task. What is recorded of a long run is read in a thread.

        Where nobody awaits it, whatever its decision raises is its failure: there is no caller to whom it could go.
        """
        run = self._in_progress(claim, claimed)
        run.is_awaited = is_awaited
        claim.is_taken_up = True
        try:
            recorded = (
                _NOTHING if claimed.is_new else await self._read_pool.beside(lambda: self._store.recorded(claim.run_id))
            )
            with self._driven(run, recorded) as driven:
                state = await adrive(interpret(run, self._decisions.begin(claimed.decision, claimed.args)), driven)
        except BaseException as error:
            await self._ownership.agive_back(claim, run.left_behind)
            self._tell_if_closed(claim, error)
            raise
        return state, run.value

    def _tell_if_closed(self, claim: Claim, error: BaseException) -> None:
        """Where the engine was closed in the middle, that is what happened, whatever the store says of it."""
        if self._ownership.is_closed and isinstance(error, LeaseLostError | MisuseError):
            raise EngineClosedError(
                f"The engine was closed while it executed run {claim.run_id!r}. The run is recorded; the next "
                "engine resumes it, and repeats the step that was in progress, with the same key."
            ) from error

    def _in_progress(self, claim: Claim, claimed: Claimed) -> RunInProgress:
        run = RunInProgress(
            claim.run_id,
            claim.token,
            clock=self._store.clock,
            chance=self._chance,
            name_of=self._decisions.name_of,
        )
        run.last_seen = claimed.last_seen
        run.letters = claimed.letters
        run.max_result = self._workers.max_result
        return run

    @contextmanager
    def _driven(self, run: RunInProgress, recorded: Recorded) -> Iterator[ActiveRun]:
        run.clock = SteadyClock(self._store.clock, last_moment([*recorded.steps, *recorded.taken_back]))
        run.recorded = {(step.place.branch, step.place.seq): step for step in recorded.steps}
        run.earlier = {(step.place.branch, step.place.seq): step for step in recorded.taken_back}
        driven = ActiveRun(self._store, self._workers, run, self._launch, self.runs)
        driven.listen(run.resource)
        self.runs[run.run_id] = driven
        try:
            yield driven
        finally:
            self.runs.pop(run.run_id, None)
            driven.close()
