"""How promises and their deliveries are written where other workers write at the same time.

What `promise_rows` says of a file holds here too; the statements that differ lock what they rely on. A delivery that
another worker has in hand is left to it.
"""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from troth.runtime.store.identity import Owner
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.dialect import translating
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.promise_records import DeliveryAttempt, DeliveryRecord, NewPromise
from troth.runtime.store.rows.deliveries import LOST, delivery_of, place_of, with_attempt
from troth.runtime.store.rows.promises import RUN, SHORTEST, USUAL_RETENTION, PromisedRun, PromiseRows, check_promised

__all__ = ["PostgresPromiseRows"]


class _Transaction(Protocol):
    topics: set[str]
    liveness: Liveness

    def execute(self, statement: str, values: Any = ()) -> Any: ...

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int: ...


class _Translated:
    """The transaction as the statements for both databases need it."""

    __slots__ = ("_tx", "execute")

    def __init__(self, tx: _Transaction) -> None:
        self._tx = tx
        self.execute = translating(tx.execute)

    @property
    def topics(self) -> set[str]:
        return self._tx.topics

    @topics.setter
    def topics(self, topics: set[str]) -> None:
        self._tx.topics = topics

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        return self._tx.append_event(stream, kind, payload, now)


class PostgresPromiseRows(PromiseRows):
    """The writes about promises in one transaction, and the reads that they rely on."""

    __slots__ = ("_liveness", "_native")

    def __init__(self, tx: _Transaction, promised: dict[str, PromisedRun | None]) -> None:
        super().__init__(_Translated(tx), promised)
        self._native = tx.execute
        self._liveness = tx.liveness

    def add(self, promise: NewPromise) -> bool:
        """Write down a promise before its work begins. Answers whether it is new; an existing one stays as it is."""
        id_, session, work, subject, title, channel, home, retention, created_at = promise
        is_run = work == RUN
        check_promised(promise, self._promised)
        known_by, is_open = (None, None) if is_run else (subject, 1)
        values = (id_, session, work, known_by, title, channel, home, retention, created_at, is_open)
        row = self._native(statements.ADD_PROMISE, values).fetchone()
        if row is None:
            return False
        if is_run:
            self._promised[id_] = PromisedRun(row[0], session, channel, home, retention)
        if retention is not None and retention < USUAL_RETENTION:
            self._native(statements.NOTE_SHORTEST, {"key": SHORTEST, "value": repr(float(retention))})
        return True

    def _close(self, work: str, subject: str) -> tuple[str, PromisedRun | None]:
        """The open promise of work that is no run; it is open no more, whoever else would close it."""
        row = self._native(statements.CLOSE_PROMISE, (work, subject)).fetchone()
        return (subject, None) if row is None else (row[0], PromisedRun(*row[1:]))

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
        """Write down one more delivery of a promise; its number follows the last one, whoever wrote that."""
        self._native(statements.LOCK_PROMISE, (promise_id,))
        return super().add_delivery(promise_id, kind, now, text=text, data=data, count=count, channel=channel)

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
        """Take up to `limit` deliveries of a channel that are due; those that another worker takes are left out."""
        due = self._native(statements.LOCK_DUE, (channel, due_before, owner, list(besides), limit)).fetchall()
        lease = (owner, token, until, now, now)
        return [delivery_of(self._native(statements.LEASE_DELIVERY, (*lease, *place)).fetchone()) for place in due]

    def replay(self, delivery_id: str, channel: str | None, now: float) -> bool:
        """Owe a dead or delivered delivery once more, under the same id. False if it is neither."""
        self._native(statements.LOCK_DELIVERY, place_of(delivery_id))
        return super().replay(delivery_id, channel, now)

    def offer(self, session: str, channel: str, home: str | None, now: float) -> int:
        """Send what is stored for a session through a channel that has just been bound to it, the oldest first."""
        return self._became_due(self._native(statements.OFFER, (channel, home, now, now, session, channel)).rowcount)

    def revive(self, channel: str, home: str | None, now: float) -> int:
        """Send what was to go through a channel that has come back."""
        return self._became_due(self._native(statements.REVIVE, (now, now, channel, home)).rowcount)

    def open_channel(self, channel: str, owner: str, now: float) -> None:
        """Write down that an owner serves a channel."""
        self._native(statements.LOCK_CHANNEL, (channel,))
        super().open_channel(channel, owner, now)

    def is_served(self, channel: str, now: float) -> bool:  # noqa: ARG002  the database has its own clock
        """Whether somebody living serves a channel. Until this commit nobody new does."""
        self._native(statements.LOCK_CHANNEL, (channel,))
        rows = self._native(statements.SERVERS, (channel,)).fetchall()
        return any(self._liveness.is_alive(Owner(*row)) for row in rows)

    def _lives(self, owner: str | None, now: float) -> bool:  # noqa: ARG002
        record = None if owner is None else self._owner(owner)
        return record is not None and self._liveness.is_alive(record)

    def void_leases(self, now: float, delay: Callable[[int], float]) -> int:
        """Make due again what was leased by an owner who is dead, or who did not renew in time. Answers how many."""
        lives: dict[str | None, bool] = {}
        voided = 0
        for *place, owner, attempt, until, channel, written in self._native(statements.LOCK_LEASED).fetchall():
            if owner not in lives:
                lives[owner] = self._lives(owner, now)
            if not lives[owner] or until < now:
                attempts = with_attempt(written, DeliveryAttempt(attempt, now, channel, "lost", LOST))
                self._native(statements.VOID_LEASE, (now + delay(attempt), now, attempts, *place))
                voided += 1
        return self._became_due(voided)

    def expire(self, now: float, limit: int) -> list[str]:
        """Let go of results whose retention is over. Answers the promises; those in another worker's hands stay."""
        expired = self._native(statements.LOCK_EXPIRED, (now, limit)).fetchall()
        return [self._expire(number, now) for (number,) in expired]

    def _count(self, name: str, change: int) -> None:
        self._native(statements.COUNT, (name, change))
