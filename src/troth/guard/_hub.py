"""Bring each incident to everybody who watches, once.

There is one hub in a process. The first watcher puts the hooks into place, the last one to leave takes them out; each
watcher hears everything that happens while it watches, so a `watch()` inside another tells both.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from troth.guard._describe import Coroutine, coroutine_incident
from troth.guard._heap_scan import is_unbegun
from troth.guard._origin import Tracking
from troth.guard._task_hooks import TaskHooks
from troth.guard._telemetry import add_event
from troth.guard._unawaited_hook import UnawaitedHook, unawaited_hook
from troth.guard._watchdog import Watchdog
from troth.guard.incident import Incident

__all__ = ["HUB", "Hub", "Watcher"]


class Watcher(Protocol):
    """Somebody who wants to know. Called in any thread, often within a finalizer: it must neither wait nor raise."""

    @property
    def depth(self) -> int:
        """How many frames of origin this watcher wants."""

    @property
    def blocked(self) -> float | None:
        """After how many seconds a loop counts as blocked; None: blocked loops are of no interest."""

    @property
    def generators(self) -> bool:
        """Whether async generators that nobody iterated are of interest."""

    def notice(self, incident: Incident) -> bool:
        """Take in one incident; true where it has been said aloud, so that Python need not repeat it."""


class Hub:
    """The one place through which every incident of the process passes."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._watchers: tuple[Watcher, ...] = ()
        self._ear: UnawaitedHook | None = None
        self._loop_ear = TaskHooks(self._task_lost)
        self._watchdog: Watchdog | None = None
        self._reported: dict[int, tuple[object, object]] = {}
        self._telling = threading.local()
        self.tracking = Tracking()

    def join(self, watcher: Watcher) -> None:
        """Let `watcher` hear everything from now on."""
        with self._lock:
            self._watchers = (*self._watchers, watcher)
            self._settle()

    def leave(self, watcher: Watcher) -> None:
        """Let it go; the last one to leave takes the hooks out."""
        with self._lock:
            self._watchers = tuple(remaining for remaining in self._watchers if remaining is not watcher)
            self._settle()

    def refresh(self) -> None:
        """Bring back what the program has pushed aside since: this thread's depth, the filter of the way round."""
        self.tracking.here()
        if self._ear is not None:
            self._ear.open()
            self._loop_ear.open()

    def _settle(self) -> None:
        if self._watchers and self._ear is None:
            self._ear = unawaited_hook(self._never_awaited)
            self._ear.open()
            self._loop_ear.open()
        self.tracking.set(max((watcher.depth for watcher in self._watchers), default=0))
        self._settle_watchdog()
        if not self._watchers and self._ear is not None:
            self._ear.close()
            self._loop_ear.close()
            self._ear = None
            self._reported.clear()

    def _settle_watchdog(self) -> None:
        thresholds = [watcher.blocked for watcher in self._watchers if watcher.blocked is not None]
        threshold = min(thresholds, default=None)
        if self._watchdog is not None and self._watchdog.threshold != threshold:
            self._watchdog.stop()
            self._watchdog = None
        if threshold is not None and self._watchdog is None:
            self._watchdog = Watchdog(threshold, self.tell, self._loop_ear.open)
            self._watchdog.start()

    def tell(self, incident: Incident, context: object = None) -> bool:
        """Bring `incident` to everybody. Losses made by the watchers themselves while they listen go to Python."""
        if getattr(self._telling, "now", False):
            return False
        self._telling.now = True
        try:
            add_event(incident, context)
            answers = [watcher.notice(incident) for watcher in self._watchers if _concerns(watcher, incident)]
        finally:
            self._telling.now = False
        return any(answers)

    def has_been_reported(self, awaitable: object) -> bool:
        """Whether this very awaitable was reported already; asking forgets it, for it is asked as the thing dies."""
        reported = self._reported.get(id(awaitable))
        if reported is None or reported[0] is not _origin_of(awaitable) or reported[1] is not _code_of(awaitable):
            return False
        del self._reported[id(awaitable)]
        return True

    def mark_reported(self, awaitable: object) -> None:
        """Remember that `awaitable`, which is still alive, has been reported, so that its end is not reported again.

        An id alone may be used again by another object; the origin kept here cannot be, as long as we keep it.
        """
        self._reported[id(awaitable)] = (_origin_of(awaitable), _code_of(awaitable))

    def _never_awaited(self, coroutine: Coroutine) -> bool:
        return self.has_been_reported(coroutine) or self.tell(coroutine_incident(coroutine))

    def _task_lost(self, incident: Incident, awaitable: Any) -> None:
        if self.has_been_reported(awaitable):
            return
        coroutine: Any = awaitable.get_coro() if hasattr(awaitable, "get_coro") else None
        if incident.kind == "task" and hasattr(coroutine, "cr_frame") and is_unbegun(coroutine):
            self.mark_reported(coroutine)  # a task that never began takes its coroutine along: one loss, not two
        self.tell(incident)

    @contextmanager
    def watched_by(self, watcher: Watcher) -> Iterator[None]:
        """`join` now, `leave` at the end of the block."""
        self.join(watcher)
        try:
            yield
        finally:
            self.leave(watcher)


def _concerns(watcher: Watcher, incident: Incident) -> bool:
    if incident.kind == "generator":
        return watcher.generators
    if incident.kind != "blocked":
        return True
    return watcher.blocked is not None and (incident.seconds or 0.0) >= watcher.blocked


def _origin_of(awaitable: Any) -> object:
    inner = awaitable.get_coro() if hasattr(awaitable, "get_coro") else awaitable
    return getattr(inner, "cr_origin", None)


def _code_of(awaitable: Any) -> object:
    inner = awaitable.get_coro() if hasattr(awaitable, "get_coro") else awaitable
    return getattr(inner, "cr_code", None) or getattr(inner, "ag_code", None)


HUB = Hub()
