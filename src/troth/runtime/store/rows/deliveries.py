"""How deliveries are written: the statements of one open transaction.

Every change of a delivery's state is a compare-and-set: it names the state, and for a lease the token, that it starts
from, and answers whether it happened. The counts of what ended are kept beside the rows, by the same statements, so
that they can be compared with what is still pending.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.json_codec import read
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.promise_records import (
    DeliveryAttempt,
    DeliveryRecord,
    DeliveryState,
    Settlement,
    outbox_topic,
)

__all__ = [
    "ANY_STATE",
    "DELIVERY",
    "LOST",
    "OUTBOX_STREAM",
    "DeliveryRows",
    "OpenTransaction",
    "delivery_of",
    "due_places",
    "place_of",
    "with_attempt",
]

OUTBOX_STREAM = "outbox"
"""The stream of everything that was given up, or given up for the time being."""

DELIVERY = (
    "p.id || '-' || d.kind || '-' || d.seq, p.id, d.session, d.kind, d.seq, d.text, d.data, d.count, d.state, "
    "d.channel, d.attempt, d.first_attempt_at, d.due_at, d.owner, d.leased_until, d.receipt, d.problem, d.created_at, "
    "d.updated_at, d.finished_at, d.attempts"
)
"""The columns of a delivery `d` and its promise `p`."""

ANY_STATE = "state IN ('due', 'leased', 'stored', 'delivered', 'expired', 'dead')"
"""What a question says that does not care: deliveries lie by their state."""

_OVER = frozenset({DeliveryState.DELIVERED, DeliveryState.EXPIRED, DeliveryState.DEAD})
_NO_LEASE = "owner = NULL, token = NULL, leased_until = NULL"
_THIS = "(session, promise) = (SELECT session, number FROM promises WHERE id = ?) AND kind = ? AND seq = ?"
_PENDING = "state IN ('due', 'leased', 'stored')"
_ATTEMPTS = 20  # attempts that are kept of each delivery, the last ones: a row is written anew with each of them
_DIGITS = 18  # of the longest number that every store can be asked for
_WORDS = 300  # letters that are kept of what a receiver said to an attempt
LOST = "its sender ended, or stopped responding, before an answer was recorded"
"""What is written down of an attempt that nobody has settled."""


class OpenTransaction(Protocol):
    """What of the open transaction is needed here."""

    execute: Callable[..., Any]
    topics: set[str]

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream; the answer is the entry's number in it."""
        ...


def delivery_of(row: Sequence[Any]) -> DeliveryRecord:
    """A delivery from the columns of `DELIVERY`."""
    id_, promise, session, kind, seq, text, data, count, state, *progress, written = row
    past = () if written is None else read(written, f"the attempts of delivery {id_!r}")
    attempts = tuple(DeliveryAttempt(*attempt) for attempt in past)
    data = read(data, f"the data of delivery {id_!r}")
    values = (id_, promise, session, kind, seq, text, data, count, DeliveryState(state), *progress, attempts)
    return DeliveryRecord(*values)


def with_attempt(written: str | None, attempt: DeliveryAttempt) -> str:
    """The attempts of a delivery as they are kept, with one more; of many, the last ones."""
    attempts = [] if written is None else json.loads(written)
    words = attempt.words if len(attempt.words) <= _WORDS else f"{attempt.words[: _WORDS - 1]}…"
    return json.dumps([*attempts[1 - _ATTEMPTS :], attempt._replace(words=words)], separators=(",", ":"))


def place_of(delivery_id: str) -> tuple[str, str, int]:
    """Promise, kind and number of a delivery. An id that is not one of a delivery is no place of any."""
    text: object = delivery_id
    promise, _, number = text.rpartition("-") if isinstance(text, str) else ("", "", "")
    promise, _, kind = promise.rpartition("-")
    is_number = number.isdecimal() and len(number) <= _DIGITS and str(int(number)) == number
    return (promise, kind, int(number)) if is_number else ("", "", 0)


def due_places(execute: Callable[..., sqlite3.Cursor]) -> Iterator[tuple[str, str | None]]:
    """Where something is due, as (channel, home): one look at the index for each, however much is due there."""
    channel = ""
    while True:
        (channel,) = execute(
            "SELECT min(channel) FROM deliveries WHERE state = 'due' AND channel > ?", (channel,)
        ).fetchone()
        if channel is None:
            return
        home = ""
        if execute(
            "SELECT 1 FROM deliveries WHERE state = 'due' AND channel = ? AND home IS NULL LIMIT 1", (channel,)
        ).fetchone():
            yield channel, None
        while True:
            (home,) = execute(
                "SELECT min(home) FROM deliveries WHERE state = 'due' AND channel = ? AND home > ?", (channel, home)
            ).fetchone()
            if home is None:
                break
            yield channel, home


def _due_first(numbered: tuple[int, DeliveryRecord]) -> tuple[float, float]:
    _, record = numbered
    return record.due_at or 0.0, record.created_at


class DeliveryRows:
    """The writes about deliveries in one transaction, and the reads that they rely on."""

    __slots__ = ("_execute", "_tx")

    def __init__(self, tx: OpenTransaction) -> None:
        self._tx = tx
        self._execute = tx.execute

    # One delivery after the other

    def add_delivery(
        self,
        promise_id: str,
        kind: str,
        now: float,
        *,
        text: str,
        data: str | None = None,
        count: int = 1,
        channel: str | None = None,
    ) -> str:
        """Write down one more delivery of a promise, a hit of a watched job for one; the answer is its id.

        It goes to `channel` if one is named, else where the promise's own delivery goes.
        """
        number, session, usual, home = self._execute(
            "SELECT number, session, channel, home FROM promises WHERE id = ?", (promise_id,)
        ).fetchone()
        (last,) = self._execute(
            f"SELECT max(seq) FROM deliveries WHERE {ANY_STATE} AND session = ? AND promise = ? AND kind = ?",  # noqa: S608
            (session, number, kind),
        ).fetchone()
        if channel is not None:
            usual, home = channel, None
        state, due = ("stored", None) if usual is None else ("due", now)
        seq = (last or 0) + 1
        self._execute(
            "INSERT INTO deliveries (promise, kind, seq, state, session, created_at, updated_at, channel, home, "
            "due_at, text, data, count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, kind, seq, state, session, now, now, usual, home, due, text, data, count),
        )
        self._count("further", 1)
        self._tx.topics.update((outbox_topic, changes_topic))
        return f"{promise_id}-{kind}-{seq}"

    def lease(
        self,
        channel: str,
        owner: str,
        token: str,
        now: float,
        *,
        until: float,
        limit: int,
        due_before: float,
        besides: Collection[str] = (),
    ) -> list[DeliveryRecord]:
        """Take up to `limit` deliveries of a channel that are due before `due_before`, those due first before others.

        Those of the sessions `besides` are left. The attempt is counted here: one that ends the process is one, too.
        """
        rows: list[tuple[Any, ...]] = []
        others = f"AND d.session NOT IN ({', '.join('?' * len(besides))}) " if besides else ""
        for home in (None, owner):  # one range of the index each, which keeps them in order
            rows += self._execute(
                f"SELECT d.promise, {DELIVERY} FROM deliveries d JOIN promises p ON p.number = d.promise "  # noqa: S608
                f"WHERE d.state = 'due' AND d.channel = ? AND d.home IS ? AND d.due_at <= ? {others}"
                "ORDER BY d.due_at, d.created_at LIMIT ?",
                (channel, home, due_before, *besides, limit),
            ).fetchall()
        leased = []
        due = [(number, delivery_of(row)) for number, *row in rows]
        due.sort(key=_due_first)
        for number, record in due[:limit]:
            first = now if record.first_attempt_at is None else record.first_attempt_at
            self._execute(
                "UPDATE deliveries SET state = 'leased', owner = ?, token = ?, leased_until = ?, updated_at = ?, "
                "attempt = ?, first_attempt_at = ? "
                "WHERE state = 'due' AND session = ? AND promise = ? AND kind = ? AND seq = ?",
                (owner, token, until, now, record.attempt + 1, first, record.session, number, record.kind, record.seq),
            )
            leased.append(
                replace(
                    record,
                    state=DeliveryState.LEASED,
                    owner=owner,
                    leased_until=until,
                    updated_at=now,
                    attempt=record.attempt + 1,
                    first_attempt_at=first,
                )
            )
        return leased

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery."""
        row = self._execute(
            f"SELECT {DELIVERY} FROM promises p JOIN deliveries d ON d.{ANY_STATE} AND d.session = p.session "  # noqa: S608
            "AND d.promise = p.number WHERE p.id = ? AND d.kind = ? AND d.seq = ?",
            place_of(delivery_id),
        ).fetchone()
        return None if row is None else delivery_of(row)

    def renew(self, delivery_ids: Iterable[str], owner: str, until: float) -> None:
        """Hold leases for longer."""
        for delivery in delivery_ids:
            self._execute(
                f"UPDATE deliveries SET leased_until = ? WHERE state = 'leased' AND {_THIS} AND owner = ?",  # noqa: S608
                (until, *place_of(delivery), owner),
            )

    def settle_attempt(self, delivery_id: str, token: str, settlement: Settlement, now: float) -> bool:
        """Write down what an attempt came to. False if the lease is not ours any more; nothing is written then."""
        is_over = settlement.state in _OVER
        attempts = None
        if settlement.state is not DeliveryState.DELIVERED:  # that one, nearly always, is told by its receipt
            outcome = "failed" if settlement.declined_by is None else "declined"
            attempts = self._attempts_with(delivery_id, token, outcome, settlement.problem or "", now)
        cursor = self._execute(
            "UPDATE deliveries SET state = ?, due_at = ?, receipt = coalesce(?, receipt), problem = ?, "  # noqa: S608
            f"declined_by = ?, attempts = coalesce(?, attempts), updated_at = ?, finished_at = ?, {_NO_LEASE} "
            f"WHERE state = 'leased' AND {_THIS} AND token = ?",
            (
                settlement.state._value_,
                settlement.due_at,
                settlement.receipt,
                settlement.problem,
                settlement.declined_by,
                attempts,
                now,
                now if is_over else None,
                *place_of(delivery_id),
                token,
            ),
        )
        if cursor.rowcount != 1:
            return False
        self._tx.topics.add(changes_topic)
        if is_over:
            self._count(settlement.state._value_, 1)
        return True

    def give_back(self, delivery_id: str, token: str, now: float, *, due_at: float, is_unsent: bool) -> bool:
        """Make a leased delivery due again. `is_unsent` takes the attempt back: it was not begun."""
        attempts = None if is_unsent else self._attempts_with(delivery_id, token, "lost", LOST, now)
        cursor = self._execute(
            f"UPDATE deliveries SET state = 'due', due_at = ?, updated_at = ?, attempt = attempt - ?, "  # noqa: S608
            f"attempts = coalesce(?, attempts), {_NO_LEASE} WHERE state = 'leased' AND {_THIS} AND token = ?",
            (due_at, now, int(is_unsent), attempts, *place_of(delivery_id), token),
        )
        if cursor.rowcount == 1:
            self._tx.topics.add(outbox_topic)
        return bool(cursor.rowcount == 1)

    def _attempts_with(self, delivery_id: str, token: str, outcome: str, words: str, now: float) -> str | None:
        """The attempts of a leased delivery with the one under way; nothing if the lease is another one's."""
        row = self._execute(
            f"SELECT attempt, channel, attempts FROM deliveries WHERE state = 'leased' AND {_THIS} AND token = ?",  # noqa: S608
            (*place_of(delivery_id), token),
        ).fetchone()
        if row is None:
            return None
        number, channel, attempts = row
        return with_attempt(attempts, DeliveryAttempt(number, now, channel, outcome, words))

    def acknowledge(self, delivery_id: str, now: float, by: str) -> bool:
        """Say that a delivery reached its receiver, also one that was given up. False if it was already over."""
        for states in (_PENDING, "state = 'dead'"):
            cursor = self._execute(
                "UPDATE deliveries SET state = 'delivered', receipt = ?, updated_at = ?, finished_at = ?, "  # noqa: S608
                f"due_at = NULL, {_NO_LEASE} WHERE {states} AND {_THIS}",
                (by, now, now, *place_of(delivery_id)),
            )
            if cursor.rowcount == 1:
                self._count("delivered", 1)
                if states is not _PENDING:
                    self._count("dead", -1)
                self._tx.topics.add(changes_topic)
                return True
        return False

    def replay(self, delivery_id: str, channel: str | None, now: float) -> bool:
        """Owe a dead or delivered delivery once more, under the same id; a stored one, if a channel is named.

        False if it is none of these.
        """
        delivery = self.delivery(delivery_id)
        if delivery is None or delivery.state not in (DeliveryState.DEAD, DeliveryState.DELIVERED):
            is_stored = delivery is not None and delivery.state is DeliveryState.STORED
            if delivery is None or not is_stored or channel is None:
                return False
        target = channel or delivery.channel
        written = json.dumps(delivery.past_attempts) if delivery.past_attempts else None
        if delivery.state is DeliveryState.DELIVERED:
            written = with_attempt(written, delivery.attempts[-1])
        cursor = self._execute(
            "UPDATE deliveries SET state = ?, channel = ?, due_at = ?, attempt = 0, first_attempt_at = NULL, "  # noqa: S608
            "receipt = NULL, problem = NULL, declined_by = NULL, finished_at = NULL, attempts = ?, updated_at = ?, "
            f"home = NULL WHERE state = ? AND {_THIS}",
            (
                "stored" if target is None else "due",
                target,
                None if target is None else now,
                written,
                now,
                delivery.state._value_,
                *place_of(delivery_id),
            ),
        )
        if cursor.rowcount != 1:
            return False
        if delivery.state is not DeliveryState.STORED:
            self._count(delivery.state._value_, -1)
        self._tx.topics.update((outbox_topic, changes_topic))
        return True

    # Many at once

    def offer(self, session: str, channel: str, home: str | None, now: float) -> int:
        """Send what is stored for a session through a channel that has just been bound to it, the oldest first.

        Something that was stored before the clock was set back is not made to wait for that moment to come again.
        """
        cursor = self._execute(
            "UPDATE deliveries SET state = 'due', channel = ?, home = ?, due_at = min(created_at, ?), updated_at = ? "
            "WHERE state = 'stored' AND session = ? AND declined_by IS NOT ?",
            (channel, home, now, now, session, channel),
        )
        return self._became_due(cursor.rowcount)

    def revive(self, channel: str, home: str | None, now: float) -> int:
        """Send what was to go through a channel that has come back."""
        cursor = self._execute(
            "UPDATE deliveries SET state = 'due', due_at = min(created_at, ?), updated_at = ? "
            "WHERE state = 'stored' AND channel = ? AND channel IS NOT NULL AND home IS ? "
            "AND declined_by IS NOT channel",
            (now, now, channel, home),
        )
        return self._became_due(cursor.rowcount)

    def hurry(self, channel: str, now: float) -> int:
        """Make everything due now that waits for a later attempt: the clock was set back."""
        cursor = self._execute(
            "UPDATE deliveries SET due_at = ?, updated_at = ? WHERE state = 'due' AND channel = ? AND due_at > ?",
            (now, now, channel, now),
        )
        return self._became_due(cursor.rowcount)

    def _became_due(self, count: int) -> int:
        if count:
            self._tx.topics.update((outbox_topic, changes_topic))
        return count

    def downgrade(self, channel: str, why: str, now: float, *, home: str | None = None) -> int:
        """Store what a channel cannot push any more, with an event. `home` means only those of one owner."""
        where, values = ("", ()) if home is None else (" AND home = ?", (home,))
        cursor = self._execute(
            "UPDATE deliveries SET state = 'stored', due_at = NULL, updated_at = ?, problem = ? "  # noqa: S608
            f"WHERE state = 'due' AND channel = ?{where}",
            (now, why, channel, *values),
        )
        count: int = cursor.rowcount
        if count:
            self._tx.topics.add(changes_topic)
            self.note("downgraded", {"channel": channel, "count": count, "why": why}, now)
        return count

    # Owners and channels

    def open_channel(self, channel: str, owner: str, now: float) -> None:
        """Write down that an owner serves a channel."""
        self._execute(
            "INSERT INTO channels (name, owner, opened_at) VALUES (?, ?, ?) ON CONFLICT (name, owner) "
            "DO UPDATE SET opened_at = excluded.opened_at",
            (channel, owner, now),
        )

    def close_channel(self, channel: str, owner: str) -> None:
        """Write down that an owner serves a channel no more."""
        self._execute("DELETE FROM channels WHERE name = ? AND owner = ?", (channel, owner))

    def is_served(self, channel: str, now: float) -> bool:
        """Whether somebody living serves a channel."""
        rows = self._execute(
            "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM channels c JOIN owners o ON o.id = c.owner "
            "WHERE c.name = ?",
            (channel,),
        ).fetchall()
        return any(is_alive(Owner(*row), now) for row in rows)

    def _owner(self, owner: str) -> Owner | None:
        row = self._execute(
            "SELECT id, machine, pid, pid_started, beat_at FROM owners WHERE id = ?", (owner,)
        ).fetchone()
        return None if row is None else Owner(*row)

    def _lives(self, owner: str | None, now: float) -> bool:
        record = None if owner is None else self._owner(owner)
        return record is not None and is_alive(record, now)

    def void_leases(self, now: float, delay: Callable[[int], float]) -> int:
        """Make due again what was leased by an owner who is dead, or who did not renew in time.

        `delay` says after how many seconds, by the number of attempts. Answers how many deliveries that were.
        """
        rows = self._execute(
            "SELECT session, promise, kind, seq, owner, attempt, leased_until, channel, attempts FROM deliveries "
            "WHERE state = 'leased' ORDER BY leased_until"
        ).fetchall()
        lives: dict[str | None, bool] = {}
        voided = 0
        for session, promise, kind, seq, owner, attempt, until, channel, written in rows:
            if owner not in lives:
                lives[owner] = self._lives(owner, now)
            if lives[owner] and until >= now:
                continue
            self._execute(
                f"UPDATE deliveries SET state = 'due', due_at = ?, updated_at = ?, attempts = ?, {_NO_LEASE} "  # noqa: S608
                "WHERE state = 'leased' AND session = ? AND promise = ? AND kind = ? AND seq = ?",
                (
                    now + delay(attempt),
                    now,
                    with_attempt(written, DeliveryAttempt(attempt, now, channel, "lost", LOST)),
                    *(session, promise, kind, seq),
                ),
            )
            voided += 1
        return self._became_due(voided)

    def store_unserved(self, now: float) -> int:
        """Store what is due on channels that nobody living serves; answers how many deliveries that were."""
        stored = 0
        for channel, home in list(due_places(self._execute)):
            if not self.is_served(channel, now):
                stored += self.downgrade(channel, "no process serves this channel at the moment", now, home=home)
            elif home is not None and not self._lives(home, now):
                stored += self.downgrade(channel, "its process has ended", now, home=home)
        for name, owner in self._execute("SELECT name, owner FROM channels").fetchall():
            if not self._lives(owner, now):
                self.close_channel(name, owner)
        return stored

    # What is told, and what is counted

    def note(self, kind: str, details: dict[str, Any], now: float) -> None:
        """Write down that something was given up, or given up for the time being."""
        self._tx.append_event(OUTBOX_STREAM, kind, details, now)

    def _count(self, name: str, change: int) -> None:
        self._execute(
            "INSERT INTO outbox_counts (name, count) VALUES (?, ?) ON CONFLICT (name) "
            "DO UPDATE SET count = count + excluded.count",
            (name, change),
        )
