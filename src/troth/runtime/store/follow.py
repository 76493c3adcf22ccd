"""Knows how to follow a stream from a cursor on: every entry once, in order, also those that other processes append."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from troth.runtime.store.notices import Bell
from troth.runtime.store.port import Store
from troth.runtime.store.records import Event
from troth.runtime.store.transaction import stream_topic

__all__ = ["Follower"]


class Follower:
    """A reader of one stream. `cursor` is the number of the last entry it gave out: start a new one there to go on.

    `take` blocks its thread, `atake` waits on its loop; both mean the same. One caller at a time.
    """

    def __init__(self, store: Store, stream: str, *, after: int = 0, page: int = 500) -> None:
        self.stream = stream
        self.cursor = after
        self._store = store
        self._page = page
        self._bell = Bell()
        self._listening = ExitStack()
        self._listening.enter_context(store.listening(self._bell, stream_topic(stream)))

    def take(self, timeout: float | None = None) -> Sequence[Event]:
        """The next entries, waiting for the first of them; none if `timeout` seconds brought none."""
        while True:
            seen = self._bell.count
            events = self._next()
            if events or not self._bell.wait(seen, timeout):
                return events

    async def atake(self, timeout: float | None = None) -> Sequence[Event]:
        """`take` for a task. A cancelled `atake` has taken nothing."""
        while True:
            seen = self._bell.count
            events = self._next()
            if events or not await self._bell.await_ring(seen, timeout):
                return events

    def _next(self) -> Sequence[Event]:
        events = self._store.events(self.stream, after=self.cursor, limit=self._page)
        if events:
            self.cursor = events[-1].seq
        return events

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
