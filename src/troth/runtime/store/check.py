"""Read a whole store, and tell what in it cannot be read or does not fit together."""

from collections.abc import Iterator
from typing import NamedTuple

from troth.runtime.store.errors import DamagedStoreError
from troth.runtime.store.port import Store
from troth.runtime.store.records import RunState

__all__ = ["Checked", "check_store"]

_PAGE = 500
_STREAMS = "conversation/"
_ALL = 1_000_000_000


class Checked(NamedTuple):
    """How much there is, and what is wrong with it."""

    runs: int
    conversations: int
    audit_entries: int
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether everything can be read."""
        return not self.problems


def check_store(store: Store) -> Checked:
    """Read every run with its history, every conversation, and the numbers of the audit trail. Changes nothing."""
    problems: list[str] = []
    runs = _count(_runs(store, problems))
    conversations = _count(_conversations(store, problems))
    entries = _audit(store, problems)
    counts = store.promises.counts()
    if not counts.is_balanced:
        problems.append(f"the counts of the outbox do not agree: {counts}")
    return Checked(runs, conversations, entries, tuple(problems))


def _count(things: Iterator[str]) -> int:
    return sum(1 for _ in things)


def _runs(store: Store, problems: list[str]) -> Iterator[str]:
    before: tuple[float, str] | None = None
    while page := store.runs(before=before, limit=_PAGE):
        for run in page:
            if run.state is RunState.DAMAGED:
                problems.append(str((run.error or {}).get("message", "")).splitlines()[0])
            try:
                store.recorded(run.id)
            except DamagedStoreError as damage:
                problems.append(str(damage).splitlines()[0])
            yield run.id
        before = page[-1].created_at, page[-1].id


def _conversations(store: Store, problems: list[str]) -> Iterator[str]:
    for stream in store.recent_streams(_STREAMS, _ALL):
        after = 0
        try:
            while events := store.events(stream, after=after):
                after = events[-1].seq
            if after != store.last_event(stream):
                problems.append(f"stream {stream!r} ends at entry {after} of {store.last_event(stream)}")
        except DamagedStoreError as damage:
            problems.append(str(damage).splitlines()[0])
        yield stream


def _audit(store: Store, problems: list[str]) -> int:
    after = 0
    while page := store.read_sessions(lambda rows, after=after: rows.audit(after=after, limit=_PAGE)):  # type: ignore[misc]
        for number, row in enumerate(page, start=after + 1):
            if row.seq != number:
                problems.append(f"entry {number} of the audit trail is missing")
                break
        after = page[-1].seq
    return after
