"""Run sync code beside a loop: in threads that are bounded, named, and given up when they hang.

A thread cannot be stopped. When a step's time is up its caller goes on, and the thread is abandoned: it is counted,
named in the log, does not take a place among the working threads, and ends when its function returns. When too many
are abandoned, new work is refused: the program is losing threads, and more of them would hide it.

At most one thread is on its way to the queue at any time. It takes a job and wakes the next thread before it begins,
so jobs that wait for something wait side by side, and short ones are done by the thread that is awake. To wake a thread
for each would cost more than the job, and they could only stand in line for the interpreter. In the same manner a loop
is woken once for all jobs that have ended meanwhile.
"""

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from troth.runtime.engine.errors import EngineClosedError, ThreadsExhaustedError

__all__ = ["GRACE", "MAX_RESULT", "Job", "WorkerPool"]

log = logging.getLogger("troth.engine")

GRACE = 1.0
MAX_RESULT = 32_000_000
_IDLE = 10.0  # seconds after which a thread with nothing to do ends


class Job:
    """One call in a worker thread. `value` and `error` are set once `is_done`."""

    __slots__ = (
        "_call",
        "_context",
        "_wake",
        "error",
        "is_abandoned",
        "is_done",
        "is_refused",
        "is_unwanted",
        "name",
        "started_at",
        "thread",
        "value",
    )

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        self.name = name
        self._call = call
        self._context = contextvars.copy_context()  # a Context is entered once at a time, and the caller is in its own
        self._wake: Callable[[], object] | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.started_at: float | None = None
        self.thread = ""
        self.is_done = False
        self.is_abandoned = False
        self.is_refused = False
        self.is_unwanted = False

    def run(self) -> None:
        """Make the call, in the context of whoever asked for it."""
        self.thread = threading.current_thread().name
        self.started_at = time.monotonic()
        try:
            self.value = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001  it belongs to whoever waits for the job
            self.error = error
        self.is_done = True
        if self.is_unwanted:
            self._close_value()
        wake = self._wake
        if wake is not None:
            wake()

    def disown(self) -> None:
        """Say that nobody takes what it returns. A coroutine that comes back is closed: it has not begun."""
        self.is_unwanted = True  # first: whichever thread is second sees what the other one has set
        if self.is_done:
            self._close_value()

    def _close_value(self) -> None:
        if inspect.iscoroutine(self.value):
            self.value.close()

    def refuse(self, error: BaseException) -> None:
        """End it before it has begun."""
        self.error = error
        self.is_refused = True
        self.is_done = True
        if self._wake is not None:
            self._wake()

    def when_done(self, wake: Callable[[], object]) -> None:
        """Call `wake` when it is done, on its thread; here if it is done already."""
        self._wake = wake
        if self.is_done:
            wake()

    def left(self, timeout: float) -> float:
        """Seconds of `timeout` that are left; the time spent waiting for a thread does not count."""
        return timeout if self.started_at is None else self.started_at + timeout - time.monotonic()

    def wait(self, timeout: float | None) -> bool:
        """Block until the job is done, or has worked for `timeout` seconds."""
        finished = threading.Event()
        self._wake = finished.set
        if self.is_done:
            return True
        if timeout is None:
            return finished.wait()
        while (remaining := self.left(timeout)) > 0 and not finished.wait(remaining):
            continue  # it may have begun later than we began to wait
        return self.is_done

    async def await_done(self, timeout: float | None) -> bool:
        """The same for a task. Cancelling it leaves the job running."""
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[None] = loop.create_future()
        ended = _ended.get(loop)
        if ended is None:
            ended = _ended[loop] = _Ended(loop)
        self._wake = partial(ended.add, finished)
        if self.is_done:
            return True
        if timeout is None:
            await finished
            return True
        while (remaining := self.left(timeout)) > 0 and not finished.done():
            await asyncio.wait([finished], timeout=remaining)
        return self.is_done


class _Ended:
    """What has ended and is awaited on one loop."""

    __slots__ = ("_futures", "_is_told", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._futures: deque[asyncio.Future[None]] = deque()
        self._is_told = False

    def add(self, future: "asyncio.Future[None]") -> None:
        """One more; the loop is told if it does not know yet that there is something. From any thread."""
        self._futures.append(future)
        if not self._is_told:
            self._is_told = True
            loop = self._loop()
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # it is closed: nobody waits there any more
                    loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        self._is_told = False  # first: whoever comes after the last one is taken tells the loop again
        futures = self._futures
        while futures:
            future = futures.popleft()
            if not future.done():
                future.set_result(None)


_ended: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Ended]" = weakref.WeakKeyDictionary()


class WorkerPool:
    """A pool of daemon threads: at most `limit` at work, at most `abandoned_limit` given up."""

    def __init__(
        self,
        limit: int = 32,
        abandoned_limit: int = 16,
        name: str = "troth-step",
        *,
        grace: float = GRACE,
        max_result: int | None = None,
    ) -> None:
        self.max_result = max_result
        """Letters of JSON that the result of a step may have; None for no limit."""
        self.grace = grace
        """Seconds that an async call gets to finish its `finally` blocks once it is cancelled."""
        self._limit = limit
        self._abandoned_limit = abandoned_limit
        self._name = name
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._queue: deque[Job] = deque()
        self._threads = 0
        self._idle = 0
        self._is_waking = False  # a thread is on its way to the queue
        self._born = 0
        self._abandoned: set[Job] = set()
        self._is_closed = False

    @property
    def threads(self) -> int:
        """How many threads the pool has now, the abandoned ones not counted."""
        return self._threads

    @property
    def abandoned(self) -> list[str]:
        """What the abandoned threads are stuck in, as `step (thread)`."""
        with self._condition:
            return sorted(f"{job.name} ({job.thread})" for job in self._abandoned)

    def submit(self, job: Job) -> Job:
        """Give `job` to a thread, now or as soon as one is free."""
        with self._condition:
            if self._is_closed:
                raise EngineClosedError(f"{job.name} was not started: the engine is closed.")
            if len(self._abandoned) >= self._abandoned_limit:
                raise self._exhausted(job)
            self._queue.append(job)
            try:
                self._wake_one()
            except RuntimeError:  # the system has no thread left
                if self._threads == 0:
                    self._queue.remove(job)
                    raise
        return job

    def _wake_one(self) -> None:
        """Have a thread come for what is queued, unless one is on its way."""
        if self._is_waking:
            return
        if self._idle:
            self._is_waking = True
            self._condition.notify()
        elif self._threads < self._limit:
            self._spawn()
            self._is_waking = True

    def _exhausted(self, job: Job) -> ThreadsExhaustedError:
        return ThreadsExhaustedError(
            f"{job.name} was not started: {len(self._abandoned)} threads, the maximum, are stuck in steps that "
            "timed out.\n"
            f"They are stuck in {', '.join(sorted({stuck.name for stuck in self._abandoned}))}.\n"
            "A thread cannot be stopped: give those calls their own timeouts, or make them async."
        )

    def _spawn(self) -> None:
        self._born += 1
        threading.Thread(target=self._work, name=f"{self._name}-{self._born}", daemon=True).start()
        self._threads += 1

    def _next(self, *, is_new: bool) -> Job | None:
        """The next job, waiting for it; nothing if there is none for a while, or will be none."""
        with self._condition:
            if is_new:
                self._is_waking = False
            if not self._queue:
                deadline = time.monotonic() + _IDLE
                while not self._queue:
                    remaining = deadline - time.monotonic()
                    if self._is_closed or remaining <= 0:
                        self._threads -= 1
                        return None
                    self._idle += 1
                    try:
                        self._condition.wait(remaining)
                    finally:
                        self._idle -= 1
                        self._is_waking = False
            job = self._queue.popleft()
            if self._queue:
                with contextlib.suppress(RuntimeError):  # the system has no thread left: those that are there go on
                    self._wake_one()
            return job

    def _work(self) -> None:
        is_new = True
        while (job := self._next(is_new=is_new)) is not None:
            is_new = False
            job.run()
            if job.is_abandoned and self._came_back(job):
                return
            del job

    def _came_back(self, job: Job) -> bool:
        with self._condition:
            if job not in self._abandoned:
                return False
            self._abandoned.discard(job)
        log.warning("%s returned after its caller had stopped waiting; its result is ignored.", job.name)
        return True

    def abandon(self, job: Job) -> bool:
        """Give up the thread that is stuck in `job`. Answers no if it has just come back."""
        with self._condition:
            job.is_abandoned = True
            if job in self._queue:
                self._queue.remove(job)
                return True
            if job.is_done:
                return False
            job.disown()
            self._abandoned.add(job)
            self._threads -= 1
            count = len(self._abandoned)
            while self._queue and count >= self._abandoned_limit:  # nobody takes up what has been waiting, either
                waiting = self._queue.popleft()
                waiting.refuse(self._exhausted(waiting))
            if self._queue:
                with contextlib.suppress(RuntimeError):  # the system has no thread left: those that are there go on
                    self._wake_one()
        log.warning(
            "%s did not return in time; its thread %s is abandoned (%d of at most %d).",
            job.name,
            job.thread,
            count,
            self._abandoned_limit,
        )
        return True

    def close(self) -> list[str]:
        """Take no more work. Answers what is still stuck; those threads end with their functions or the process."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        return self.abandoned


_pools: "weakref.WeakSet[WorkerPool]" = weakref.WeakSet()


def _forked() -> None:
    for pool in list(_pools):
        pool._reset()


os.register_at_fork(after_in_child=_forked)
