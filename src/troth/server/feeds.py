"""Read each stream of events once, for all who follow it: a reader more costs its own connection and no more reading.

A feed follows one log and keeps its newest events, each made into bytes once. Whoever is behind these reads from the
store by itself, at its own pace. No reader takes anything away from another one.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from troth.bridge import call
from troth.runtime.store import Notifier, Store

__all__ = ["Feed", "Feeds", "Item", "Page", "Source"]

_KEPT = 512  # events that a feed keeps for those who are nearly up to date
_GATHER = 0.05  # seconds in which news gather before they are read, so that a quick log is not read for each entry
_END = 1 << 62  # beyond any number of an event
_LOOK_AGAIN = 5.0  # seconds after which a quiet log is looked at without news


class Item(NamedTuple):
    """One event: its number, its kind and its JSON text."""

    seq: int
    kind: str
    data: str


class Page(NamedTuple):
    """What was read: the events, where the log begins now and ends, and whether it is over with them."""

    items: Sequence[Item]
    first: int
    last: int
    is_over: bool


class Source(Protocol):
    """A log that can be followed."""

    topic: str

    def read(self, after: int) -> Page:
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
        self._kept: deque[Item] = deque(maxlen=_KEPT)
        self._change: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def after(self, cursor: int) -> list[Item] | None:
        """The events after `cursor`, if they are kept; None if they have to be read from the store."""
        if self.last < 0 or cursor > self.last:
            return None
        if cursor == self.last:
            return []
        if not self._kept or self._kept[0].seq > cursor + 1:
            return None
        skipped = max(0, cursor + 1 - self._kept[0].seq)
        return list(self._kept)[skipped:] if skipped else list(self._kept)

    async def wait(self, timeout: float) -> bool:
        """Wait for a change; false if there was none in time."""
        done, _ = await asyncio.wait({self._change}, timeout=timeout)
        return bool(done)

    def wake(self) -> None:
        """Let everybody look again."""
        change, self._change = self._change, asyncio.get_running_loop().create_future()
        if not change.done():
            change.set_result(None)

    async def follow(self, store: Store) -> None:
        """Read what comes, until the log is over or nobody follows it any more."""
        bell = Notifier()
        try:
            with store.listening(bell, self.source.topic):
                while not self.is_over:
                    seen = bell.count
                    # The first look is for the end of the log alone: what came before, each reader reads for itself.
                    page = await call(self.source.read, _END if self.last < 0 else self.last)
                    if self._take(page):
                        continue
                    if await bell.await_ring(seen, _LOOK_AGAIN):
                        await asyncio.sleep(_GATHER)
        except Exception as problem:  # noqa: BLE001  every reader is told of it
            self.problem = problem
            self.wake()

    def _take(self, page: Page) -> bool:
        """Keep what was read; answers whether there may be more at once."""
        is_first = self.last < 0
        if page.items:
            if page.items[0].seq != self.last + 1:
                self._kept.clear()
            self._kept.extend(page.items)
            self.last = page.items[-1].seq
        elif is_first or page.first > self.last + 1:
            self.last = page.last
        self.is_over = page.is_over and self.last >= page.last
        if page.items or is_first or self.is_over:
            self.wake()
        return bool(page.items)


class Feeds:
    """The feeds of one server, by what they follow."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feeds: dict[str, tuple[Feed, asyncio.Task[None]]] = {}
        self.readers = 0

    @asynccontextmanager
    async def following(self, topic: str, source: Callable[[], Source]) -> AsyncIterator[Feed]:
        """The feed of `topic`, which is there as long as anybody follows it."""
        found = self._feeds.get(topic)
        if found is None or found[0].is_over or found[0].problem is not None:
            feed = Feed(source())
            task = asyncio.create_task(feed.follow(self._store), name=f"troth-feed-{topic}")
            found = self._feeds[topic] = feed, task
        feed, task = found
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

    def close(self) -> None:
        """Tell everybody that the server takes its leave."""
        for feed, _ in self._feeds.values():
            feed.is_closing = True
            feed.wake()
