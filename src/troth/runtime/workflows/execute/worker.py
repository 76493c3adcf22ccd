"""Carry on runs that nobody carries out: those that sleep, wait, were interrupted, or whose process died.

Runs of workflows are for any worker, because the store has their documents; a run of another decision is for
workers that know it. A worker looks again and again. What it takes up goes on in the background, on the engine's own
loop; a run that then waits stays with the worker, and goes on when the time or the answer comes.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from troth.errors import InternalError, MisuseError, RunError
from troth.runtime.engine.errors import EngineClosedError, ResultTimeoutError, RunCancelledError, RunFailedError
from troth.runtime.engine.port import Engine
from troth.runtime.store import RunRecord, RunState, StepState, Store
from troth.runtime.workflows.registry import FAMILY, WorkflowRegistry, is_workflow

__all__ = ["Worker", "WorkerNews"]

_TRY_AGAIN = 5.0  # seconds after which a run is tried again that could not go on; twice as many each time
_REPEATED = 5.0  # seconds for which a store of many machines need not read all runs again to say that it has none
_AT_LAST = 300.0  # seconds that are waited at most
_MOST_RUNS = 1000  # of one workflow that are looked at when a worker comes to know it
_OPEN = (RunState.RUNNING, RunState.WAITING, RunState.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class WorkerNews:
    """What became of a run that a worker looked at. `why` says why it cannot continue here."""

    run_id: str
    what: Literal["resumed", "over", "cannot continue"]
    why: str = ""


class Worker:
    """Carries on the runs of one store. Not for several threads at once; several processes may have one each."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        workflows: WorkflowRegistry,
        wanted: Callable[[str], bool] | None = None,
        taking: Callable[[str], object] | None = None,
        can_take: Callable[[RunRecord], bool] | None = None,
        *,
        is_remote: bool = False,
    ) -> None:
        self._is_remote = is_remote
        self._names_at = 0.0  # when it is looked for workflows that this worker does not know
        self._can_take = can_take or (lambda _: True)
        self._taking = taking or (lambda _: None)
        self._wanted = wanted or (lambda _: True)
        self._engine = engine
        self._store = store
        self._workflows = workflows
        self._taken_up: set[str] = set()
        self._refused: dict[str, tuple[float, float]] = {}  # until when, and how long the next time
        self._untold: list[WorkerNews] = []

    def look(self, *, take: bool = True) -> list[WorkerNews]:
        """Take up what nobody carries out, unless `take` is false, and tell what has happened since the last look.

        `StoreError` where the store cannot be read. What has happened until then is told by the next look.
        """
        for entry in self._ended():
            self._untold.append(entry)
        if take:
            for entry in self._take_up():
                self._untold.append(entry)
        news, self._untold = self._untold, []
        return news

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken up is over, which a look has told, or waits for what is yet to come."""
        return all(self._is_at_rest(run_id) for run_id in self._taken_up)

    def _take_up(self) -> Iterator[WorkerNews]:
        if self._is_remote:
            yield from self._get_to_know()
        now = time.monotonic()
        known = [name for name in self._engine.decisions() if not name.startswith(FAMILY)]
        of_others = [run_id for run_id, _ in self._store.orphans(known, patience=_REPEATED)] if known else []
        for run_id in (*self._store.unheld(FAMILY, patience=_REPEATED), *of_others):
            is_refused = self._refused.get(run_id, (0.0, 0.0))[0] > now
            if run_id in self._taken_up or is_refused or not self._wanted(run_id):
                continue
            try:
                run = self._engine.find(run_id)
                if run is None or run.state.is_over or not self._can_take(run):
                    continue
                if is_workflow(run):
                    self._workflows.ready(
                        run, self._engine.steps(run_id), accept_changes=run.is_cancel_requested, as_recorded=True
                    )
                    self._taking(run_id)
                self._engine.start(run.decision, *run.args, run_id=run_id, label=run.label)
            except EngineClosedError:
                return
            except (MisuseError, RunError) as refused:  # the server of the engine may be away, or the store
                yield self._refuse(run_id, refused)
            else:
                self._taken_up.add(run_id)
                yield WorkerNews(run_id, "resumed")

    def _get_to_know(self) -> Iterator[WorkerNews]:
        """Serve workflows that were begun elsewhere, too, on an engine whose workers share their runs.

        Such a run is held as long as any of them lives, so it is never an orphan, though none may know its workflow.
        """
        now = time.monotonic()
        if now < self._names_at:
            return
        self._names_at = now + _REPEATED
        known = set(self._engine.decisions())
        for name in self._store.open_decisions(FAMILY):
            runs = [] if name in known else self._store.runs(decision=name, states=_OPEN, limit=_MOST_RUNS)
            for run in runs:
                is_refused = self._refused.get(run.id, (0.0, 0.0))[0] > now
                if run.id in self._taken_up or is_refused or not self._wanted(run.id) or not self._can_take(run):
                    continue
                try:
                    self._workflows.ready(
                        run, self._engine.steps(run.id), accept_changes=run.is_cancel_requested, as_recorded=True
                    )
                    self._taking(run.id)
                except EngineClosedError:
                    return
                except (MisuseError, RunError) as refused:
                    yield self._refuse(run.id, refused)
                else:
                    self._taken_up.add(run.id)
                    yield WorkerNews(run.id, "resumed")

    def _ended(self) -> Iterator[WorkerNews]:
        for run_id in [taken_id for taken_id in self._taken_up if not self._engine.is_driving(taken_id)]:
            try:
                self._engine.result(run_id, timeout=0.0)
            except ResultTimeoutError:
                continue
            except (RunFailedError, RunCancelledError):
                pass  # that is an end, and its record tells
            except EngineClosedError:
                return
            except (MisuseError, RunError, InternalError) as refused:
                self._taken_up.discard(run_id)
                yield self._refuse(run_id, refused)
                continue
            self._taken_up.discard(run_id)
            self._refused.pop(run_id, None)
            yield WorkerNews(run_id, "over")

    def _refuse(self, run_id: str, why: BaseException) -> WorkerNews:
        wait = self._refused.get(run_id, (0.0, _TRY_AGAIN))[1]
        self._refused[run_id] = time.monotonic() + wait, min(2 * wait, _AT_LAST)
        return WorkerNews(run_id, "cannot continue", str(why))

    def _is_at_rest(self, run_id: str) -> bool:
        run = self._engine.find(run_id)
        if run is None:
            return True
        # What it waits for is read after the run, which may have gone on meanwhile: then nothing was seen to be due.
        return run.state is RunState.WAITING and not self._is_due(run) and self._engine.find(run_id) == run

    def _is_due(self, run: RunRecord) -> bool:
        """Whether what a run waits for has come, so that it is about to go on."""
        store = self._store
        sent = {signal.name for signal in store.signals(run.id) if signal.taken_by is None}
        return run.is_cancel_requested or any(
            row.name in sent or (row.wake_at is not None and row.wake_at <= store.clock())
            for row in self._engine.steps(run.id)
            if row.state is StepState.WAITING
        )
