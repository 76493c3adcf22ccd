"""Count what a store tells: the same events that everything else is read off, so the numbers survive a restart.

Runs, promises and deliveries are counted by the store. What was said in conversations is folded, entry by entry, and
the fold is kept in the store from time to time with the place it has come to: a scrape reads only what is new.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troth.runtime.conversations.transcript import PREFIX, used_in
from troth.runtime.promises import Outbox
from troth.runtime.store import DamagedStoreError, Event, Store, Transaction, commit_point

__all__ = ["Metrics", "Sample"]

log = logging.getLogger("troth.telemetry")

KEEP = commit_point("telemetry.metrics", "what was counted of conversations, and how far")

_META = "metrics"
_KEEP_EVERY = 10.0  # seconds between two times that the fold is kept
_PAGE = 2000
_BEGUN = ("run", "conversation", "session", "response")


@dataclass(frozen=True, slots=True)
class Sample:
    """One number. `metric` is a key of the table of names, `label` the value of its label, if it has one."""

    metric: str
    value: int
    label: str | None = None


class Metrics:
    """The numbers of one store, exact at every look. May be asked from any thread."""

    def __init__(self, store: Store, outbox: Outbox) -> None:
        self._store = store
        self._outbox = outbox
        self._lock = threading.Lock()
        self._cursor = 0
        self._counts: Counter[str] = Counter()
        self._is_loaded = False
        self._kept_at = 0.0

    def look(self) -> list[Sample]:
        """All numbers, as of now. Reads what is new since the last look."""
        runs, begun_by_kind, turns = self._store.read_server(
            lambda rows: (rows.runs_by_state(), rows.count(_BEGUN), len(rows.open_turns()))
        )
        samples = [Sample("runs", count, state) for state, count in sorted(runs.items())]
        samples += [Sample("begun", count, kind) for kind, count in begun_by_kind.items()]
        samples += [Sample("turns_open", turns)]
        states = self._store.promises.states()
        samples += [Sample("promises", count, state) for state, count in sorted(states.items())]
        counts = self._outbox.counts()
        samples += [
            Sample("promised", counts.promised),
            Sample("delivered", counts.delivered),
            Sample("expired", counts.expired),
            Sample("dead", counts.dead),
            Sample("owed", counts.stored),
        ]
        return samples + self._of_conversations()

    def _of_conversations(self) -> list[Sample]:
        with self._lock:
            try:
                self._fold_on()
            except DamagedStoreError as damage:
                log.warning("Counting conversations failed: %s", damage)
            counts = dict(self._counts)
        samples = []
        for name, count in sorted(counts.items()):
            metric, _, label = name.partition("/")
            samples.append(Sample(metric, count, label or None))
        return samples

    def _fold_on(self) -> None:
        if not self._is_loaded:
            self._load(self._store.commit(KEEP, lambda tx: tx.get_meta(_META)))
        before = self._cursor
        while page := self._store.events_of_all(PREFIX, after=self._cursor, limit=_PAGE):
            for event in page:
                self._counts.update(_counted(event))
            self._cursor = page[-1].id
        if self._cursor != before and time.monotonic() - self._kept_at > _KEEP_EVERY:
            self._kept_at = time.monotonic()
            self._store.commit(KEEP, self._keep)

    def _load(self, stored: Any) -> None:
        if isinstance(stored, dict):
            self._cursor = int(stored["cursor"])
            self._counts = Counter({str(name): int(count) for name, count in stored["counts"].items()})
        self._is_loaded = True

    def _keep(self, tx: Transaction) -> None:
        """Keep the fold, unless another process has come further."""
        stored = tx.get_meta(_META)
        if not isinstance(stored, dict) or stored["cursor"] < self._cursor:
            tx.set_meta(_META, {"cursor": self._cursor, "counts": dict(self._counts)})


def _counted(event: Event) -> Mapping[str, int]:
    """What one entry of a conversation adds to."""
    match event.kind:
        case "message":
            return {f"messages/{event.payload['role']}": 1}
        case "run.ended":
            return {f"turns/{event.payload['outcome']}": 1}
        case "agent.usage":
            usage = used_in(event)
            return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        case _:
            return {}
