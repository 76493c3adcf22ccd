"""Follow a stream from a cursor on: every entry once, in order, also those that other processes append."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from troth.runtime.store.errors import CursorTrimmedError
from troth.runtime.store.notifications import Notifier
from troth.runtime.store.port import Store
from troth.runtime.store.records import Event, HistoryEntry
from troth.runtime.store.sqlite.transaction import history_topic, stream_topic

__all__ = ["Follower", "HistoryFollower"]


class Follower:
    """A reader of one stream. `cursor` is the number of the last entry it gave out: start a new one there to go on.

    `take` blocks its thread, `atake` waits on its loop; both mean the same. One caller at a time. Where entries after
    the cursor were cut off from the stream, they raise `CursorTrimmedError`, once, and then go on with what is left.
    """

    def __init__(self, store: Store, stream: str, *, after: int = 0, page: int = 500) -> None:
        self.stream = stream
        self.cursor = after
        self._store = store
        self._page = page
        self._bell = Notifier()
        self._listening = ExitStack()
        self._listening.enter_context(store.listening(self._bell, stream_topic(stream)))

    def take(self, timeout: float | None = None) -> Sequence[Event]:
        """The next entries, waiting for the first of them; none if `timeout` seconds brought none."""
        while True:
            count = self._bell.count
            events = self._next()
            if events or not self._bell.wait(count, timeout):
                return events

    async def atake(self, timeout: float | None = None) -> Sequence[Event]:
        """`take` for a task. A cancelled `atake` has taken nothing."""
        while True:
            count = self._bell.count
            events = self._next()
            if events or not await self._bell.await_ring(count, timeout):
                return events

    def _next(self) -> Sequence[Event]:
        events = self._store.events(self.stream, after=self.cursor, limit=self._page)
        if events and events[0].seq != self.cursor + 1:
            after, self.cursor = self.cursor, events[0].seq - 1
            raise CursorTrimmedError(self.stream, after, events[0].seq)
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


class HistoryFollower:
    """A reader of one run's history. `cursor` is the number of the last entry it gave out. One caller at a time."""

    def __init__(self, store: Store, run_id: str, *, after: int = 0, page: int = 500) -> None:
        self.run_id = run_id
        self.cursor = after
        self._store = store
        self._page = page
        self._bell = Notifier()
        self._seen = 0
        self._listening = ExitStack()
        self._listening.enter_context(store.listening(self._bell, history_topic(run_id)))

    def look(self) -> tuple[bool, Sequence[HistoryEntry]]:
        """Whether the run was over before this look, and the next entries. Over, and no entry: that is all."""
        self._seen = self._bell.count
        run = self._store.run(self.run_id)
        entries = self._store.history(self.run_id, after=self.cursor, limit=self._page)
        if entries:
            self.cursor = entries[-1].seq
        return run is None or run.state.is_over, entries

    def wait(self, timeout: float | None) -> bool:
        """Block this thread until something may have happened since the last look, or for `timeout` seconds."""
        return self._bell.wait(self._seen, timeout)

    async def await_ring(self, timeout: float | None) -> bool:
        """`wait` for a task."""
        return await self._bell.await_ring(self._seen, timeout)

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
