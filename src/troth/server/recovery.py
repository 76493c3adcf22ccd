"""Look after what was accepted: go on with runs and turns that nobody carries out, and forget old answers and talks.

A server goes on with what was begun through a server on its store, whichever it was: one that was killed, one that was
ended, one that runs beside it. Runs that came from elsewhere are left to whoever began them.
"""

import asyncio
import contextlib
import logging

from troth.bridge import call
from troth.runtime.assemble import Runtime
from troth.runtime.store import commit_point
from troth.server.limits import Limits
from troth.server.retention import TalkRetention
from troth.server.turns import Turns

__all__ = ["Recovery"]

log = logging.getLogger("troth.server")

FORGET = commit_point("server.request.forget", "that old requests are deleted")

_LOOK = 1.0  # seconds between two looks
_AT_ONCE = 500  # requests that are forgotten in one commit


class Recovery:
    """One task that looks again and again, until it is stopped."""

    def __init__(self, runtime: Runtime, turns: Turns, limits: Limits) -> None:
        self._store = runtime.store
        self._turns = turns
        self._limits = limits
        self._worker = runtime.worker(self._is_ours)
        self._retention = TalkRetention(runtime.store, limits.keep)
        self._foreign: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look_for_ever(), name="troth-server-recovery")

    async def stop(self) -> None:
        """Look no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self._turns.look()
                await call(self._look_at_runs)
                await call(self._forget)
                await call(self._retention.look)
            except Exception:
                log.exception("The look at what was accepted failed; trying again.")
            await asyncio.sleep(_LOOK)

    def _look_at_runs(self) -> None:
        for news in self._worker.look():
            if news.what == "cannot continue":
                log.warning("The run %r cannot be resumed here: %s", news.run_id, news.why)

    def _is_ours(self, run_id: str) -> bool:
        if run_id in self._foreign:
            return False
        is_ours = self._store.read_server(lambda rows: rows.belonging("run", run_id)) is not None
        if not is_ours:
            self._foreign.add(run_id)
        return is_ours

    def _forget(self) -> None:
        before = self._store.clock() - self._limits.remember
        if self._store.read_server(lambda rows: rows.has_requests(before)):
            self._store.commit(FORGET, lambda tx: tx.server.forget_requests(before, _AT_ONCE))
