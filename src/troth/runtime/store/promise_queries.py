"""How promises and their deliveries are read back."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.json_codec import read
from troth.runtime.store.promise_records import (
    DeliveryRecord,
    DeliveryState,
    Incident,
    OutboxCounts,
    PromiseRecord,
)
from troth.runtime.store.promise_rows import DELIVERY, OUTBOX_STREAM, PROMISE, delivery_of, promise_of
from troth.runtime.store.readers import Readers

__all__ = ["PromiseReader"]


def _living(connection: sqlite3.Connection, now: float) -> set[str]:
    """The owners who are alive."""
    rows = connection.execute("SELECT id, machine, pid, pid_started, beat_at FROM owners").fetchall()
    return {row[0] for row in rows if is_alive(Owner(*row), now)}


def _due_channels(connection: sqlite3.Connection) -> Iterator[str]:
    """The channels on which something is due, one look at the index for each."""
    channel = ""
    while True:
        (channel,) = connection.execute(
            "SELECT min(channel) FROM deliveries WHERE state = 'due' AND channel > ?", (channel,)
        ).fetchone()
        if channel is None:
            return
        yield channel


class PromiseReader:
    """Questions about promises. Every method may be called from any thread, and none of them changes anything."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def _rows(self, question: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        with self._readers.lend() as connection:
            return connection.execute(question, tuple(values)).fetchall()

    def find(self, promise_id: str) -> PromiseRecord | None:
        """One promise as it is now."""
        rows = self._rows(f"SELECT {PROMISE} FROM promises WHERE id = ?", (promise_id,))  # noqa: S608
        return promise_of(rows[0]) if rows else None

    def newest(self, *, session: str | None = None, work: str | None = None, limit: int = 100) -> list[PromiseRecord]:
        """Promises, the newest first; of one session or one kind of work, if these are named."""
        wanted = [(name, value) for name, value in (("session", session), ("work", work)) if value is not None]
        where = " AND ".join(f"{name} = ?" for name, _ in wanted)
        rows = self._rows(
            f"SELECT {PROMISE} FROM promises {f'WHERE {where} ' if where else ''}"  # noqa: S608
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (*(value for _, value in wanted), limit),
        )
        return [promise_of(row) for row in rows]

    def unheld_runs(self, now: float) -> list[str]:
        """Runs with an open promise that nobody living carries out, the oldest first."""
        with self._readers.lend() as connection:
            living = _living(connection, now)
            rows = connection.execute(
                "SELECT p.subject, l.owner FROM promises p LEFT JOIN leases l ON l.resource = 'run:' || p.subject "
                "WHERE p.state = 'open' AND p.work = 'run' ORDER BY p.created_at"
            ).fetchall()
        return [run for run, owner in rows if owner not in living]

    def open_subjects(self, work: str) -> list[str]:
        """What of a kind of work has an open promise."""
        rows = self._rows("SELECT subject FROM promises WHERE state = 'open' AND work = ? ORDER BY created_at", (work,))
        return [subject for (subject,) in rows]

    def expired_subjects(self, work: str, *, since: float) -> list[tuple[str, float]]:
        """What of a kind of work has expired since a moment, and when."""
        return self._rows(
            "SELECT subject, expired_at FROM promises WHERE work = ? AND state = 'expired' AND expired_at > ? "
            "ORDER BY expired_at",
            (work, since),
        )

    def is_living(self, owner_id: str, now: float) -> bool:
        """Whether the owner of that id is there, and alive."""
        with self._readers.lend() as connection:
            return owner_id in _living(connection, now)

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery as it is now."""
        rows = self._rows(f"SELECT {DELIVERY} FROM deliveries WHERE id = ?", (delivery_id,))  # noqa: S608
        return delivery_of(rows[0]) if rows else None

    def deliveries_of(self, promise_id: str) -> list[DeliveryRecord]:
        """The deliveries of one promise, the oldest first."""
        rows = self._rows(
            f"SELECT {DELIVERY} FROM deliveries WHERE promise = ? ORDER BY created_at, kind, seq",  # noqa: S608
            (promise_id,),
        )
        return [delivery_of(row) for row in rows]

    def deliveries(
        self,
        *,
        states: Iterable[DeliveryState] | None = None,
        session: str | None = None,
        channel: str | None = None,
        limit: int = 100,
    ) -> list[DeliveryRecord]:
        """Deliveries, the oldest first; without `states`, those that are still owed and those that are dead."""
        wanted = None if states is None else sorted(str(state) for state in states)
        where = ["(finished_at IS NULL OR state = 'dead')"] if wanted is None else []
        values: list[object] = []
        if wanted is not None:
            where.append(f"state IN ({', '.join('?' * len(wanted))})")
            values.extend(wanted)
        for column, value in (("session", session), ("channel", channel)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        rows = self._rows(
            f"SELECT {DELIVERY} FROM deliveries WHERE {' AND '.join(where)} ORDER BY created_at, id LIMIT ?",  # noqa: S608
            (*values, limit),
        )
        return [delivery_of(row) for row in rows]

    def next_due(self, channel: str, owner: str) -> float | None:
        """When the next delivery of a channel is due that this owner may send; nothing if there is none."""
        rows = self._rows(
            "SELECT due_at FROM deliveries WHERE state = 'due' AND channel = ? AND (home IS NULL OR home = ?) "
            "ORDER BY due_at LIMIT 1",
            (channel, owner),
        )
        return rows[0][0] if rows else None

    def has_stored(self, session: str) -> bool:
        """Whether anything is kept for a session until a channel can push it."""
        return bool(self._rows("SELECT 1 FROM deliveries WHERE state = 'stored' AND session = ? LIMIT 1", (session,)))

    def has_stored_for(self, channel: str) -> bool:
        """Whether anything is kept that was to go through a channel."""
        question = (
            "SELECT 1 FROM deliveries WHERE state = 'stored' AND channel = ? AND channel IS NOT NULL "
            "AND home IS NULL LIMIT 1"
        )
        return bool(self._rows(question, (channel,)))

    def needs_sweep(self, now: float) -> bool:
        """Whether a lease is void, or something is due on a channel that nobody living serves."""
        with self._readers.lend() as connection:
            living = _living(connection, now)
            for owner, until in connection.execute(
                "SELECT owner, min(leased_until) FROM deliveries WHERE state = 'leased' GROUP BY owner"
            ).fetchall():
                if owner not in living or until < now:
                    return True
            channels = connection.execute("SELECT name, owner FROM channels").fetchall()
            served = {name for name, owner in channels if owner in living}
            homes = connection.execute(
                "SELECT DISTINCT home FROM deliveries WHERE state = 'due' AND home IS NOT NULL"
            ).fetchall()
            if any(home not in living for (home,) in homes) or any(owner not in living for _, owner in channels):
                return True
            return any(channel not in served for channel in _due_channels(connection))

    def next_expiry(self) -> float | None:
        """When the next promise expires."""
        ((moment,),) = self._rows("SELECT min(expires_at) FROM promises WHERE expires_at IS NOT NULL")
        return moment  # type: ignore[no-any-return]  # a number, or nothing

    def counts(self) -> OutboxCounts:
        """How many deliveries were promised, and what became of them; all as of one moment."""
        with self._readers.lend() as connection:
            rows = connection.execute(
                "SELECT name, count FROM outbox_counts UNION ALL "
                "SELECT 'open', count(*) FROM promises WHERE state = 'open' UNION ALL "
                "SELECT 'owed', count(*) FROM deliveries WHERE finished_at IS NULL"
            ).fetchall()
        counts = dict(rows)
        return OutboxCounts(
            promised=counts.get("promised", 0),
            delivered=counts.get("delivered", 0),
            stored=counts["open"] + counts["owed"],
            expired=counts.get("expired", 0),
            dead=counts.get("dead", 0),
        )

    def states(self) -> dict[str, int]:
        """How many promises there are in each state."""
        return dict(self._rows("SELECT state, count(*) FROM promises GROUP BY state"))

    def incidents(self, *, after: int = 0, limit: int = 1000) -> list[Incident]:
        """What was given up, or given up for the time being, the oldest first."""
        rows = self._rows(
            "SELECT seq, kind, at, payload FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (OUTBOX_STREAM, after, limit),
        )
        return [
            Incident(seq, kind, at, read(payload, f"incident {seq} of the outbox")) for seq, kind, at, payload in rows
        ]
