"""The loop that sent the current worker thread through anyio: every sync route of Starlette and FastAPI.

anyio keeps the scopes of a worker thread where only its own functions look. They are read here with care: an anyio that
keeps them elsewhere costs the cancellation, and nothing else.
"""

import asyncio
import contextlib
import sys
import weakref
from collections.abc import Callable
from types import FrameType

from troth.bridge._threads.limiter import Limiter

__all__ = ["AnyioHome", "loop_of_anyio_worker"]

_PASSED_ON: "weakref.WeakSet[asyncio.Future[object]]" = weakref.WeakSet()
"""What the senders of anyio awaited when they were cancelled: asyncio cancels once, and so is that passed on once."""


class AnyioHome:
    """Home of a worker thread that `anyio.to_thread` sent: every sync route of Starlette and FastAPI.

    anyio itself carries a cancelled scope over to the thread's coroutines, but not a cancelled asyncio task; the
    future that the sender awaits is found in the thread's own first frame.
    """

    sender = "`anyio.to_thread.run_sync`"
    slots: Limiter | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        thread_locals = getattr(sys.modules.get("anyio._core._eventloop"), "threadlocals", None)
        self._scope: object = getattr(thread_locals, "current_cancel_scope", None)
        self._awaited = _future_of_anyio_sender(sys._getframe())

    def adopt(self, task: asyncio.Task[None]) -> None:
        self._join_scope(task)
        awaited = self._awaited
        if awaited is None:
            return

        def follow(_: object) -> None:
            if awaited.cancelled() and awaited not in _PASSED_ON:
                _PASSED_ON.add(awaited)
                task.cancel()

        awaited.add_done_callback(follow)
        task.add_done_callback(lambda _: awaited.remove_done_callback(follow))

    def adopt_elsewhere(self, cancel: Callable[[], None]) -> Callable[[], None]:
        watcher = _Watcher(self, cancel)
        _soon(self.loop, watcher.begin)
        return lambda: _soon(self.loop, watcher.end)

    def explain_cancellation(self, error: asyncio.CancelledError) -> asyncio.CancelledError:
        if not getattr(self._scope, "_effectively_cancelled", False):
            return error
        # The words of anyio itself, by which its scopes know that a cancellation is theirs.
        return asyncio.CancelledError(f"Cancelled via cancel scope {id(self._scope):x}")

    def _join_scope(self, task: asyncio.Task[None]) -> None:
        backend = sys.modules.get("anyio._backends._asyncio")
        states, state = getattr(backend, "_task_states", None), getattr(backend, "TaskState", None)
        tasks = getattr(self._scope, "_tasks", None)
        if states is None or state is None or tasks is None:
            return  # an anyio that keeps its scopes elsewhere: cancelling them stops at the thread, as without us
        states[task] = state(None, self._scope)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        _deliver_again(self._scope)


class _Watcher:
    """A task on the home loop that is cancelled with the sender, and then cancels work on a third loop."""

    def __init__(self, home: AnyioHome, cancel: Callable[[], None]) -> None:
        self._home = home
        self._cancel = cancel
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    def begin(self) -> None:
        self._task = task = self._home.loop.create_task(self._wait())
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is: the loop may end before the thread
        task.add_done_callback(self._ended)
        self._home.adopt(task)

    def end(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    async def _wait(self) -> None:
        await self._home.loop.create_future()

    def _ended(self, _: object) -> None:
        if not self._is_over:
            self._cancel()


def loop_of_anyio_worker() -> asyncio.AbstractEventLoop | None:
    """Find the asyncio loop, running or not, whose worker thread of anyio this is."""
    anyio = sys.modules.get("anyio._core._eventloop")
    if anyio is None:
        return None
    token = getattr(getattr(anyio, "threadlocals", None), "current_token", None)
    if token is None:
        return None
    loop = getattr(token, "native_token", token)  # before anyio 4.11 the token was the loop itself
    return loop if isinstance(loop, asyncio.AbstractEventLoop) else None  # trio has none where a coroutine can go


def _future_of_anyio_sender(frame: FrameType | None) -> "asyncio.Future[object] | None":
    backend = sys.modules.get("anyio._backends._asyncio")
    worker = getattr(backend, "WorkerThread", None)
    run = getattr(getattr(worker, "run", None), "__code__", None)
    while frame is not None and frame.f_code is not run:
        frame = frame.f_back
    future = frame.f_locals.get("future") if frame is not None else None
    return future if isinstance(future, asyncio.Future) else None


def _deliver_again(scope: object) -> None:
    """Let a scope of anyio that was cancelled before a task came to it cancel that task as well.

    anyio cancels in every turn until nobody is left whom it could reach. Then only a task of its own begins that again.
    """
    while scope is not None:
        if getattr(scope, "_cancel_called", False):
            deliver = getattr(scope, "_deliver_cancellation", None)
            if deliver is not None and getattr(scope, "_cancel_handle", None) is None:
                deliver(scope)
            return
        if getattr(scope, "_shield", False):
            return
        scope = getattr(scope, "_parent_scope", None)


def _soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # closed: nothing is left there to be cancelled, or to cancel
        loop.call_soon_threadsafe(function)
