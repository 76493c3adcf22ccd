"""Call the callbacks of a runtime, and those of one run, with the events of runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager

from troth.bridge import call
from troth.runtime.engine import Engine
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.runs.callbacks import Callback, EventThread, Follow, callbacks_of, follow_here, leave_here
from troth.runtime.store import HistoryEntry, Notifier
from troth.runtime.workflows.record.run_events import EventReader
from troth.runtime.workflows.registry import WorkflowRegistry

__all__ = ["RunListeners"]


class RunListeners:
    """The callbacks that a runtime calls for every run. Those of a single run are given with it."""

    def __init__(
        self, engine: Engine, workflows: WorkflowRegistry, on_event: Callback | Sequence[Callback] | None
    ) -> None:
        self._callbacks = callbacks_of(on_event)
        self._engine = engine
        self._source = _EngineEvents(engine, workflows)
        self._thread = EventThread(self._source)

    def add(self, on_event: Callback) -> Callable[[], None]:
        """Call `on_event`, too, for what begins from now on. The answer, called, ends that for what begins after it."""
        (added,) = callbacks_of(on_event)
        self._callbacks = (*self._callbacks, added)

        def remove() -> None:
            self._callbacks = tuple(callback for callback in self._callbacks if callback is not added)

        return remove

    @contextmanager
    def following(self, run_id: str, callbacks: tuple[Callback, ...] = ()) -> Iterator[None]:
        """Call all of them, and `callbacks`, for a run while the block carries it out."""
        callbacks = (*self._callbacks, *callbacks)
        if not callbacks:
            yield
            return
        follow = self._thread.follow(run_id, self._engine.last_entry(run_id), callbacks)
        try:
            yield
        finally:
            self._thread.leave(follow)

    @asynccontextmanager
    async def afollowing(self, run_id: str, callbacks: tuple[Callback, ...] = ()) -> AsyncIterator[None]:
        """`following` for a task: `callbacks` are called on its loop, those of the runtime on their thread."""
        if not callbacks and not self._callbacks:
            yield
            return
        after = await call(self._engine.last_entry, run_id)
        threaded = self._thread.follow(run_id, after, self._callbacks) if self._callbacks else None
        follow = Follow(run_id, after, callbacks, self._source)
        task = asyncio.create_task(follow_here(follow, self._source)) if callbacks else None
        try:
            yield
        finally:
            if task is not None:
                await leave_here(follow, task)
            if threaded is not None:
                await call(self._thread.leave, threaded)

    def follow_to_end(self, run_id: str) -> None:
        """Call the runtime's callbacks for a run that goes on beside the caller, until it is over."""
        if self._callbacks:
            self._thread.follow(run_id, self._engine.last_entry(run_id), self._callbacks, until_over=True)

    def close(self) -> None:
        """Call the callbacks with the events that there are, and end."""
        self._thread.close()


class _EngineEvents:
    """The events of an engine's runs: the `RunSource` of the callbacks."""

    def __init__(self, engine: Engine, workflows: WorkflowRegistry) -> None:
        self._engine = engine
        self._workflows = workflows

    def history(self, run_id: str, *, after: int) -> Sequence[HistoryEntry]:
        return self._engine.history(run_id, after=after)

    def reader(self, run_id: str) -> EventReader:
        run = self._engine.find(run_id)
        if run is None:
            raise UnknownRunError(f"There is no run {run_id!r} in this store any more.")
        return self._workflows.event_reader(run)

    def is_over(self, run_id: str) -> bool:
        run = self._engine.find(run_id)
        return run is not None and run.state.is_over

    def listen(self, bell: Notifier, run_id: str) -> AbstractContextManager[Notifier]:
        return self._engine.listening(bell, run_id)

    def callback_failed(self, run_id: str, name: str, error: BaseException) -> None:
        self._engine.tell_callback_failed(run_id, name, error)
