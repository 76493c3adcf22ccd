"""The event loop that the bridge drives on the caller's own thread."""

import asyncio
import os
import selectors
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import Context
from functools import partial
from typing import Any, Protocol, TypeVar

from troth.bridge._errors import InterpreterExitError
from troth.bridge._threads.waiting_threads import park
from troth.bridge._threads.workers import at_work

__all__ = ["ThreadLoop", "Watch", "is_exiting"]

T = TypeVar("T")

# Looks at an empty list of files that a busy loop leaves out before the next one. Each look also lets other threads run
# and reads what a signal wrote into the pipe, so it can't be left out for good.
_MOST_LEFT_OUT = 15


class Watch(Protocol):
    """Somebody who wants to look at a loop now and then, also while it sleeps."""

    next_look: float
    """When, on the clock of `time.monotonic`."""
    starved_for: float
    """Seconds the loop has slept with no timer, I/O or ready callback that could wake it. Kept by the loop."""

    def look(self) -> None:
        """Look. What is raised here ends the loop's run."""


class _WatchedSelector(selectors.DefaultSelector):
    """Where a loop spends its waiting: whoever wants to watch it does so from here, and needs no thread."""

    def __init__(self) -> None:
        super().__init__()
        self._files = self.get_map()
        self._left_out = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for the loop's files, or look at them where callbacks are ready and `timeout` is 0.

        Where there is no file but the loop's own wake-up pipe, such a look is left out: what wakes a loop is among its
        ready callbacks already. A short call on a loop of its own would spend a quarter of its time on it.
        """
        return [] if timeout == 0 and self._can_leave_out() else super().select(timeout)

    def _can_leave_out(self) -> bool:
        if self._left_out < _MOST_LEFT_OUT and len(self._files) <= 1:
            self._left_out += 1
            return True
        self._left_out = 0
        return False

    def watch(self, watch: Watch | None) -> None:
        """Sleep no longer than `watch` allows. Without one, this is the standard library's selector, at its speed."""
        if watch is not None:
            self.select = partial(self._select_watched, watch)  # type: ignore[method-assign]
        else:
            vars(self).pop("select", None)

    def _select_watched(self, watch: Watch, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0 and self._can_leave_out():
            watch.starved_for = 0.0
            return []
        until_look = max(watch.next_look - time.monotonic(), 0)
        if timeout is not None and timeout < until_look:
            watch.starved_for = 0.0
            return super().select(timeout)
        is_starved = timeout is None and self.is_alone
        events = super().select(until_look)
        watch.starved_for = watch.starved_for + until_look if is_starved and not events else 0.0
        if not events or until_look == 0:  # also while files keep it busy
            watch.look()
        return events

    @property
    def is_alone(self) -> bool:
        """No file is watched but the loop's own wake-up pipe."""
        return len(self._files) <= 1


class ThreadLoop(asyncio.SelectorEventLoop):
    """A selector loop that can be watched, keeps the tasks made on it, and knows about forks and interpreter exit."""

    def __init__(self) -> None:
        self._sight = _WatchedSelector()
        self.is_copy = False
        """This process was forked from the one the loop belongs to."""
        _LOOPS.add(self)
        self._own_workers: ThreadPoolExecutor | None = None
        self.spawned: set[asyncio.Task[Any]] = set()
        """Tasks that user code started here and that have not ended. The loop itself holds them only weakly."""
        self.residents: set[asyncio.Task[Any]] = set()
        """Tasks of open iterators and contexts, which live on this loop between two calls."""
        self.reported: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        """Those of them whose user was told that they stand still."""
        super().__init__(self._sight)

    def watch(self, watch: Watch | None) -> None:
        """Let `watch` look at this loop, or nobody."""
        self._sight.watch(watch)

    @property
    def has_open_generators(self) -> bool:
        """An async generator was begun here and has not ended; where asyncio no longer tells, assume so."""
        return bool(getattr(self, "_asyncgens", True)) or bool(getattr(self, "_ready", True))

    def create_main_task(self, work: Generator[Any, Any, T] | Any, context: Context) -> asyncio.Task[T]:
        """Make the task whose end the caller waits for; it is nobody's leftover."""
        return super().create_task(work, context=context)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **options)
        self.spawned.add(task)
        task.add_done_callback(self.spawned.discard)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        try:
            if executor is None:
                executor = self._workers()
                func, args = at_work, (partial(func, *args),)
            return super().run_in_executor(executor, func, *args)
        except RuntimeError as refused:
            if not is_exiting():
                raise
            raise InterpreterExitError(
                "the coroutine needs a worker thread (as every DNS lookup does), and the interpreter is shutting down: "
                "it starts no more threads.\nRun it before the program ends."
            ) from refused

    def set_default_executor(self, executor: ThreadPoolExecutor) -> None:  # type: ignore[override]
        self._own_workers = executor
        super().set_default_executor(executor)

    def close(self) -> None:
        """Close the loop, leaving alone what a forked child shares with its parent."""
        if self.is_copy:
            self._forsake()
        else:
            super().close()

    def _workers(self) -> ThreadPoolExecutor:
        if self._own_workers is None:
            self.set_default_executor(ThreadPoolExecutor(thread_name_prefix="troth-loop", initializer=park))
            assert self._own_workers is not None
        return self._own_workers

    def _forsake(self) -> None:
        # The kernel's list of watched files is shared with the parent. Taking our files off it, as closing does, would
        # take them off the parent's loop; so the descriptors are closed and the list is not touched.
        if self.is_closed():
            return
        kernel_list = getattr(self._sight, "_selector", None)
        if kernel_list is not None and hasattr(kernel_list, "close"):
            kernel_list.close()
        for name in ("_ssock", "_csock"):
            end = getattr(self, name, None)
            if end is not None:
                end.close()
        self._closed = True


def is_exiting() -> bool:
    """Say whether the interpreter has ended its threads: `atexit` functions and what comes after them."""
    return sys.is_finalizing() or not threading.main_thread().is_alive()


_LOOPS: "weakref.WeakSet[ThreadLoop]" = weakref.WeakSet()


def _mark_copies() -> None:
    for loop in _LOOPS:
        loop.is_copy = True
    _LOOPS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_copies)  # before the hooks of modules that import this one
