"""Run the `step` of an agent whose `astep` forwards to it: all steps of a run on one thread, with its callbacks.

An `astep` that only adds something around the step, tracing say, must not change where the step runs. So a run that is
driven on a loop lends its steps a thread, which is started when the first of them forwards.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["STEP_THREAD", "StepThread"]


class StepThread:
    """A thread of one run. `run` is awaited on the run's loop; `soon` may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether a step has run on it."""
        return self._thread is not None

    def is_here(self) -> bool:
        """Whether this is that thread."""
        return self._thread is threading.current_thread()

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call it there, in a copy of this context. A thread cannot be stopped: cancelled, this waits for its end."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        finished: asyncio.Future[None] = loop.create_future()
        outcome: list[Any] = []
        problems: list[BaseException] = []

        def work() -> None:
            try:
                outcome.append(context.run(function, *args))
            except BaseException as problem:  # noqa: BLE001 - raised where it is waited for
                problems.append(problem)
            try:
                loop.call_soon_threadsafe(_resolve, finished)
            except RuntimeError:
                return  # that loop is closed, so nobody waits there any more

        self._work.put(work)
        cancelled: asyncio.CancelledError | None = None
        while not finished.done():
            try:
                await asyncio.shield(finished)
            except asyncio.CancelledError as request:
                cancelled = request
        if problems:
            try:
                raise problems[0]
            finally:
                problems.clear()  # the traceback holds this frame
        if cancelled is not None:
            raise cancelled
        return outcome[0]

    def soon(self, work: Callable[[], object]) -> None:
        """Call it there, after what it is at."""
        self._work.put(work)

    def close(self) -> None:
        """End it when it has done what it was given."""
        self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _resolve(finished: "asyncio.Future[None]") -> None:
    if not finished.done():
        finished.set_result(None)


STEP_THREAD: contextvars.ContextVar[StepThread | None] = contextvars.ContextVar("troth.step_thread", default=None)
"""The thread for the steps of the run that the calling code belongs to, if that run is driven on a loop."""
