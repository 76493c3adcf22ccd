"""The loop that sent the current worker thread, and how to go back to it.

A function that async code sent to a worker thread may call async code again. The right place for that is the loop it
came from: its clients, locks and connections live there, and cancelling the sender can reach it there.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Protocol, TypeVar

from troth.bridge._crossing.handoff import Handoff
from troth.bridge._errors import BlockedLoopWarning, DeadlockError, LoopGoneError
from troth.bridge._report import warn_at_caller
from troth.bridge._threads.limiter import Limiter
from troth.bridge._where import caller, doing

__all__ = ["Home", "SenderHome", "home_of_this_thread", "run_at_home", "working_for"]

T = TypeVar("T")

_PATIENCE = 1.0  # seconds a home loop may take to turn before somebody is told


class Home(Protocol):
    """A loop in another thread that waits for what this thread does."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop."""

    @property
    def sender(self) -> str:
        """Who sent this thread, in words."""

    @property
    def slots(self) -> Limiter | None:
        """What this thread occupies while it works, and lends while it waits."""

    def adopt(self, task: asyncio.Task[None]) -> None:
        """Let cancelling the sender cancel `task` too. Called on the loop."""

    def adopt_elsewhere(self, cancel: Callable[[], None]) -> Callable[[], None]:
        """Let cancelling the sender call `cancel`, for work on a third loop, until the function returned is called."""


class SenderHome:
    """Home of a worker thread that `bridge.call` sent."""

    sender = "`bridge.call`"

    def __init__(self, loop: asyncio.AbstractEventLoop, slots: Limiter) -> None:
        self.loop = loop
        self.slots: Limiter | None = slots
        self.pid = os.getpid()
        self._is_cancelled = False
        self._cancels: set[Callable[[], object]] = set()

    def adopt(self, task: asyncio.Task[None]) -> None:
        if self._is_cancelled:
            task.cancel()
        self._cancels.add(task.cancel)
        task.add_done_callback(lambda _: self._cancels.discard(task.cancel))

    def adopt_elsewhere(self, cancel: Callable[[], None]) -> Callable[[], None]:
        self._cancels.add(cancel)
        if self._is_cancelled:
            cancel()
        return lambda: self._cancels.discard(cancel)

    def cancel(self) -> None:
        """Cancel what the worker thread is waiting for. Called on the loop."""
        self._is_cancelled = True
        for cancel in tuple(self._cancels):
            cancel()


class AnyioHome:
    """Home of a worker thread that `anyio.to_thread` sent: every sync route of Starlette and FastAPI.

    anyio itself carries a cancelled scope over to the thread's coroutines, but not a cancelled asyncio task; the
    future that the sender awaits is found in the thread's own first frame.
    """

    sender = "`anyio.to_thread.run_sync`"
    slots: Limiter | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop, scope: object) -> None:
        self.loop = loop
        self._scope = scope
        self._awaited = _future_of_anyio_sender(sys._getframe())

    def adopt(self, task: asyncio.Task[None]) -> None:
        self._join_scope(task)
        awaited = self._awaited
        if awaited is None:
            return

        def follow(_: object) -> None:
            if awaited.cancelled():
                task.cancel()

        awaited.add_done_callback(follow)
        task.add_done_callback(lambda _: awaited.remove_done_callback(follow))

    def adopt_elsewhere(self, cancel: Callable[[], None]) -> Callable[[], None]:
        awaited = self._awaited
        if awaited is None:
            return _nothing

        def follow(_: object) -> None:
            if awaited.cancelled():
                cancel()

        self.loop.call_soon_threadsafe(awaited.add_done_callback, follow)
        return lambda: _soon(self.loop, awaited.remove_done_callback, follow)

    def _join_scope(self, task: asyncio.Task[None]) -> None:
        backend = sys.modules.get("anyio._backends._asyncio")
        states, state = getattr(backend, "_task_states", None), getattr(backend, "TaskState", None)
        tasks = getattr(self._scope, "_tasks", None)
        if states is None or state is None or tasks is None:
            return  # an anyio that keeps its scopes elsewhere: cancelling them stops at the thread, as without us
        states[task] = state(None, self._scope)
        tasks.add(task)
        task.add_done_callback(tasks.discard)


class _Local(threading.local):
    home: SenderHome | None = None


_LOCAL = _Local()
_LOST_IN_FORK: list[object] = []


class working_for:  # noqa: N801 - reads as what it is: `with working_for(home):`
    """Mark this thread as sent by `home` while the block runs."""

    __slots__ = ("_before", "_home")

    def __init__(self, home: SenderHome) -> None:
        self._home = home
        self._before: SenderHome | None = None

    def __enter__(self) -> None:
        self._before = _LOCAL.home
        _LOCAL.home = self._home

    def __exit__(self, *_: object) -> None:
        _LOCAL.home = self._before


def home_of_this_thread() -> Home | None:
    """Find the running asyncio loop that sent this thread, if any did. The caller has made sure none runs here."""
    home = _LOCAL.home
    if home is not None:
        return home if home.pid == os.getpid() and home.loop.is_running() else None
    anyio = sys.modules.get("anyio._core._eventloop")
    if anyio is None:
        return None
    token = getattr(anyio.threadlocals, "current_token", None)
    loop = getattr(token, "native_token", token)  # before anyio 4.11 the token was the loop itself
    if not isinstance(loop, asyncio.AbstractEventLoop) or not loop.is_running():
        return None  # not a worker of anyio, or one of trio's, where no asyncio coroutine can go
    if any(loop is lost for lost in _LOST_IN_FORK):
        return None
    return AnyioHome(loop, getattr(anyio.threadlocals, "current_cancel_scope", None))


def run_at_home(
    home: Home, work: Coroutine[object, object, T], timeout: float | None, deadlock_after: float | None
) -> T:
    """Run `work` on the loop that sent this thread, and wait for it here."""
    handoff = Handoff(work, home.loop, timeout)
    is_reported = False

    def overdue(seconds: float) -> BaseException | None:
        nonlocal is_reported
        if home.loop.is_closed() or not home.loop.is_running():
            return LoopGoneError(
                f"the loop that sent this thread through {home.sender} has stopped before `{_name(work)}` ended.\n"
                "No loop is left to run it. Wait for the worker thread before the loop ends."
            )
        if handoff.is_picked_up:
            return None
        stuck_at = doing(getattr(home.loop, "_thread_id", None))
        if deadlock_after is not None and seconds >= deadlock_after:
            return DeadlockError(
                f"`{_name(work)}` was given {seconds:.1f} s ago to the loop that sent this worker thread; it "
                f"has been blocked since.\n  this thread waits at    {caller(sys._getframe())}\n"
                f"  the loop is blocked at  {stuck_at}\nThe coroutine was not started. Do not block that loop."
            )
        if seconds >= _PATIENCE and not is_reported:
            is_reported = True
            warn_at_caller(
                sys._getframe(),
                f"the loop that sent this worker thread has been blocked since `{_name(work)}` was given to it; "
                f"it is blocked at {stuck_at}. If that code waits for this thread, neither side ends: "
                "`deadlock_after=` makes "
                "it an error.",
                BlockedLoopWarning,
            )
        return None

    try:
        handoff.send(home.adopt)
    except RuntimeError as closed:
        work.close()
        raise LoopGoneError(
            f"the loop that sent this thread through {home.sender} is closed, so `{_name(work)}` was not started."
        ) from closed
    slots = home.slots
    if slots is None:
        return handoff.outcome(lambda: overdue)
    slots.give_back()
    try:
        return handoff.outcome(lambda: overdue)
    finally:
        slots.take_back()


def _future_of_anyio_sender(frame: FrameType | None) -> "asyncio.Future[object] | None":
    backend = sys.modules.get("anyio._backends._asyncio")
    worker = getattr(backend, "WorkerThread", None)
    run = getattr(getattr(worker, "run", None), "__code__", None)
    while frame is not None and frame.f_code is not run:
        frame = frame.f_back
    future = frame.f_locals.get("future") if frame is not None else None
    return future if isinstance(future, asyncio.Future) else None


def _soon(
    loop: asyncio.AbstractEventLoop,
    function: Callable[[Callable[[object], None]], object],
    follow: Callable[[object], None],
) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, follow)


def _nothing() -> None:
    """Nothing was adopted, so nothing has to be let go."""


def _name(work: object) -> str:
    return str(getattr(work, "__qualname__", type(work).__qualname__))


def _forget_lost_loops() -> None:
    """In a forked child the thread of the home loop does not exist, though the loop object says it runs."""
    anyio = sys.modules.get("anyio._core._eventloop")
    token = getattr(getattr(anyio, "threadlocals", None), "current_token", None)
    _LOST_IN_FORK[:] = [getattr(token, "native_token", token)] if token is not None else []
    _LOCAL.home = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lost_loops)
