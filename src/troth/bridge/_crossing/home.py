"""The loop that sent the current worker thread, and how to go back to it.

A function that async code sent to a worker thread may call async code again. The right place for that is the loop it
came from: its clients, locks and connections live there, and cancelling the sender can reach it there.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from troth.bridge._crossing.anyio_home import AnyioHome, loop_of_anyio_worker
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

    def explain_cancellation(self, error: asyncio.CancelledError) -> asyncio.CancelledError:
        """Give the cancellation as the sender has to see it, to know which of its scopes it is meant for."""


class SenderHome:
    """Home of a worker thread that `bridge.call` sent.

    A cancellation of the sender is passed on once, as asyncio does: to what the thread waits for, or else to what it
    waits for next. What its `finally` blocks wait for afterwards goes on until the sender is cancelled again.
    """

    sender = "`bridge.call`"

    def __init__(self, loop: asyncio.AbstractEventLoop, slots: Limiter) -> None:
        self.loop = loop
        self.slots: Limiter | None = slots
        self.pid = os.getpid()
        self._is_pending = False
        self._cancels: set[Callable[[], object]] = set()

    def adopt(self, task: asyncio.Task[None]) -> None:
        if self._is_pending:
            self._is_pending = False
            task.cancel()
        self._cancels.add(task.cancel)
        task.add_done_callback(lambda _: self._cancels.discard(task.cancel))

    def adopt_elsewhere(self, cancel: Callable[[], None]) -> Callable[[], None]:
        self._cancels.add(cancel)
        if self._is_pending:
            self._is_pending = False
            cancel()
        return lambda: self._cancels.discard(cancel)

    def explain_cancellation(self, error: asyncio.CancelledError) -> asyncio.CancelledError:
        return error  # `bridge.call` waits for the thread, and raises its own cancellation

    def cancel(self) -> None:
        """Cancel what the worker thread is waiting for. Called on the loop."""
        has_reached = [cancel() is not False for cancel in tuple(self._cancels)]  # False: that task has just ended
        self._is_pending = not any(has_reached)


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
    loop = loop_of_anyio_worker()
    if loop is None or not loop.is_running() or any(loop is lost for lost in _LOST_IN_FORK):
        return None
    return AnyioHome(loop)


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
    if slots is not None:
        slots.give_back()
    try:
        return handoff.outcome(lambda: overdue)
    except asyncio.CancelledError as error:
        raise home.explain_cancellation(error) from error.__cause__
    finally:
        if slots is not None:
            slots.take_back()


def _name(work: object) -> str:
    return str(getattr(work, "__qualname__", type(work).__qualname__))


def _forget_lost_loops() -> None:
    """In a forked child the thread of the home loop does not exist, though the loop object says it runs."""
    loop = loop_of_anyio_worker()
    _LOST_IN_FORK[:] = [loop] if loop is not None else []
    _LOCAL.home = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lost_loops)
