"""How promises and their deliveries are written: the statements of one open transaction.

Every change of a delivery's state is a compare-and-set: it names the state, and for a lease the token, that it starts
from, and answers whether it happened. The counts of what ended are kept beside the rows, by the same statements, so
that they can be compared with what is still owed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.json_codec import read
from troth.runtime.store.promise_records import (
    DeliveryRecord,
    DeliveryState,
    NewPromise,
    PromiseRecord,
    PromiseState,
    Settlement,
    outbox_topic,
    promise_topic,
)

__all__ = ["OUTBOX_STREAM", "PromiseRows", "delivery_of", "promise_of"]

OUTBOX_STREAM = "outbox"
"""The stream of everything that was given up, or given up for the time being."""

DELIVERY = (
    "id, promise, session, kind, seq, text, data, count, state, channel, attempt, first_attempt_at, due_at, owner, "
    "leased_until, receipt, problem, created_at, updated_at, finished_at"
)
PROMISE = (
    "id, session, work, subject, title, channel, state, result, error, created_at, settled_at, expires_at, expired_at"
)
_OVER = frozenset({DeliveryState.DELIVERED, DeliveryState.EXPIRED, DeliveryState.DEAD})


class _Transaction(Protocol):
    """What of the open transaction is needed here."""

    execute: Callable[..., Any]
    topics: set[str]

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int: ...


def promise_of(row: Sequence[Any]) -> PromiseRecord:
    """A promise from the columns of `PROMISE`."""
    id_, session, work, subject, title, channel, state, result, error, created, settled, expires, expired = row
    return PromiseRecord(
        id=id_,
        session=session,
        work=work,
        subject=subject,
        title=title,
        channel=channel,
        state=PromiseState(state),
        result=read(result, f"the result of promise {id_!r}"),
        error=read(error, f"the error of promise {id_!r}"),
        created_at=created,
        settled_at=settled,
        expires_at=expires,
        expired_at=expired,
    )


def delivery_of(row: Sequence[Any]) -> DeliveryRecord:
    """A delivery from the columns of `DELIVERY`."""
    values = [*row]
    values[6], values[8] = read(row[6], f"the data of delivery {row[0]!r}"), DeliveryState(row[8])
    return DeliveryRecord(*values)


class PromiseRows:
    """The writes about promises in one transaction, and the reads that they rely on."""

    __slots__ = ("_execute", "_tx")

    def __init__(self, tx: _Transaction) -> None:
        self._tx = tx
        self._execute = tx.execute

    # Promises

    def add(self, promise: NewPromise) -> bool:
        """Write down a promise before its work begins. Answers whether it is new; an existing one stays as it is."""
        done = self._execute(
            "INSERT INTO promises (id, session, work, subject, title, channel, home, state, retention, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?, ?) ON CONFLICT (id) DO NOTHING",
            (*promise[:7], promise.retention, promise.created_at),
        )
        if done.rowcount == 1:
            self._count("promised", 1)
            return True
        return False

    def settle(
        self,
        work: str,
        subject: str,
        state: PromiseState,
        now: float,
        *,
        result: str | None = None,
        error: str | None = None,
        text: str | None = None,
    ) -> str | None:
        """Write down the end of the work, with the delivery that tells of it. Answers the promise, if one was open.

        `text` is what is told; without it, that follows from the promise.
        """
        row = self._execute(
            "SELECT id, session, channel, home, retention FROM promises "
            "WHERE work = ? AND subject = ? AND state = 'open'",
            (work, subject),
        ).fetchone()
        if row is None:
            return None
        promise, session, channel, home, retention = row
        expires = None if retention is None else now + retention
        self._execute(
            "UPDATE promises SET state = ?, result = ?, error = ?, settled_at = ?, expires_at = ? WHERE id = ?",
            (state._value_, result, error, now, expires, promise),
        )
        self._insert(promise, session, "done", 1, text, None, 1, channel, home, now)
        self._tx.topics.add(promise_topic(promise))
        found: str = promise
        return found

    def find(self, promise_id: str) -> PromiseRecord | None:
        """One promise."""
        row = self._execute(f"SELECT {PROMISE} FROM promises WHERE id = ?", (promise_id,)).fetchone()  # noqa: S608
        return None if row is None else promise_of(row)

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
        session, usual, home = self._execute(
            "SELECT session, channel, home FROM promises WHERE id = ?", (promise_id,)
        ).fetchone()
        (last,) = self._execute(
            "SELECT max(seq) FROM deliveries WHERE promise = ? AND kind = ?", (promise_id, kind)
        ).fetchone()
        if channel is not None:
            home = None
        self._count("promised", 1)
        return self._insert(promise_id, session, kind, (last or 0) + 1, text, data, count, channel or usual, home, now)

    def _insert(
        self,
        promise: str,
        session: str,
        kind: str,
        seq: int,
        text: str | None,
        data: str | None,
        count: int,
        channel: str | None,
        home: str | None,
        now: float,
    ) -> str:
        delivery = f"{promise}-{kind}-{seq}"
        state = "stored" if channel is None else "due"
        due = None if channel is None else now
        self._execute(
            "INSERT INTO deliveries (id, promise, session, kind, seq, text, data, count, state, channel, home, due_at, "
            "created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (delivery, promise, session, kind, seq, text, data, count, state, channel, home, due, now, now),
        )
        self._tx.topics.add(outbox_topic)
        return delivery

    # One delivery after the other

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
    ) -> list[DeliveryRecord]:
        """Take up to `limit` deliveries of a channel that are due before `due_before`, those due first before others.

        Their attempt is counted here: an attempt that ends the process is one, too.
        """
        rows = self._execute(
            f"SELECT {DELIVERY} FROM deliveries WHERE state = 'due' AND channel = ? AND due_at <= ? "  # noqa: S608
            "AND (home IS NULL OR home = ?) ORDER BY due_at, created_at LIMIT ?",
            (channel, due_before, owner, limit),
        ).fetchall()
        leased = []
        for record in map(delivery_of, rows):
            first = now if record.first_attempt_at is None else record.first_attempt_at
            self._execute(
                "UPDATE deliveries SET state = 'leased', owner = ?, token = ?, leased_until = ?, updated_at = ?, "
                "attempt = ?, first_attempt_at = ? WHERE id = ?",
                (owner, token, until, now, record.attempt + 1, first, record.id),
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
        row = self._execute(f"SELECT {DELIVERY} FROM deliveries WHERE id = ?", (delivery_id,)).fetchone()  # noqa: S608
        return None if row is None else delivery_of(row)

    def renew(self, delivery_ids: Iterable[str], owner: str, until: float) -> None:
        """Hold leases for longer."""
        for delivery in delivery_ids:
            self._execute(
                "UPDATE deliveries SET leased_until = ? WHERE id = ? AND state = 'leased' AND owner = ?",
                (until, delivery, owner),
            )

    def settle_attempt(self, delivery_id: str, token: str, settlement: Settlement, now: float) -> bool:
        """Write down what an attempt came to. False if the lease is not ours any more; nothing is written then."""
        is_over = settlement.state in _OVER
        done = self._execute(
            "UPDATE deliveries SET state = ?, due_at = ?, receipt = coalesce(?, receipt), problem = ?, "
            "declined_by = ?, updated_at = ?, finished_at = ?, owner = NULL, token = NULL, leased_until = NULL "
            "WHERE id = ? AND state = 'leased' AND token = ?",
            (
                settlement.state._value_,
                settlement.due_at,
                settlement.receipt,
                settlement.problem,
                settlement.declined_by,
                now,
                now if is_over else None,
                delivery_id,
                token,
            ),
        )
        if done.rowcount != 1:
            return False
        if is_over:
            self._count(settlement.state._value_, 1)
        return True

    def give_back(self, delivery_id: str, token: str, now: float, *, due_at: float, is_unsent: bool) -> bool:
        """Make a leased delivery due again. `is_unsent` takes the attempt back: it was not begun."""
        done = self._execute(
            "UPDATE deliveries SET state = 'due', due_at = ?, updated_at = ?, attempt = attempt - ?, owner = NULL, "
            "token = NULL, leased_until = NULL WHERE id = ? AND state = 'leased' AND token = ?",
            (due_at, now, int(is_unsent), delivery_id, token),
        )
        if done.rowcount == 1:
            self._tx.topics.add(outbox_topic)
        return bool(done.rowcount == 1)

    def acknowledge(self, delivery_id: str, now: float, by: str) -> bool:
        """Say that a delivery reached its receiver. False if it was over before."""
        done = self._execute(
            "UPDATE deliveries SET state = 'delivered', receipt = ?, updated_at = ?, finished_at = ?, due_at = NULL, "
            "owner = NULL, token = NULL, leased_until = NULL WHERE id = ? AND finished_at IS NULL",
            (by, now, now, delivery_id),
        )
        if done.rowcount == 1:
            self._count("delivered", 1)
        return bool(done.rowcount == 1)

    def replay(self, delivery_id: str, channel: str | None, now: float) -> bool:
        """Owe a dead or delivered delivery once more, under the same id. False if it is neither."""
        delivery = self.delivery(delivery_id)
        if delivery is None or delivery.state not in (DeliveryState.DEAD, DeliveryState.DELIVERED):
            return False
        target = channel or delivery.channel
        self._execute(
            "UPDATE deliveries SET state = ?, channel = ?, due_at = ?, attempt = 0, first_attempt_at = NULL, "
            "receipt = NULL, problem = NULL, declined_by = NULL, finished_at = NULL, updated_at = ?, "
            "home = NULL WHERE id = ?",
            ("stored" if target is None else "due", target, None if target is None else now, now, delivery_id),
        )
        self._count(delivery.state._value_, -1)
        self._tx.topics.add(outbox_topic)
        return True

    # Many at once

    def offer(self, session: str, channel: str, home: str | None, now: float) -> int:
        """Send what is stored for a session through a channel that has just been bound to it, the oldest first."""
        done = self._execute(
            "UPDATE deliveries SET state = 'due', channel = ?, home = ?, due_at = created_at, updated_at = ? "
            "WHERE state = 'stored' AND session = ? AND declined_by IS NOT ?",
            (channel, home, now, session, channel),
        )
        return self._became_due(done.rowcount)

    def revive(self, channel: str, home: str | None, now: float) -> int:
        """Send what was to go through a channel that has come back."""
        done = self._execute(
            "UPDATE deliveries SET state = 'due', due_at = created_at, updated_at = ? "
            "WHERE state = 'stored' AND channel = ? AND channel IS NOT NULL AND home IS ? "
            "AND declined_by IS NOT channel",
            (now, channel, home),
        )
        return self._became_due(done.rowcount)

    def hurry(self, channel: str, now: float) -> int:
        """Make everything due now that waits for a later attempt: the clock was set back."""
        done = self._execute(
            "UPDATE deliveries SET due_at = ?, updated_at = ? WHERE state = 'due' AND channel = ? AND due_at > ?",
            (now, now, channel, now),
        )
        return self._became_due(done.rowcount)

    def _became_due(self, count: int) -> int:
        if count:
            self._tx.topics.add(outbox_topic)
        return count

    def downgrade(self, channel: str, why: str, now: float, *, home: str | None = None) -> int:
        """Store what a channel cannot push any more, with an event. `home` means only those of one owner."""
        where, values = ("", ()) if home is None else (" AND home = ?", (home,))
        done = self._execute(
            "UPDATE deliveries SET state = 'stored', due_at = NULL, updated_at = ?, problem = ? "  # noqa: S608
            f"WHERE state = 'due' AND channel = ?{where}",
            (now, why, channel, *values),
        )
        count: int = done.rowcount
        if count:
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

    def void_leases(self, now: float, delay: Callable[[int], float]) -> list[str]:
        """Make due again what was leased by an owner who is dead, or who did not renew in time.

        `delay` says after how many seconds, by the number of attempts.
        """
        rows = self._execute(
            "SELECT id, owner, attempt, leased_until FROM deliveries WHERE state = 'leased' ORDER BY leased_until"
        ).fetchall()
        lives: dict[str | None, bool] = {}
        voided = []
        for delivery, owner, attempt, until in rows:
            if owner not in lives:
                lives[owner] = self._lives(owner, now)
            if lives[owner] and until >= now:
                continue
            self._execute(
                "UPDATE deliveries SET state = 'due', due_at = ?, updated_at = ?, owner = NULL, token = NULL, "
                "leased_until = NULL WHERE id = ? AND state = 'leased'",
                (now + delay(attempt), now, delivery),
            )
            voided.append(delivery)
        self._became_due(len(voided))
        return voided

    def store_unserved(self, now: float) -> int:
        """Store what is due on channels that nobody living serves; answers how many deliveries that were."""
        stored = 0
        channel = ""
        while True:
            (following,) = self._execute(
                "SELECT min(channel) FROM deliveries WHERE state = 'due' AND channel > ?", (channel,)
            ).fetchone()
            if following is None:
                break
            channel = following
            if not self.is_served(channel, now):
                stored += self.downgrade(channel, "nobody serves this channel just now", now)
        for channel, home in self._execute(
            "SELECT DISTINCT channel, home FROM deliveries WHERE state = 'due' AND home IS NOT NULL"
        ).fetchall():
            if not self._lives(home, now):
                stored += self.downgrade(channel, "its process has ended", now, home=home)
        for name, owner in self._execute("SELECT name, owner FROM channels").fetchall():
            if not self._lives(owner, now):
                self.close_channel(name, owner)
        return stored

    # Expiry

    def expire(self, now: float, limit: int) -> list[str]:
        """Let go of results whose retention is over: the rows stay and tell since when. Answers the promises."""
        rows = self._execute(
            "SELECT id FROM promises WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?",
            (now, limit),
        ).fetchall()
        for (promise,) in rows:
            self._expire(promise, now)
        return [promise for (promise,) in rows]

    def _expire(self, promise: str, now: float) -> None:
        self._execute(
            "UPDATE promises SET state = 'expired', result = NULL, error = NULL, expires_at = NULL, expired_at = ? "
            "WHERE id = ?",
            (now, promise),
        )
        open_ones = self._execute(
            "SELECT id, session, state, attempt FROM deliveries WHERE promise = ? AND finished_at IS NULL", (promise,)
        ).fetchall()
        for delivery, session, state, attempt in open_ones:
            self._execute(
                "UPDATE deliveries SET state = 'expired', finished_at = ?, updated_at = ?, due_at = NULL, "
                "owner = NULL, token = NULL, leased_until = NULL WHERE id = ?",
                (now, now, delivery),
            )
            self._count("expired", 1)
            details = {"delivery": delivery, "session": session, "was": state, "attempts": attempt}
            self.note("expired", details, now)
        self._execute("UPDATE deliveries SET text = NULL, data = NULL WHERE promise = ?", (promise,))
        self._tx.topics.add(promise_topic(promise))

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
