"""Wait for a run, whoever carries it out: until it is over, cannot continue, or the time is up."""

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from troth.errors import MisuseError
from troth.runtime.arguments import check_seconds
from troth.runtime.engine.errors import ResultTimeoutError
from troth.runtime.engine.recorded_runs import unknown_run
from troth.runtime.engine.result import failure_of
from troth.runtime.store import Notifier, RunRecord, RunState, Store
from troth.runtime.store.aread import aread
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = ["ResultWaiter", "look_again"]

_LOOK_AGAIN = 0.25  # seconds after which somebody who waits looks whether the run's owner died
_AT_MOST = 2.0
"""The same in a database, after a few looks: news come by themselves, an owner is dead after seconds, and each look is
some round trips. With a look every 0.25 s, 200 who wait cost 20 % of a core, and the database 8 %."""


class ResultWaiter:
    """Those who wait for runs.

    `look_after` is called with each run that is not over, and may refuse. `refuse_if_closed` is called where the store
    cannot be read: an engine that is being closed closes its store under those who wait.
    """

    def __init__(
        self, store: Store, look_after: Callable[[RunRecord], None], refuse_if_closed: Callable[[str], None]
    ) -> None:
        self._store = store
        self._look_after = look_after
        self._refuse_if_closed = refuse_if_closed

    def result(self, run_id: str, timeout: float | None) -> Any:
        """Wait on this thread."""
        check_seconds("timeout", timeout)
        is_over, value = self._look(run_id)
        if is_over:
            return value
        deadline = None if timeout is None else time.monotonic() + timeout
        bell, looks = Notifier(), itertools.count()
        with self._store.listening(bell, run_topic(run_id)):
            while True:
                rings = bell.count
                is_over, value = self._look(run_id)
                if is_over:
                    return value
                bell.wait(rings, self._patience(run_id, deadline, timeout, next(looks)))

    async def aresult(self, run_id: str, timeout: float | None) -> Any:
        """Wait in this task."""
        check_seconds("timeout", timeout)
        look = partial(self._look, run_id)
        is_over, value = await aread(self._store, look)
        if is_over:
            return value
        deadline = None if timeout is None else time.monotonic() + timeout
        bell, looks = Notifier(), itertools.count()
        with self._store.listening(bell, run_topic(run_id)):
            while True:
                rings = bell.count
                is_over, value = await aread(self._store, look)
                if is_over:
                    return value
                await bell.await_ring(rings, self._patience(run_id, deadline, timeout, next(looks)))

    def _look(self, run_id: str) -> tuple[bool, Any]:
        """Whether a run is over, and its result; raises if it did not complete or cannot continue."""
        try:
            run = self._store.run(run_id)
            has_failed = run is not None and run.state.is_over and run.state is not RunState.COMPLETED
            steps = self._store.steps(run_id) if has_failed else []
        except MisuseError:
            self._refuse_if_closed(run_id)
            raise
        if run is None:
            raise unknown_run(run_id)
        if has_failed:
            raise failure_of(run, steps)
        if run.state is RunState.COMPLETED:
            return True, run.result
        self._look_after(run)
        return False, None

    def _patience(self, run_id: str, deadline: float | None, timeout: float | None, looks: int) -> float:
        pause = look_again(looks, is_shared=self._store.is_shared)
        if deadline is None:
            return pause
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise ResultTimeoutError(
                f"Run {run_id!r} did not end within {timeout:g} s. It is still running; ask again."
            )
        return min(remaining, pause)


def look_again(looks: int, *, is_shared: bool) -> float:
    """Seconds to wait for news until the next look, after so many."""
    return min(_LOOK_AGAIN * 2 ** min(looks, 10), _AT_MOST) if is_shared else _LOOK_AGAIN
