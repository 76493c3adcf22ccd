"""Read each stream of events once, for all who follow it: a reader more costs its own connection and no more reading.

A feed follows one log and keeps its newest events, each made into bytes once. Whoever is behind these reads from the
store by itself, at its own pace. No reader takes anything away from another one.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from troth.bridge import call
from troth.runtime.store import Notifier, Store
from troth.server.json_response import encoded

__all__ = ["EventPage", "Feed", "Feeds", "Item", "Source", "frame"]

_KEPT = 512  # events that a feed keeps for those who are nearly up to date
_GATHER = 0.05  # seconds in which news gather before they are read, so that a quick log is not read for each entry
_FEW = 16  # readers to whom news are told at once: each telling costs as many writes as there are readers
_END = 1 << 62  # beyond any number of an event
_LOOK_AGAIN = 5.0  # seconds after which a quiet log is looked at without news


class Item:
    """One event: its number, its kind and its JSON text."""

    __slots__ = ("_frame", "data", "kind", "seq")

    def __init__(self, seq: int, kind: str, data: str) -> None:
        self.seq = seq
        self.kind = kind
        self.data = data
        self._frame: bytes | None = None

    @property
    def frame(self) -> bytes:
        """As a stream sends it; made once for all its readers."""
        if self._frame is None:
            self._frame = frame(self.kind, self.data, self.seq)
        return self._frame


def frame(kind: str | None, data: str, number: int | None = None) -> bytes:
    """One frame of a stream. `data` is one line of text, as JSON is."""
    head = "" if number is None else f"id: {number}\n"
    name = "" if kind is None else f"event: {kind}\n"
    return encoded(f"{head}{name}data: {data}\n\n")


class EventPage(NamedTuple):
    """What was read: the events, where the log begins now and ends, and whether it is over with them."""

    items: Sequence[Item]
    first: int
    last: int
    is_over: bool


class Source(Protocol):
    """A log that can be followed."""

    topic: str

    def read(self, after: int) -> EventPage:
        """The next events after number `after`, some of them. Blocks; called in a thread."""


class Feed:
    """One log and everybody who follows it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.last = -1
        """The number of the last event that was read; -1 before the first look."""
        self.is_over = False
        self.is_closing = False
        self.problem: Exception | None = None
        self.readers = 0
        self._told_at = 0.0
        self._is_only_last = getattr(source, "is_only_last", False)
        self._kept: deque[Item] = deque(maxlen=_KEPT)
        self._waiting: dict[asyncio.Future[bool], asyncio.TimerHandle] = {}

    def after(self, cursor: int) -> list[Item] | None:
        """The events after `cursor`, if they are kept; None if they have to be read from the store."""
        if self.last < 0 or cursor > self.last:
            return None
        if cursor == self.last:
            return []
        if self._is_only_last:
            return [self._kept[-1]] if self._kept else None
        if not self._kept or self._kept[0].seq > cursor + 1:
            return None
        skipped = max(0, cursor + 1 - self._kept[0].seq)
        return list(self._kept)[skipped:] if skipped else list(self._kept)

    def wait(self, timeout: float) -> "asyncio.Future[bool]":
        """Wait for a change; false if there was none in time. What changes from this call on is not missed."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()  # of its own: one future for all costs each of them twice
        self._waiting[waiter] = loop.call_later(timeout, _settle, waiter, False)
        waiter.add_done_callback(self._forget)  # which knows neither of them: a ring of objects waits for the collector
        return waiter

    def _forget(self, waiter: "asyncio.Future[bool]") -> None:
        self._waiting.pop(waiter).cancel()

    def wake(self) -> None:
        """Let everybody look again."""
        for waiter in list(self._waiting):
            _settle(waiter, True)

    async def follow(self, store: Store) -> None:
        """Read what comes, until the log is over or nobody follows it any more."""
        bell = Notifier()
        try:
            with store.listening(bell, self.source.topic):
                while not self.is_over:
                    rung = bell.count
                    # The first look is for the end of the log alone: what came before, each reader reads for itself.
                    page = await call(self.source.read, _END if self.last < 0 else self.last)
                    if self._take(page):
                        continue
                    if await bell.await_ring(rung, getattr(self.source, "every", None) or _LOOK_AGAIN):
                        await asyncio.sleep(self._pause())
        except Exception as problem:  # noqa: BLE001  every reader is told of it
            self.problem = problem
            self.wake()

    def _pause(self) -> float:
        """How long to let news gather: some logs are told of only so often, and few readers at once after a silence."""
        apart: float = getattr(self.source, "apart", 0.0)
        if not apart and self.readers <= _FEW:
            return max(0.0, self._told_at + _GATHER - time.monotonic())
        return max(_GATHER, self._told_at + apart - time.monotonic())

    def _take(self, page: EventPage) -> bool:
        """Keep what was read; answers whether there may be more at once."""
        is_first = self.last < 0
        if page.items:
            if page.items[0].seq != self.last + 1:
                self._kept.clear()
            self._kept.extend(page.items)
            self.last = page.items[-1].seq
            self._told_at = time.monotonic()
        elif is_first or page.first > self.last + 1:
            self.last = page.last
        self.is_over = page.is_over and self.last >= page.last
        if page.items or is_first or self.is_over:
            self.wake()
        return bool(page.items)


def _settle(waiter: "asyncio.Future[bool]", is_news: bool) -> None:  # noqa: FBT001
    if not waiter.done():
        waiter.set_result(is_news)


class Feeds:
    """The feeds of one server, by what they follow."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feeds: dict[str, tuple[Feed, asyncio.Task[None]]] = {}
        self.readers = 0

    @asynccontextmanager
    async def following(self, topic: str, source: Callable[[], Source]) -> AsyncIterator[Feed]:
        """The feed of `topic`, which is there as long as anybody follows it."""
        entry = self._feeds.get(topic)
        if entry is None or entry[0].is_over or entry[0].problem is not None:
            feed = Feed(source())
            task = asyncio.create_task(feed.follow(self._store), name=f"troth-feed-{topic}")
            entry = self._feeds[topic] = feed, task
        feed, task = entry
        feed.readers += 1
        self.readers += 1
        try:
            yield feed
        finally:
            self.readers -= 1
            feed.readers -= 1
            if feed.readers == 0:
                task.cancel()
                if self._feeds.get(topic, (None,))[0] is feed:
                    del self._feeds[topic]

    def last_of(self, topic: str) -> int | None:
        """The number of the last event of a log that somebody follows; nothing where nobody does."""
        feed = self._feeds.get(topic, (None,))[0]
        return None if feed is None or feed.last < 0 else feed.last

    def close(self) -> None:
        """Tell everybody that the server takes its leave."""
        for feed, _ in self._feeds.values():
            feed.is_closing = True
            feed.wake()
