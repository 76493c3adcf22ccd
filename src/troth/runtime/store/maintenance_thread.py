"""Do the store's chores on one thread of its own: heartbeats, checkpoints, commits that a loop gave away.

One daemon thread for each open store, named `troth-store`, started when the first chore comes. A chore that raises is
logged and stays on the list: a heartbeat that failed once must be tried again. No user code runs on it: whatever holds
it up holds up heartbeats, and news of other processes.
"""

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

from troth.runtime.store.errors import StoreError

__all__ = ["Chore", "MaintenanceThread"]

log = logging.getLogger("troth.store")
_threads: "weakref.WeakSet[MaintenanceThread]" = weakref.WeakSet()


class Chore:
    """Something done again and again, `interval` seconds after it was done last."""

    __slots__ = ("due", "interval", "task")

    def __init__(self, task: Callable[[], object], interval: float) -> None:
        self.task = task
        self.interval = interval
        self.due = time.monotonic() + interval


class MaintenanceThread:
    """The thread that does the chores. Every method may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.after_fork()
        _threads.add(self)

    def after_fork(self) -> None:
        """In the child: threads are not forked, so there is none; chores belong to whoever asked in the parent."""
        self._condition = threading.Condition()
        self._soon: deque[Callable[[], object]] = deque()
        self._chores: list[Chore] = []
        self._thread: threading.Thread | None = None
        self._failing: set[Callable[[], object]] = set()
        self._is_closed = False

    def soon(self, task: Callable[[], object]) -> None:
        """Do `task` once, as soon as the thread is free."""
        with self._condition:
            self._soon.append(task)
            self._start()

    def every(self, interval: float, task: Callable[[], object]) -> Chore:
        """Do `task` every `interval` seconds until `stop` is called with what this returns."""
        chore = Chore(task, interval)
        with self._condition:
            self._chores.append(chore)
            self._start()
        return chore

    def stop(self, chore: Chore) -> None:
        """Do it no more. Does not wait for one that is just being done."""
        with self._condition:
            if chore in self._chores:
                self._chores.remove(chore)

    @property
    def is_here(self) -> bool:
        """Whether the caller is a chore."""
        thread = self._thread
        return thread is not None and thread.ident == threading.get_ident()

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._condition.notify()

    def _next(self) -> Callable[[], object] | None:
        """The next task, waiting for it; nothing once closed and everything promised is done."""
        with self._condition:
            while True:
                if self._soon:
                    return self._soon.popleft()
                if self._is_closed:
                    return None
                now = time.monotonic()
                chore = min(self._chores, key=lambda chore: chore.due, default=None)
                if chore is not None and chore.due <= now:
                    chore.due = now + chore.interval
                    return chore.task
                self._condition.wait(None if chore is None else chore.due - now)

    def _work(self) -> None:
        while True:
            task = self._next()
            if task is None:
                return
            try:
                task()
            except StoreError as error:  # a full disk, say: told once, and not again every time it is tried
                if task not in self._failing:
                    log.warning("A maintenance task of the store failed; it will run again when it is due: %s", error)
                if any(chore.task == task for chore in self._chores):
                    self._failing.add(task)
            except Exception:
                log.exception("A maintenance task of the store failed; it will run again when it is due.")
            else:
                self._failing.discard(task)

    def close(self, timeout: float) -> bool:
        """Finish what was asked for, and end the thread. Answers whether it ended in time."""
        with self._condition:
            self._is_closed = True
            self._chores.clear()
            self._condition.notify()
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()


def _forked() -> None:
    for thread in list(_threads):
        thread.after_fork()


os.register_at_fork(after_in_child=_forked)
