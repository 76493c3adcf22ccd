"""Tell callbacks what happens in runs: in order, each event once, and without harm to the run.

A callback hears events after they are kept, never before. One that raises is told in the log, and the first time in the
run's own history, as an event; it is called with the next event all the same. Which color a callback has is decided
when it is given.

`EventThread` tells callbacks of any number of runs on one thread of its own: sync ones are called there, async ones run
to their end there. `follow_here` tells them from a task: async ones are awaited on its loop, sync ones are called in a
worker thread, so that one that blocks does not block the loop.
"""

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from troth import bridge
from troth.color import Color
from troth.errors import TrothError
from troth.runtime.conversations.callbacks import checked
from troth.runtime.store import HistoryEntry, Notifier
from troth.runtime.workflows.record.run_events import EventReader, RunEvent

__all__ = ["Callback", "EventThread", "Follow", "RunSource", "callbacks_of", "follow_here", "leave_here"]

log = logging.getLogger("troth.runtime")

Callback = Callable[[RunEvent], Any]

_GRACE = 5.0  # seconds that whoever waits for a run gives a callback to return; then the run is returned without it
_LOOK_AGAIN = 1.0  # seconds after which runs are looked at without news


class RunSource(Protocol):
    """Where the events of runs come from, and where a callback's failure goes."""

    def history(self, run_id: str, *, after: int) -> Sequence[HistoryEntry]:
        """The next entries of a run's history; none if there are none yet."""

    def reader(self, run_id: str) -> EventReader:
        """What makes events of the entries of a run that has a history."""

    def is_over(self, run_id: str) -> bool:
        """Whether nothing more happens to the run by itself."""

    def listen(self, bell: Notifier, run_id: str) -> Any:
        """Ring `bell` when the history of the run grows, as long as the answer is entered."""

    def callback_failed(self, run_id: str, name: str, error: BaseException) -> None:
        """Write down that a callback raised."""


def callbacks_of(on_event: "Callback | Sequence[Callback] | None") -> tuple[Callback, ...]:
    """What was given as `on_event`: one function or several, each of a color that is known."""
    if on_event is None:
        return ()
    return checked([on_event] if callable(on_event) else on_event)  # type: ignore[arg-type, return-value, list-item]


class Follow:
    """Some callbacks that follow one run, from the event after number `cursor` on.

    They follow it until they are told to leave; `until_over` lets them leave by themselves when the run is over.
    """

    def __init__(
        self, run_id: str, cursor: int, callbacks: Sequence[Callback], source: RunSource, *, until_over: bool = False
    ) -> None:
        self.run_id = run_id
        self.cursor = cursor
        self.is_leaving = False
        self.done = threading.Event()
        self.bell = Notifier()
        self.calls = 0  # how many have returned, so that whoever waits sees that it goes on
        self._callbacks = callbacks
        self._source = source
        self._until_over = until_over
        self._reader: EventReader | None = None
        self._has_failed: set[int] = set()

    def events(self) -> Iterator[RunEvent]:
        """What is new, as far as it is there."""
        while entries := self._source.history(self.run_id, after=self.cursor):
            for entry in entries:
                self.cursor = entry.seq
                yield self.event_of(entry)

    def event_of(self, entry: HistoryEntry) -> RunEvent:
        """The event that an entry tells."""
        if self._reader is None:
            self._reader = self._source.reader(self.run_id)
        return self._reader.of(entry)

    def is_at_its_end(self) -> bool:
        """Whether nothing more is to be told, once there is nothing new. Ask before looking for news."""
        return self.is_leaving or (self._until_over and self._source.is_over(self.run_id))

    def tell(self, event: RunEvent) -> None:
        """Call every callback, on this thread."""
        for callback in self._callbacks:
            try:
                result = callback(event) if bridge.color_of(callback) is Color.SYNC else bridge.run(callback, event)
                if inspect.isawaitable(result):
                    bridge.run(_awaited(result))
            except BaseException as error:  # noqa: BLE001  user code; told, and nobody is harmed
                self._failed(callback, event, error)
            self.calls += 1

    async def atell(self, event: RunEvent) -> None:
        """Call every callback, on this loop or beside it."""
        for callback in self._callbacks:
            try:
                await bridge.call(callback, event)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                await bridge.call(self._failed, callback, event, error)
            except BaseException as error:  # noqa: BLE001  user code; told, and nobody is harmed
                await bridge.call(self._failed, callback, event, error)
            self.calls += 1

    def _failed(self, callback: Callback, event: RunEvent, error: BaseException) -> None:
        name = getattr(callback, "__qualname__", repr(callback))
        log.error("The callback %s raised over event %d of run %r.", name, event.seq, event.run_id, exc_info=error)
        if id(callback) in self._has_failed or event.what == "callback failed":
            return  # one that always raises would be told of its own failing forever
        self._has_failed.add(id(callback))
        try:
            self._source.callback_failed(self.run_id, name, error)
        except TrothError as problem:
            log.warning("That a callback of run %r raised could not be recorded: %s", self.run_id, problem)


async def _awaited(value: Any) -> Any:
    return await value


async def follow_here(follow: Follow, source: RunSource) -> None:
    """Tell the callbacks of `follow` from this task until they have heard all of it; `is_leaving` ends it sooner."""
    bell = follow.bell
    try:
        with source.listen(bell, follow.run_id):
            while True:
                rings = bell.count
                is_end = await bridge.call(follow.is_at_its_end)
                entries = await bridge.call(lambda: source.history(follow.run_id, after=follow.cursor))
                for entry in entries:
                    follow.cursor = entry.seq
                    await follow.atell(await bridge.call(follow.event_of, entry))
                if not entries:
                    if is_end:
                        return
                    await bell.await_ring(rings, _LOOK_AGAIN)
    finally:
        follow.done.set()


async def leave_here(follow: Follow, task: "asyncio.Task[None]") -> None:
    """The run is over, or left: wait until the callbacks have heard of it, but for none that does not return."""
    follow.is_leaving = True
    follow.bell.ring()
    calls = -1
    while not task.done() and calls != follow.calls:
        calls = follow.calls
        await asyncio.wait([task], timeout=_GRACE)
    if not task.done():
        log.warning(
            "A callback of run %r did not return within %g s; the run no longer waits for it.", follow.run_id, _GRACE
        )
        task.cancel()


class _Ring(Notifier):
    """Says which run has news."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self._tell = tell

    def ring(self) -> None:
        self._tell()


class EventThread:
    """Tells callbacks of runs, on one thread that is there while there is something to follow. From any thread."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._follows: dict[Follow, ExitStack] = {}
        self._ringing: set[Follow] = set()
        self._thread: threading.Thread | None = None

    def follow(self, run_id: str, after: int, callbacks: Sequence[Callback], *, until_over: bool = False) -> Follow:
        """Begin to tell `callbacks` what happens in a run after event number `after`."""
        follow = Follow(run_id, after, callbacks, self._source, until_over=until_over)
        listening = ExitStack()
        listening.enter_context(self._source.listen(_Ring(lambda: self._rang(follow)), run_id))
        with self._lock:
            self._follows[follow] = listening
            self._ringing.add(follow)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="troth-events", daemon=True)
                self._thread.start()
        self._news.set()
        return follow

    def leave(self, follow: Follow) -> None:
        """Wait until the callbacks have heard what there is to hear, but for none that does not return."""
        follow.is_leaving = True
        self._rang(follow)
        if threading.current_thread() is self._thread:
            return  # a callback that runs something itself: it is told of that when it returns
        calls = -1
        while not follow.done.wait(_GRACE) and calls != follow.calls:
            calls = follow.calls
        if not follow.done.is_set():
            log.warning(
                "A callback of run %r did not return within %g s; the run no longer waits for it.",
                follow.run_id,
                _GRACE,
            )

    def close(self) -> None:
        """Tell what there is to tell, and end."""
        with self._lock:
            follows = list(self._follows)
        for follow in follows:
            self.leave(follow)

    def _rang(self, follow: Follow) -> None:
        with self._lock:
            self._ringing.add(follow)
        self._news.set()

    def _work(self) -> None:
        looked = time.monotonic()
        while True:
            self._news.wait(_LOOK_AGAIN)
            self._news.clear()
            with self._lock:
                if not self._follows:
                    self._thread = None
                    return
                ringing, self._ringing = self._ringing & self._follows.keys(), set()
                if time.monotonic() - looked > _LOOK_AGAIN:
                    ringing, looked = set(self._follows), time.monotonic()
            for follow in ringing:
                self._tell(follow)

    def _tell(self, follow: Follow) -> None:
        is_end = True
        try:
            is_end = follow.is_at_its_end()
            for event in follow.events():
                follow.tell(event)
        except Exception as error:
            if not isinstance(error, TrothError):
                log.exception("An event of run %r could not be passed on.", follow.run_id)
            else:
                log.warning("An event of run %r could not be passed on: %s", follow.run_id, error)
        if is_end:
            with self._lock:
                listening = self._follows.pop(follow)
            listening.close()
            follow.done.set()
