"""A run that this engine carries out."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.store import Store

__all__ = ["ActiveRun"]


class ActiveRun:
    """What a driver needs, and what a cancellation reaches."""

    def __init__(
        self,
        store: Store,
        workers: WorkerPool,
        run: RunInProgress,
        launch: Callable[[str], None],
        company: Mapping[str, object],
    ) -> None:
        self.store = store
        self.workers = workers
        self.run = run
        self._launch = launch
        self._company = company
        self._listening = ExitStack()
        self._topics: set[str] = set()

    def launch(self, run_id: str) -> None:
        """Begin to work on another run, beside this one."""
        self._launch(run_id)

    def listen(self, topic: str) -> None:
        """Ring the run's bell for news of `topic` too."""
        if topic not in self._topics:
            self._topics.add(topic)
            self._listening.enter_context(self.store.listening(self.run.bell, topic))

    def is_alone(self) -> bool:
        """Whether no other run is being driven, so that nobody else is about to commit."""
        return len(self._company) == 1 and self.run.branches == 1

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()
