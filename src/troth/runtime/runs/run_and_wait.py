"""Have a run carried out and wait for it: to its end, or to a question for a person.

Sync and async methods are the same but for their awaits. That a run failed is not raised here: its record tells.
"""

import logging

from troth.bridge import call
from troth.runtime.engine.errors import ResultTimeoutError, RunFailedError
from troth.runtime.engine.port import Engine
from troth.runtime.store import Notifier, RunState, StepState, Store
from troth.runtime.workflows.execute.waits import approval_signal

__all__ = ["RunWaiter"]

log = logging.getLogger("troth.runtime")

_QUESTION = approval_signal("")  # how the names of the waits for a person begin
_LOOK_AGAIN = 0.25  # seconds after which a run is looked at without news: its owner may have died without a word


class RunWaiter:
    """Carries runs out on an engine."""

    def __init__(self, engine: Engine, store: Store) -> None:
        self._engine = engine
        self._store = store

    def drive(self, name: str, args: tuple[object, ...], run_id: str, label: str, *, wait: bool) -> None:
        """Begin a run, or go on with it; `wait=False` comes back when it has come to a question, too."""
        try:
            if wait:
                self._engine.run(name, *args, run_id=run_id, label=label)
            else:
                self._engine.start(name, *args, run_id=run_id, label=label)
                self._watch(run_id)
        except RunFailedError as failed:
            log.debug("%s", failed)  # the report tells

    async def adrive(self, name: str, args: tuple[object, ...], run_id: str, label: str, *, wait: bool) -> None:
        """`drive` for a task. Cancelling it interrupts the run."""
        try:
            if wait:
                await self._engine.arun(name, *args, run_id=run_id, label=label)
            else:
                await self._engine.astart(name, *args, run_id=run_id, label=label)
                await self._awatch(run_id)
        except RunFailedError as failed:
            log.debug("%s", failed)

    def _watch(self, run_id: str) -> None:
        """Wait until a run is over or has come to a question."""
        bell = Notifier()
        with self._engine.listening(bell, run_id):
            while True:
                rings = bell.count
                try:
                    self._engine.result(run_id, timeout=0)
                except ResultTimeoutError:
                    if not self._is_asking(run_id):
                        bell.wait(rings, _LOOK_AGAIN)
                        continue
                return

    async def _awatch(self, run_id: str) -> None:
        bell = Notifier()
        with self._engine.listening(bell, run_id):
            while True:
                rings = bell.count
                try:
                    await self._engine.aresult(run_id, timeout=0)
                except ResultTimeoutError:
                    if not await call(self._is_asking, run_id):
                        await bell.await_ring(rings, _LOOK_AGAIN)
                        continue
                return

    def _is_asking(self, run_id: str) -> bool:
        """Whether the run waits for a person and for nothing else: one who has not answered, and still can."""
        store = self._store
        # Before the steps: an answer that is taken between the two reads would be neither sent nor settled.
        sent = {signal.name for signal in store.signals(run_id) if signal.taken_by is None}
        run = self._engine.find(run_id)
        if run is None or run.state is not RunState.WAITING:
            return False
        waits = [row for row in self._engine.steps(run_id) if row.state is StepState.WAITING]
        return bool(waits) and all(
            row.name.startswith(_QUESTION)
            and row.name not in sent
            and (row.wake_at is None or store.clock() < row.wake_at)
            for row in waits
        )

    def await_end(self, run_id: str, *, wait: bool) -> None:
        """Wait for a run that is written down; where nobody carries it out, it is carried out here."""
        try:
            if wait:
                self._engine.result(run_id)
            else:
                self._watch(run_id)
        except RunFailedError as failed:
            log.debug("%s", failed)

    async def aawait_end(self, run_id: str, *, wait: bool) -> None:
        """`await_end` for a task."""
        try:
            if wait:
                await self._engine.aresult(run_id)
            else:
                await self._awatch(run_id)
        except RunFailedError as failed:
            log.debug("%s", failed)

    def settle(self, run_id: str) -> None:
        """Wait for a run as long as it works and does not wait itself."""
        bell = Notifier()
        with self._engine.listening(bell, run_id):
            while True:
                rings = bell.count
                try:
                    self._engine.result(run_id, timeout=0)
                except ResultTimeoutError:
                    run = self._engine.find(run_id)
                    if run is not None and run.state is not RunState.WAITING:
                        bell.wait(rings, _LOOK_AGAIN)
                        continue
                except RunFailedError as failed:
                    log.info("A run that was resumed did not complete: %s", failed)
                return
