"""Read beside a loop: in threads of its own, so that steps which hang never keep anybody from looking."""

from collections.abc import Callable
from typing import TypeVar

from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool

__all__ = ["ReadPool"]

T = TypeVar("T")

_AT_ONCE = 4  # threads; a look is short, and SQLite reads them side by side


class ReadPool:
    """A few threads that read the store for tasks: a long list takes longer than a loop should wait."""

    def __init__(self) -> None:
        self._workers = WorkerPool(_AT_ONCE, name="troth-look")

    async def beside(self, look: Callable[[], T]) -> T:
        """What `look` answers. Cancelled, the look ends by itself and its answer is dropped."""
        job = self._workers.submit(Job("a look at the store", look))
        await job.await_done(None)
        if job.error is not None:
            raise job.error
        answer: T = job.value
        return answer

    def close(self) -> None:
        """Look no more."""
        self._workers.close()
