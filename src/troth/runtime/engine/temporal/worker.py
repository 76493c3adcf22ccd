"""What a worker does for runs on Temporal: makes attempts of steps, and reads and writes their record.

The server's messages and the heartbeats are handled on a loop of their own, steps on another one: a step that blocks
its loop is not taken for dead.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from troth import bridge
from troth.errors import MisuseError
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.current_step import CurrentStep
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.invoke.interruption import CancelledAfterError
from troth.runtime.engine.invoke.invocation import acall
from troth.runtime.engine.invoke.outcome import StepOutcome
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.engine.temporal.address import TemporalAddress
from troth.runtime.engine.temporal.limits import MAX_BATCH, NotOnTemporalError
from troth.runtime.engine.temporal.loading import StepPage, claim, page_of
from troth.runtime.engine.temporal.outcomes import to_message
from troth.runtime.engine.temporal.recording import PendingRecord, record
from troth.runtime.engine.temporal.step_lookup import StepLookup
from troth.runtime.store import Store, StoreError
from troth.runtime.store.records import Place

__all__ = ["MOST_EVENTS", "Host"]

log = logging.getLogger("troth.engine")

MOST_EVENTS = 10_000
"""Entries of a workflow's history on the server after which its run goes on in a new workflow."""
_PATIENCE = 0.5  # seconds after which a store is tried again that could not be written


class Host:
    """One worker process, as its workflows and activities see it. `launch` starts a run that is written down."""

    def __init__(
        self,
        address: TemporalAddress,
        store: Store,
        decisions: DecisionRegistry,
        workers: WorkerPool,
        launch: Callable[[str], Awaitable[None]],
    ) -> None:
        self.address = address
        self.decisions = decisions
        self.most_events = MOST_EVENTS
        self.lookup = StepLookup(store, decisions)
        self.driven: set[str] = set()
        self._store = store
        self._workers = workers
        self._launch = launch
        self._portal = bridge.Portal(name="troth-steps")
        self._steps_loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Begin to make attempts."""
        self._steps_loop = self._portal.run(_this_loop)

    def close(self) -> None:
        """Make no more attempts."""
        self._portal.close()

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """What the server can ask for."""
        return [self.make_attempt, self.write_record, self.take_run, self.read_page]

    # ---- the record

    @activity.defn(name="troth-record")
    async def write_record(self, message: PendingRecord) -> dict[str, Any] | None:
        """Write down what a run has written; None if it belongs to somebody else now."""
        async with self._beating():
            recorded = await record(self._store, self.address.owner, message)
            if recorded is None:
                return None
            letters = sum(len(json.dumps(answer)) for answer in recorded.answers)
            if letters > MAX_BATCH:
                raise ApplicationError(
                    f"The run {message['run']!r} was sent, or waits for, {letters:,} characters of JSON, and at most "
                    f"{MAX_BATCH:,} travel through Temporal. Keep it in a file or a table, and pass its name.",
                    type=NotOnTemporalError.__name__,
                    non_retryable=True,
                )
            for run_id in recorded.started:
                await self._launch(run_id)
            return {"answers": recorded.answers, "is_requested": recorded.is_cancel_requested}

    @activity.defn(name="troth-claim")
    async def take_run(self, message: dict[str, str]) -> dict[str, Any]:
        """Take a run for the workflow that is to carry it out."""
        async with self._beating():
            return await claim(self._store, self.address.owner, message["run"], message["base"])

    @activity.defn(name="troth-page")
    async def read_page(self, message: dict[str, Any]) -> StepPage:
        """Some of the recorded steps of a run."""
        async with self._beating():
            try:
                return await asyncio.to_thread(page_of, self._store, message["run"], message["first"])
            except NotOnTemporalError as refused:  # to try again would change nothing
                raise ApplicationError(str(refused), type=type(refused).__name__, non_retryable=True) from refused

    # ---- steps

    @activity.defn(name="troth-step")
    async def make_attempt(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Write down what came before, and that this attempt begins; then make it. The answer is its outcome."""
        try:
            async with self._beating():
                is_requested = False
                if asked["record"] is not None:
                    recorded = await self._recorded(asked["record"])
                    if recorded is None:
                        return {"is_elsewhere": True}
                    is_requested = recorded
                return {**await self._outcome(asked), "is_requested": is_requested}
        except (asyncio.CancelledError, ApplicationError):
            raise
        except Exception as bug:
            log.exception("Step %r of run %r failed with an internal error of the engine.", asked["name"], asked["run"])
            raise ApplicationError(f"{type(bug).__name__}: {bug}", type="InternalError", non_retryable=True) from bug

    async def _recorded(self, message: PendingRecord) -> bool | None:
        """Whether the run is to be cancelled; None if it is somebody else's. A store that is away is waited for."""
        while True:
            try:
                recorded = await record(self._store, self.address.owner, message)
            except StoreError as error:
                log.warning("The run %r could not be recorded yet: %s", message["run"], error)
                await asyncio.sleep(_PATIENCE)
            else:
                return None if recorded is None else recorded.is_cancel_requested

    async def _outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._steps_loop is not None
        cancellation = Cancellation()
        future = asyncio.run_coroutine_threadsafe(self._call(asked, cancellation), self._steps_loop)
        waiting = asyncio.wrap_future(future)
        while True:
            try:
                return await asyncio.shield(waiting)
            except asyncio.CancelledError:
                details = activity.cancellation_details()
                if details is not None and details.cancel_requested and not details.worker_shutdown:
                    cancellation.ask()  # an async step is cancelled, a sync one is let finish
                    continue
                future.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([waiting], timeout=self._workers.grace)
                if details is not None and details.worker_shutdown:
                    return {"ended": "interrupted"}
                raise

    async def _call(self, asked: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Make the attempt, on the loop of the steps."""
        run_id = asked["run"]
        place = Place(run_id, *asked["place"])
        info = CurrentStep(run_id, place, asked["name"], asked["key"], asked["attempt"], asked["started_at"])
        try:
            step = await asyncio.to_thread(self.lookup.find, run_id, place, asked["attempt"], asked)
        except (MisuseError, ImportError, AttributeError) as missing:
            return to_message(StepOutcome("refused", error=missing), asked["name"], ())
        try:
            outcome = await acall(step, info, self._workers, cancellation)
        except CancelledAfterError as cancelled:
            outcome = cancelled.outcome
        return await asyncio.to_thread(to_message, outcome, asked["name"], info.appended)

    @asynccontextmanager
    async def _beating(self) -> AsyncIterator[None]:
        """Tell the server that this worker lives; its answers bring cancellations."""
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(self.address.heartbeat / 4)


async def _this_loop() -> asyncio.AbstractEventLoop:
    await asyncio.sleep(0)
    return asyncio.get_running_loop()
