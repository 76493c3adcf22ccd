"""How one thread gives a coroutine to a loop in another thread and waits for what comes of it.

One lock carries the news back. `run_coroutine_threadsafe` does the same with two futures, a condition and an extra
turn of the loop, in twice the time; it also lets a `SystemExit` in the coroutine end the loop for everybody.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from troth.bridge._crossing.context import bring_back, take_along
from troth.bridge._errors import DeadlockError, RunTimeoutError
from troth.bridge._loops.loop import ThreadLoop
from troth.bridge._loops.other_loop import note_other_loop
from troth.bridge._threads.waiting_threads import park, unpark, waits_for_me
from troth.bridge._where import caller, doing

__all__ = ["Handoff", "within"]

T = TypeVar("T")

_GLANCE = 0.25  # seconds between two looks at whether the other loop is still there
_PATIENCE = 1.0  # seconds a loop may take to turn before it counts as held up
_LAST_GRACE = 0.3  # seconds a withdrawn coroutine gets to be picked up and closed by its loop


class Handoff(Generic[T]):
    """A coroutine on its way to another thread's loop, and its outcome on the way back."""

    def __init__(
        self, work: Coroutine[object, object, T], loop: asyncio.AbstractEventLoop, timeout: float | None = None
    ) -> None:
        self._work = work
        self._loop = loop
        self._timeout = timeout
        self._context = take_along("asyncio")
        self._gate = threading.Lock()
        self._gate.acquire()
        self._task: asyncio.Task[None] | None = None
        self._value: T
        self._error: BaseException | None = None
        self._withdrawn = False
        self._is_asked = self._has_answered = False
        self.is_picked_up = False
        """The other loop has turned and begun the work."""

    def send(self, adopt: Callable[[asyncio.Task[None]], None] | None = None) -> None:
        """Put the work on the other loop, which calls `adopt` with the task it becomes. RuntimeError: it is closed."""
        self._loop.call_soon_threadsafe(self._start, adopt)

    def outcome(self, patience: Callable[[], Callable[[float], BaseException | None]]) -> T:
        """Wait for the end and give the result or raise the exception, the very object the coroutine raised.

        If nothing comes back for a while, what `patience()` makes is asked now and then with the seconds waited; what
        it returns is raised. Whatever ends the wait early (that, or Ctrl-C) cancels the work first and waits for its
        `finally` blocks.
        """
        try:
            if not self._gate.acquire(timeout=_GLANCE):
                self._keep_waiting(patience())
        except BaseException:
            self.cancel()
            self._wait_for_end()
            raise
        finally:
            bring_back(self._context)
        if self._error is not None:
            note_other_loop(self._error)
            try:
                raise self._error
            finally:
                self._error = None  # the traceback holds this frame, and this frame would hold the traceback
        return self._value

    def cancel(self) -> None:
        """Cancel the work, from any thread."""
        self._withdrawn = True
        try:
            self._loop.call_soon_threadsafe(self._cancel_task)
        except RuntimeError:  # closed: nothing of it runs any more
            self._work.close()

    def _keep_waiting(self, overdue: Callable[[float], BaseException | None]) -> None:
        began = time.monotonic() - _GLANCE
        target: int | None = getattr(self._loop, "_thread_id", None)
        park(target)
        try:
            while True:
                waited = time.monotonic() - began
                error = overdue(waited) or self._circle(target)
                if error is None and self._timeout is not None and waited > self._timeout:
                    error = self._too_late(waited - self._timeout)
                if error is not None:
                    raise error
                if self._gate.acquire(timeout=_GLANCE):
                    return
        finally:
            unpark()

    def _circle(self, target: int | None) -> DeadlockError | None:
        if self.is_picked_up or not waits_for_me(target):
            return None
        return DeadlockError(
            f"`{getattr(self._work, '__qualname__', self._work)}` waits for a loop whose thread waits for this one.\n"
            f"  this thread waits at  {caller(sys._getframe())}\n  that thread waits at  {doing(target)}\n"
            "Neither can continue, so this call was given up before it started. Await on one of the two sides."
        )

    def _too_late(self, seconds: float) -> RunTimeoutError | None:
        """The other loop has its own timer; this is for a loop that does not turn, and so cannot look at it."""
        if not self._is_asked:
            self._is_asked = True
            self._loop.call_soon_threadsafe(self._answer)
        if self._has_answered or seconds < _PATIENCE:
            return None
        return RunTimeoutError(
            f"no result in {self._timeout} s, and the loop that should produce it is blocked; it is at "
            f"{doing(getattr(self._loop, '_thread_id', None))}. The coroutine is cancelled when the loop continues."
        )

    def _answer(self) -> None:
        self._has_answered = True

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + _LAST_GRACE
        while not self._gate.acquire(timeout=0.05):
            is_turning = self.is_picked_up and (self._has_answered or not self._is_asked)
            if self._loop.is_closed() or not (is_turning or time.monotonic() < deadline):
                return  # `_start` closes the coroutine if that loop ever turns again

    def _start(self, adopt: Callable[[asyncio.Task[None]], None] | None) -> None:
        if self._withdrawn:
            self._work.close()
            self._error = asyncio.CancelledError()
            self._gate.release()
            return
        body = self._body()
        task: asyncio.Task[None]
        if isinstance(self._loop, ThreadLoop):
            self._task = task = self._loop.create_main_task(body, self._context)
        else:
            self._task = task = self._loop.create_task(body, context=self._context)
        if adopt is not None:
            adopt(task)
            task.add_done_callback(self._ended)

    async def _body(self) -> None:
        self.is_picked_up = True
        try:
            if self._withdrawn:
                self._work.close()
                raise asyncio.CancelledError
            if self._timeout is None:
                self._value = await self._work
            else:
                self._value = await within(self._work, self._timeout)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who raises it in the caller's own thread
            self._error = error
        finally:
            self._gate.release()

    def _ended(self, _: object) -> None:
        if not self.is_picked_up:  # cancelled before its first step, so `_body` never ran
            self._work.close()
            self._error = asyncio.CancelledError()
            self._gate.release()

    def _cancel_task(self) -> None:
        if self._task is not None and self.is_picked_up:
            self._task.cancel()


async def within(work: Coroutine[object, object, T], seconds: float) -> T:
    """Await `work` for so many seconds at most, in the current task."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError as late:
        if not limit.expired():
            raise  # the coroutine's own
        raise RunTimeoutError(f"no result in {seconds} s; the coroutine was cancelled") from late
