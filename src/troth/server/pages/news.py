"""Know whether anything has changed of what a page shows, by whichever process.

The numbers of changes are moments in milliseconds, so that they grow across restarts of the server, too: whoever was
away knows an earlier one. A process that dies writes nothing, so what is watched is also looked at without any news.
"""

import hashlib
import time
from collections.abc import Callable

from troth.runtime.conversations.log import stream_of
from troth.runtime.jobs.job_log import stream_of as job_stream
from troth.runtime.store import DamagedStoreError, Store
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.sqlite.transaction import history_topic, stream_topic
from troth.runtime.workflows.execute.waits import approval_signal
from troth.runtime.workflows.registry import FAMILIES
from troth.server.context import ServerContext
from troth.server.errors import ApiError
from troth.server.streams.feeds import EventPage, Item

__all__ = ["NewsSource", "have_of", "news_source"]

_APART = 0.25
_ALL_APART = 0.8  # what all pages follow changes most; with the page in it, it is there within a second
_AT_WORK = 200  # runs at work whose questions are looked at
_ASKED = approval_signal("")
_AUDIT = 0.7  # seconds between two looks at the audit of a session
_OUTPUT = 0.5  # seconds between two looks at what a job prints: that goes to a file, and nothing is committed for it


class NewsSource:
    """Numbers the changes of one thing. `look` answers something that differs when it has changed."""

    is_only_last = True
    """Who comes back needs the last number alone. Numbers have gaps, so whoever is behind would else look for itself:
    fifty readers looked fifty times at each change, and each of them found another one."""

    def __init__(
        self, topic: str, look: Callable[[], object], every: float | None = None, apart: float = _APART, key: str = ""
    ) -> None:
        self.topic = topic
        self.key = key or topic
        """What is followed: all who follow the same share one look."""
        self.every = every
        """Seconds after which it is looked at without news, where that is sooner than usual."""
        self.apart = apart
        """Seconds between two changes that are told, at least: a page costs more than a number."""
        self.look = look
        self._signature: object = None
        self._number = 0

    def read(self, after: int) -> EventPage:
        """The last change, if it came after number `after`. Blocks; called in a thread."""
        signature = self.look()
        if signature != self._signature or not self._number:
            self._signature = signature
            self._number = max(self._number + 1, int(time.time() * 1000))
        items = [Item(self._number, "changed", f'{{"have": "{digest_of(signature)}"}}')] if after < self._number else []
        return EventPage(items, min(after + 1, self._number), self._number, is_over=False)


def digest_of(signature: object) -> str:
    """A short word for what a page was made from: a page that has the same one needs not look again."""
    return hashlib.sha256(repr(signature).encode()).hexdigest()[:16]


def have_of(context: ServerContext, kind: str, thing: str) -> str:
    """The word for how things are now; to be asked before a page is made. Blocks."""
    return digest_of(news_source(context, kind, thing).look())


def news_source(context: ServerContext, kind: str, thing: str) -> NewsSource:
    """What a page follows."""
    store = context.store
    if kind == "run":
        return NewsSource(history_topic(thing), lambda: _run(store, thing))
    if kind == "conversation":
        return NewsSource(stream_topic(stream_of(thing)), lambda: _conversation(store, thing))
    if kind == "job":
        return NewsSource(stream_topic(job_stream(thing)), lambda: _job(context, thing), every=_OUTPUT)
    if kind == "session":
        return NewsSource(changes_topic, lambda: _session(store, thing), every=_AUDIT, key=f"session {thing}")
    if kind == "all":
        return NewsSource(changes_topic, lambda: _everything(store), apart=_ALL_APART)
    raise ApiError(400, "invalid_field", f"There is no stream called {kind[:40]!r}.", param="on")


def _run(store: Store, run_id: str) -> object:
    try:
        run = store.run(run_id)
    except DamagedStoreError as damage:
        return str(damage)  # its page says so, and follows it still: the file may be put right
    return None if run is None else (run.state, run.updated_at, run.is_cancel_requested, store.last_entry(run_id))


def _job(context: ServerContext, job_id: str) -> object:
    job = context.runtime.jobs.get(job_id)
    return job.state, job.output_bytes


def _conversation(store: Store, conversation_id: str) -> object:
    stream = stream_of(conversation_id)
    holder = store.holder(stream)
    return store.last_event(stream), holder is not None and store.is_alive(holder)


def _session(store: Store, session_id: str) -> object:
    """The audit tells of all that happens in a session."""
    return store.read_sessions(lambda rows: (rows.audit_head(), rows.session(session_id), rows.kills(session_id)))


def _everything(store: Store) -> object:
    """The last change, the counts, and what runs at work ask.

    A process that dies writes nothing, and a question that one branch of a run asks is no change of the run's state.
    """
    last, counts = store.lists.changes(limit=1).last, store.lists.counts()
    if not counts.runs.get("running"):
        return last, counts
    at_work = [run.id for run in store.lists.runs(family=FAMILIES, states=["running"], limit=_AT_WORK)]
    return last, counts, store.lists.open_waits(at_work, signal=_ASKED)
