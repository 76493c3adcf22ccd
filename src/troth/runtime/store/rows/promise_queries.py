"""How promises and their deliveries are read back."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.json_codec import read
from troth.runtime.store.promise_records import (
    DeliveryRecord,
    DeliveryState,
    OutboxCounts,
    PromiseIncident,
    PromiseRecord,
)
from troth.runtime.store.rows.deliveries import ANY_STATE, DELIVERY, OUTBOX_STREAM, delivery_of, due_places, place_of
from troth.runtime.store.rows.promises import PROMISE, PROMISES, USUAL_RETENTION, promise_of
from troth.runtime.store.sqlite.readers import SqliteReaders

__all__ = ["PromiseReader"]

_DELIVERIES = "deliveries d JOIN promises p ON p.number = d.promise"
_OF_PROMISE = f"promises p JOIN deliveries d ON d.{ANY_STATE} AND d.session = p.session AND d.promise = p.number"
_OPEN_RUNS = "runs r CROSS JOIN promises p ON p.id = r.id"  # in this order: what is not over is less than what is
_IS_OPEN = (
    "r.state IN ('running', 'waiting') AND p.work = 'run' "  # noqa: S608
    f"AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.{ANY_STATE} AND d.session = p.session "
    "AND d.promise = p.number AND d.kind = 'done')"
)
_ALL = 1 << 62
_PENDING_OR_DEAD = (DeliveryState.DUE, DeliveryState.LEASED, DeliveryState.STORED, DeliveryState.DEAD)
_OF_SESSION = (
    "SELECT p.number FROM runs r CROSS JOIN promises p ON p.id = r.id "
    "WHERE r.state IN ('running', 'waiting') AND p.session = ? "
    "UNION ALL SELECT number FROM promises WHERE is_open = 1 AND session = ? "
    "UNION ALL SELECT promise FROM deliveries WHERE state = 'due' AND session = ? AND kind = 'done' "
    "UNION ALL SELECT promise FROM deliveries WHERE state = 'leased' AND session = ? AND kind = 'done' "
    "UNION ALL SELECT promise FROM deliveries WHERE state = 'stored' AND session = ? AND kind = 'done' "
    "UNION ALL SELECT promise FROM deliveries WHERE state = 'dead' AND session = ? AND kind = 'done' "
    "UNION ALL SELECT promise FROM deliveries WHERE state = 'expired' AND session = ? AND kind = 'done' "
    "UNION ALL SELECT promise FROM (SELECT promise FROM deliveries WHERE state = 'delivered' AND session = ? "
    "AND kind = 'done' ORDER BY promise DESC LIMIT ?) AS delivered"
)


def _living(connection: sqlite3.Connection, now: float) -> set[str]:
    """The owners who are alive."""
    rows = connection.execute("SELECT id, machine, pid, pid_started, beat_at FROM owners").fetchall()
    return {row[0] for row in rows if is_alive(Owner(*row), now)}


class PromiseReader:
    """Questions about promises. Every method may be called from any thread, and none of them changes anything."""

    _HOW_MANY = "coalesce(max(number), 0)"
    """How many promises there are: their numbers have no gaps."""

    def __init__(self, readers: SqliteReaders) -> None:
        self._readers = readers

    def _rows(self, question: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        with self._readers.lend() as connection:
            return connection.execute(question, tuple(values)).fetchall()

    def find(self, promise_id: str) -> PromiseRecord | None:
        """One promise as it is now."""
        rows = self._rows(f"SELECT {PROMISE} FROM {PROMISES} WHERE p.id = ?", (promise_id,))  # noqa: S608
        return promise_of(rows[0]) if rows else None

    def newest(self, *, session: str | None = None, work: str | None = None, limit: int = 100) -> list[PromiseRecord]:
        """Promises, the newest first; of one session or one kind of work, if these are named."""
        limit = min(limit, _ALL)
        where, values = ["true"], list[object]()
        if work is not None:
            where.append(
                "p.work = ?" if work == "run" else "p.work = ? AND p.work != 'run'"
            )  # so that its index is used
            values.append(work)
        if session is not None and work in (None, "run"):
            where.append(f"p.number IN ({_OF_SESSION})")
            values += [session] * 8 + [limit if work is None else _ALL]
        elif session is not None:
            where.append("p.session = ?")
            values.append(session)
        rows = self._rows(
            f"SELECT {PROMISE} FROM {PROMISES} WHERE {' AND '.join(where)} ORDER BY p.number DESC LIMIT ?",  # noqa: S608
            (*values, limit),
        )
        return [promise_of(row) for row in rows]

    def unheld_runs(self, now: float) -> list[str]:
        """Runs with an open promise that nobody living carries out, the oldest first."""
        with self._readers.lend() as connection:
            living = _living(connection, now)
            rows = connection.execute(
                "SELECT p.id, l.owner "  # noqa: S608
                f"FROM {_OPEN_RUNS} LEFT JOIN leases l ON l.resource = 'run:' || p.id WHERE {_IS_OPEN} "
                "ORDER BY p.number"
            ).fetchall()
        return [run for run, owner in rows if owner not in living]

    def open_subjects(self, work: str) -> list[str]:
        """What of a kind of work has an open promise."""
        rows = self._rows("SELECT subject FROM promises WHERE is_open = 1 AND work = ? ORDER BY number", (work,))
        return [subject for (subject,) in rows]

    def expired_subjects(self, work: str, *, since: float) -> list[tuple[str, float]]:
        """What of a kind of work has expired since a moment, and when."""
        return self._rows(
            "SELECT coalesce(p.subject, p.id), d.expired_at FROM deliveries d JOIN promises p ON p.number = d.promise "
            "WHERE d.expired_at > ? AND d.expired_at IS NOT NULL AND p.work = ? ORDER BY d.expired_at",
            (since, work),
        )

    def is_living(self, owner_id: str, now: float) -> bool:
        """Whether the owner of that id is there, and alive."""
        with self._readers.lend() as connection:
            return owner_id in _living(connection, now)

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery as it is now."""
        rows = self._rows(
            f"SELECT {DELIVERY} FROM {_OF_PROMISE} WHERE p.id = ? AND d.kind = ? AND d.seq = ?",  # noqa: S608
            place_of(delivery_id),
        )
        return delivery_of(rows[0]) if rows else None

    def deliveries_of(self, promise_id: str) -> list[DeliveryRecord]:
        """The deliveries of one promise, the oldest first."""
        rows = self._rows(
            f"SELECT {DELIVERY} FROM {_OF_PROMISE} WHERE p.id = ? ORDER BY d.created_at, d.kind, d.seq",  # noqa: S608
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
        """Deliveries, the oldest first; without `states`, those that are still pending and those that are dead."""
        limit = min(limit, _ALL)
        wanted_states = _PENDING_OR_DEAD if states is None else sorted({DeliveryState(state) for state in states})
        filters = {"session": session, "channel": channel}
        only = "".join(f" AND d.{column} = ?" for column, value in filters.items() if value is not None)
        chosen = [value for value in filters.values() if value is not None]
        arms, values = list[str](), list[object]()
        for state in wanted_states:  # they lie by their state; what is over, and much, has an index by its age as well
            is_by_age = session is None and state in (DeliveryState.DELIVERED, DeliveryState.EXPIRED)
            in_state = "d.finished_at IS NOT NULL AND +d.state = ?" if is_by_age else "d.state = ?"
            arms.append(
                f"SELECT * FROM (SELECT {DELIVERY} FROM {_DELIVERIES} WHERE {in_state}{only} "  # noqa: S608
                f"ORDER BY d.created_at, d.promise, d.kind, d.seq LIMIT ?) AS {state.value}_ones"
            )
            values += [state.value, *chosen, limit]
        # One statement: what goes from one state to another meanwhile would be in neither of two.
        rows = self._rows(" UNION ALL ".join(arms), values) if arms else []
        records = sorted(map(delivery_of, rows), key=lambda record: (record.created_at, record.id))
        return records[:limit]

    def next_due(self, channel: str, owner: str, besides: Collection[str] = ()) -> float | None:
        """When the next delivery of a channel is due that this owner may send; nothing if there is none.

        Those of the sessions `besides` are not looked at.
        """
        others = f" AND session NOT IN ({', '.join('?' * len(besides))})" if besides else ""
        question = f"SELECT min(due_at) FROM deliveries WHERE state = 'due' AND channel = ?{others} AND home"  # noqa: S608
        ((moment,),) = self._rows(
            f"SELECT min(at) FROM (SELECT ({question} IS NULL) AS at UNION ALL SELECT ({question} = ?)) AS moments",  # noqa: S608
            (channel, *besides, channel, *besides, owner),
        )
        return moment  # type: ignore[no-any-return]  # a number, or nothing

    def has_stored(self, session: str) -> bool:
        """Whether anything is kept for a session until a channel can push it."""
        return bool(self._rows("SELECT 1 FROM deliveries WHERE state = 'stored' AND session = ? LIMIT 1", (session,)))

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
            if any(owner not in living for _, owner in channels):
                return True
            served = {name for name, _ in channels}
            return any(
                channel not in served or (home is not None and home not in living)
                for channel, home in due_places(connection.execute)
            )

    def shortest_retention(self) -> float:
        """For how many seconds, at least, every result is kept after the end of its work."""
        rows = self._rows("SELECT CAST(value AS DOUBLE PRECISION) FROM meta WHERE key = 'shortest retention'")
        return min(rows[0][0], USUAL_RETENTION) if rows else USUAL_RETENTION

    def next_expiry(self) -> float | None:
        """When the next of the promises expires that are settled now. Reads everything that is pending."""
        places = ("finished_at IS NOT NULL", "state = 'due'", "state = 'leased'", "state = 'stored'")
        arms = " UNION ALL ".join(
            f"SELECT min(expires_at) FROM deliveries WHERE {place} AND expires_at IS NOT NULL"  # noqa: S608
            for place in places
        )
        return min((moment for (moment,) in self._rows(arms) if moment is not None), default=None)

    def counts(self) -> OutboxCounts:
        """How many deliveries were promised, and what became of them; all as of one moment.

        The promises are counted by their rows, the work under way by runs and jobs, deliveries by the indexes, and
        what is over by counters: if anything were lost between them, the sum would not be right.
        """
        rows = self._rows(
            "SELECT name, count FROM outbox_counts UNION ALL "  # noqa: S608
            f"SELECT 'promises', {self._HOW_MANY} FROM promises UNION ALL "
            "SELECT 'open', count(*) FROM promises WHERE is_open = 1 UNION ALL "
            f"SELECT 'open', count(*) FROM {_OPEN_RUNS} WHERE {_IS_OPEN} UNION ALL "
            "SELECT 'pending', count(*) FROM deliveries WHERE state = 'due' UNION ALL "
            "SELECT 'pending', count(*) FROM deliveries WHERE state = 'leased' UNION ALL "
            "SELECT 'pending', count(*) FROM deliveries WHERE state = 'stored'"
        )
        counts = Counter[str]()
        for name, count in rows:
            counts[name] += count
        return OutboxCounts(
            promised=counts["promises"] + counts["further"],
            delivered=counts["delivered"],
            stored=counts["open"] + counts["pending"],
            expired=counts["expired"],
            dead=counts["dead"],
        )

    def states(self) -> dict[str, int]:
        """How many promises there are in each state."""
        rows = self._rows(
            "SELECT outcome, count(*) FROM deliveries WHERE kind = 'done' AND seq = 1 GROUP BY outcome "  # noqa: S608
            f"UNION ALL SELECT 'promised', {self._HOW_MANY} FROM promises"
        )
        states: dict[str, int] = dict(rows)
        promised = states.pop("promised")
        is_open = promised - sum(states.values())
        return {**states, "open": is_open} if is_open else states

    def incidents(self, *, after: int = 0, limit: int = 1000) -> list[PromiseIncident]:
        """What was given up, or given up for the time being, the oldest first."""
        rows = self._rows(
            "SELECT seq, kind, at, payload FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (OUTBOX_STREAM, max(-_ALL, min(after, _ALL)), min(limit, _ALL)),
        )
        return [
            PromiseIncident(seq, kind, at, read(payload, f"incident {seq} of the outbox"))
            for seq, kind, at, payload in rows
        ]
