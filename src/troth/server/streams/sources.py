"""Read the logs that streams are made of: the events of a run, the entries of a conversation."""

from dataclasses import asdict

from troth.runtime.assemble import Runtime
from troth.runtime.store import Store
from troth.runtime.store.sqlite.transaction import history_topic, stream_topic
from troth.runtime.workflows.record.run_events import RunEventPages
from troth.server.streams.feeds import EventPage, Item
from troth.server.streams.sse import one_line

__all__ = ["LogSource", "RunEventSource"]

_PAGE = 500


class RunEventSource:
    """The events of one run. It is over when the run is."""

    def __init__(self, runtime: Runtime, run_id: str) -> None:
        self.topic = history_topic(run_id)
        self._runtime = runtime
        self._run_id = run_id
        self._pages: RunEventPages | None = None

    def find(self) -> RunEventPages:
        """The pages of the run, found once. Blocks; called in a thread. Raises `UnknownRunError`."""
        if self._pages is None:
            self._pages = self._runtime.event_pages(self._run_id)
        return self._pages

    def read(self, after: int) -> EventPage:
        """The next events."""
        events, last, is_over = self.find().read(after, _PAGE)
        items = [Item(event.seq, event.what.replace(" ", "."), one_line(asdict(event))) for event in events]
        return EventPage(items, 1, last, is_over)


class LogSource:
    """The entries of one stream of the store, a conversation's log for one. It is never over."""

    def __init__(self, store: Store, stream: str) -> None:
        self.topic = stream_topic(stream)
        self._store = store
        self._stream = stream

    def read(self, after: int) -> EventPage:
        """The next entries."""
        last, first = self._store.last_event(self._stream), self._store.trimmed(self._stream) + 1
        if after + 1 < first:
            return EventPage((), first, last, is_over=False)
        events = self._store.events(self._stream, after=after, limit=_PAGE) if after < last else []
        items = [Item(event.seq, event.kind, one_line({**event.payload, "at": event.at})) for event in events]
        return EventPage(items, first, max(last, items[-1].seq if items else 0), is_over=False)
