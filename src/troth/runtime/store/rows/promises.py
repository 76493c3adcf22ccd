"""How promises are written: the statements of one open transaction.

The row of a promise is written once. The end of its work stands in the delivery that tells of it, of the kind `done`,
so a promise without that delivery is open. A run and its promise have one id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from troth.errors import InternalError
from troth.runtime.store.json_codec import read
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.promise_records import (
    NewPromise,
    PromiseRecord,
    PromiseState,
    outbox_topic,
    promise_topic,
)
from troth.runtime.store.rows.deliveries import ANY_STATE, DeliveryRows, OpenTransaction

__all__ = [
    "PROMISE",
    "PROMISES",
    "RUN",
    "SHORTEST",
    "USUAL_RETENTION",
    "PromiseRows",
    "PromisedRun",
    "check_promised",
    "promise_of",
]

PROMISE = (
    "p.id, p.session, p.work, coalesce(p.subject, p.id), p.title, p.channel, coalesce(d.outcome, 'open'), "
    "coalesce(d.result, p.result), coalesce(d.error, p.error), p.created_at, d.created_at, d.expires_at, d.expired_at"
)
PROMISES = (
    f"promises p LEFT JOIN deliveries d ON d.{ANY_STATE} AND d.session = p.session AND d.promise = p.number "
    "AND d.kind = 'done' AND d.seq = 1"
)
"""The columns of a promise, and where they come from."""

RUN = "run"
USUAL_RETENTION = 7 * 86400.0
"""Only a retention that is shorter than this is noted for whoever looks for what has expired."""

_LARGE = 1000  # letters of a result that would be written again with every attempt to deliver it
SHORTEST = "shortest retention"
# A value that is given to a statement costs, also one that is nothing: of a promised run, a tenth of what it adds.
_ADD_RUN = (
    "INSERT INTO promises (id, session, work, title, channel, home, retention, created_at) "
    "VALUES (?, ?, 'run', ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
_ADD_OTHER = (
    "INSERT INTO promises (id, session, work, subject, title, channel, home, retention, created_at, is_open) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (id) DO NOTHING"
)
_SETTLE = (
    "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, outcome, expires_at, result, "
    "error, channel, home, due_at, text) VALUES (?, ?, ?, 'done', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SETTLE_STORED = (
    "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, outcome, expires_at, result) "
    "VALUES ('stored', ?, ?, 'done', 1, ?, ?, ?, ?, ?)"
)
"""The same for what is stored, and has nothing to tell but a result."""
_PROMISED = "SELECT number, session, channel, home, retention FROM promises"


class PromisedRun(NamedTuple):
    """What the end of some work needs to know of its promise."""

    number: int
    session: str
    channel: str | None
    home: str | None
    retention: float | None


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


def check_promised(promise: NewPromise, promised: Mapping[str, PromisedRun | None]) -> None:
    """Refuse the promise of a run that was not begun in the same commit, or has another id."""
    id_, subject = promise.id, promise.subject
    if promise.work == RUN and (subject != id_ or id_ not in promised):
        raise InternalError(
            f"The promise {id_!r} of the run {subject!r} has a different id than its run, or was made after it."
        )


class PromiseRows(DeliveryRows):
    """The writes about promises and their deliveries in one transaction, and the reads that they rely on."""

    __slots__ = ("_promised",)

    def __init__(self, tx: OpenTransaction, promised: dict[str, PromisedRun | None]) -> None:
        super().__init__(tx)
        self._promised = promised  # of runs that were begun here: what nearly every end of a run needs

    def add(self, promise: NewPromise) -> bool:
        """Write down a promise before its work begins. Answers whether it is new; an existing one stays as it is.

        That of a run is written in the commit that writes down the run: whoever ends it relies on that.
        """
        id_, session, work, subject, title, channel, home, retention, created_at = promise
        is_run = work == RUN
        check_promised(promise, self._promised)
        if is_run:
            cursor = self._execute(_ADD_RUN, (id_, session, title, channel, home, retention, created_at))
        else:
            cursor = self._execute(
                _ADD_OTHER, (id_, session, work, subject, title, channel, home, retention, created_at)
            )
        if cursor.rowcount != 1:
            return False
        if is_run:
            self._promised[id_] = PromisedRun(cursor.lastrowid, session, channel, home, retention)
        if retention is not None and retention < USUAL_RETENTION:
            self._execute(
                "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value "
                "WHERE CAST(excluded.value AS REAL) < CAST(value AS REAL)",
                (SHORTEST, repr(float(retention))),
            )
        return True

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
        if work == RUN:
            promise, promised = subject, self._of_run(subject)
        else:
            promise, promised = self._close(work, subject)
        if promised is None:
            return None
        number, session, channel, home, retention = promised
        is_large = (result is not None and len(result) > _LARGE) or (error is not None and len(error) > _LARGE)
        if is_large:
            self._execute("UPDATE promises SET result = ?, error = ? WHERE number = ?", (result, error, number))
            result = error = None
        expires_at = None if retention is None else now + retention
        outcome = state._value_
        if channel is None and error is None and text is None:
            self._execute(_SETTLE_STORED, (session, number, now, now, outcome, expires_at, result))
        else:
            way, due_at = ("stored", None) if channel is None else ("due", now)
            self._execute(
                _SETTLE,
                (way, session, number, now, now, outcome, expires_at, result, error, channel, home, due_at, text),
            )
        topics = self._tx.topics
        topics.add(promise_topic(promise))
        topics.add(outbox_topic)
        topics.add(changes_topic)
        return promise

    def _of_run(self, run_id: str) -> PromisedRun | None:
        """What a run has promised that has not ended before."""
        try:
            return self._promised.pop(run_id)
        except KeyError:
            row = self._execute(f"{_PROMISED} WHERE id = ? AND work = 'run' AND is_open IS NULL", (run_id,)).fetchone()
            return None if row is None else PromisedRun(*row)

    def _close(self, work: str, subject: str) -> tuple[str, PromisedRun | None]:
        """The open promise of work that is no run; it is open no more."""
        row = self._execute(
            f"{_PROMISED.replace('SELECT', 'SELECT id,')} WHERE is_open = 1 AND work = ? AND subject = ?",
            (work, subject),
        ).fetchone()
        if row is None:
            return subject, None
        promised = PromisedRun(*row[1:])
        self._execute("UPDATE promises SET is_open = 0 WHERE number = ?", (promised.number,))
        return row[0], promised

    def close_run(self, run_id: str) -> None:
        """A run that has ended goes on: its second end is promised to nobody."""
        self._promised.pop(run_id, None)
        self._execute("UPDATE promises SET is_open = 0 WHERE id = ? AND work = 'run'", (run_id,))

    def find(self, promise_id: str) -> PromiseRecord | None:
        """One promise."""
        row = self._execute(f"SELECT {PROMISE} FROM {PROMISES} WHERE p.id = ?", (promise_id,)).fetchone()  # noqa: S608
        return None if row is None else promise_of(row)

    # Expiry

    def expire(self, now: float, limit: int) -> list[str]:
        """Let go of results whose retention is over: the rows stay and tell since when. Answers the promises."""
        numbers: list[int] = []
        for which in ("finished_at IS NOT NULL", "state = 'due'", "state = 'leased'", "state = 'stored'"):
            rows = self._execute(
                f"SELECT promise FROM deliveries WHERE {which} AND expires_at IS NOT NULL AND expires_at <= ? "  # noqa: S608
                "ORDER BY expires_at LIMIT ?",
                (now, limit - len(numbers)),
            ).fetchall()
            numbers += [number for (number,) in rows]
        return [self._expire(number, now) for number in numbers]

    def _expire(self, number: int, now: float) -> str:
        promise, session = self._execute("SELECT id, session FROM promises WHERE number = ?", (number,)).fetchone()
        of_promise = f"{ANY_STATE} AND session = ? AND promise = ?"
        self._execute(
            f"UPDATE deliveries SET text = NULL, data = NULL WHERE {of_promise}",  # noqa: S608
            (session, number),
        )
        self._execute(
            "UPDATE deliveries SET outcome = 'expired', result = NULL, error = NULL, expires_at = NULL, "  # noqa: S608
            f"expired_at = ? WHERE {of_promise} AND kind = 'done'",
            (now, session, number),
        )
        open_ones = self._execute(
            f"SELECT state, kind, seq, attempt FROM deliveries WHERE {of_promise} AND finished_at IS NULL",  # noqa: S608
            (session, number),
        ).fetchall()
        for state, kind, seq, attempt in open_ones:
            self._execute(
                "UPDATE deliveries SET state = 'expired', finished_at = ?, updated_at = ?, due_at = NULL, "
                "owner = NULL, token = NULL, leased_until = NULL "
                "WHERE state = ? AND session = ? AND promise = ? AND kind = ? AND seq = ?",
                (now, now, state, session, number, kind, seq),
            )
            self._count("expired", 1)
            details = {"delivery": f"{promise}-{kind}-{seq}", "session": session, "was": state, "attempts": attempt}
            self.note("expired", details, now)
        self._execute("UPDATE promises SET result = NULL, error = NULL WHERE number = ?", (number,))
        self._tx.topics.update((promise_topic(promise), changes_topic))
        promise_id: str = promise
        return promise_id
