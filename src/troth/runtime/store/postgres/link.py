"""One connection for commits, which sends one statement after the other and waits for each.

Not in pipeline mode: a session whose client is stopped in the middle of a pipeline is not idle for the server, which
then never ends it, and what it has locked stays locked. Between two plain statements it is idle in a transaction, and
the server ends that after as long as a worker lives without a heartbeat. So there are few statements instead.
"""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.address import Address
from troth.runtime.store.postgres.commits.ordinary_appends import OrdinaryAppend
from troth.runtime.store.postgres.commits.ordinary_steps import OrdinaryStep, encode, in_order
from troth.runtime.store.postgres.commits.prepared import (
    Answer,
    PreparedStatements,
    Texts,
    can_be_prepared,
    text_array,
    texts_of,
)
from troth.runtime.store.postgres.pooler import cursor_of, qualified

__all__ = ["CommitConnection", "connect", "connect_plain", "parameters"]

Values = Sequence[object] | Mapping[str, object]
_USUAL: dict[str, str | int] = {
    "connect_timeout": 5,
    "application_name": "troth",
    # A host that is gone answers nothing at all. Without these, a worker would wait for it for a quarter of an hour.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SERVER = {"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"}
"""The same for the other end: a session whose worker's host is gone is ended."""


def parameters(address: Address, **settings: str) -> dict[str, Any]:
    """What psycopg is given beside the address, so that statements find the tables of the store's schema."""
    chosen = conninfo_to_dict(address.conninfo)
    if address.is_pooled:
        return {**_plain(chosen), "cursor_factory": cursor_of(address.schema)}
    server = {"search_path": address.schema, **_SERVER, **settings}
    options = " ".join(f"-c {name}={value}" for name, value in server.items())
    return {
        **_plain(chosen),
        "prepare_threshold": 2,
        "options": f"{chosen.get('options') or ''} {options}".strip(),
    }


def _plain(chosen: Mapping[str, object]) -> dict[str, Any]:
    """What every connection is given, also one through a pooler."""
    usual = {name: value for name, value in _USUAL.items() if name not in chosen}
    return {**usual, "autocommit": True, "prepare_threshold": None}


def connect(address: Address, **settings: str) -> "psycopg.Connection[Any]":
    """A new connection."""
    return psycopg.connect(address.conninfo, **parameters(address, **settings))


def connect_plain(address: Address) -> "psycopg.Connection[Any]":
    """A new connection for which nothing is set, so that it is let in by a pooler, too."""
    return psycopg.connect(address.conninfo, **_plain(conninfo_to_dict(address.conninfo)))


SHORT_PATIENCE = "250ms"
"""How long what shares a transaction waits for a lock, before each part is committed by itself."""


class CommitConnection:
    """A connection for commits, with limits such as `lock_timeout`. One thread at a time."""

    def __init__(self, address: Address, **limits: str) -> None:
        self.connection = connect(address, **limits)
        self.id = uuid.uuid4().hex
        begin = statements.BEGIN
        if address.is_pooled:  # the limits of the session are those of others
            chosen = "".join(statements.SET_LIMIT.format(name=name, value=value) for name, value in limits.items())
            begin = qualified(begin, address.schema).replace("; ", f"; {chosen}", 1)
        self._begin = begin.format(writer=self.id).encode()
        self._usual_patience = limits.get("lock_timeout") if address.is_pooled else None
        # What is the same in every step of this connection stands in the statement itself, which is prepared once.
        limit = statements.LIMIT_LOCKS.format(patience=self._usual_patience) if self._usual_patience else "1"
        self._ordinary_step = statements.ORDINARY_STEP.format(writer=self.id, limit=limit)
        self._append_one = statements.APPEND_ONE_HELD.format(writer=self.id, limit=limit)
        # One cursor for all: each answer is read before the next question, and a new one costs as much as a short one.
        self._cursor = self.connection.cursor()
        is_quick = not address.is_pooled and can_be_prepared(self.connection)
        self._prepared = PreparedStatements(self.connection) if is_quick else None

    def execute(self, statement: str, values: Values = ()) -> "psycopg.Cursor[Any] | Answer":
        """Carry out a statement. Its answer is to be read before the next one is asked."""
        if self._prepared is not None and statement in statements.ORDINARY and not isinstance(values, Mapping):
            texts = texts_of(values)
            if texts is not None:
                return self._prepared.ask(statement, texts)
        return self._cursor.execute(statement, values or None)

    def command(self, statement: str) -> None:
        """Carry out a statement that has neither values nor an answer."""
        if self._prepared is None:
            self.execute(statement)
        else:
            self._prepared.execute_plainly(statement.encode())

    def begin(self) -> str:
        """Begin a transaction; the answer is its number, by which the database can be asked what became of it."""
        if self._prepared is not None:
            rows = self._prepared.execute_plainly(self._begin)
            if rows:
                return str(rows[0][0])
        else:
            answer = self._cursor.execute(self._begin)
            while answer.nextset():
                pass
            if (known := answer.fetchone()) is not None:
                return str(known[0])
        row = self.execute(statements.ADD_WRITER, (self.id,)).fetchone()
        assert row is not None
        return str(row[0])

    def _commit_at_once(self, statement: str, values: Texts) -> Sequence[Sequence[str | None]]:
        """Carry out a statement that is a transaction by itself. No row: nothing was written, and it is tried again."""
        ask = self._ask if self._prepared is None else self._prepared.execute
        answer = ask(statement, values)
        if not answer:  # this connection has no row yet, or was idle for so long that it was removed
            self.execute(statements.ADD_WRITER, (self.id,))
            answer = ask(statement, values)
        return answer

    def _ask(self, statement: str, values: Texts) -> list[tuple[str | None, ...]]:
        return self.execute(statement, values).fetchall()

    def commit_steps(self, number: str, steps: Sequence[OrdinaryStep]) -> dict[int, bool]:
        """Carry out and commit ordinary steps. The answer has the held ones, and whether to cancel their runs.

        `number` is chosen by the caller, who can ask by it what became of the statement: `call_off`.
        """
        if len(steps) == 1 and steps[0].settled is not None:
            is_requested = self.commit_step(number, steps[0])
            return {} if is_requested is None else {0: is_requested}
        patience = SHORT_PATIENCE if len(steps) > 1 else self._usual_patience
        answer = self._commit_at_once(statements.ORDINARY_STEPS, (number, self.id, patience, encode(steps)))
        return {int(index): requested == "1" for index, requested in answer if index is not None}

    def commit_step(self, number: str, step: OrdinaryStep) -> bool | None:
        """`commit_steps` for one that has an answer before it; nothing if its lease is not held."""
        answer = self._commit_at_once(self._ordinary_step, [number, *in_order(step)])
        (requested,) = answer[0]
        return None if requested is None else requested == "1"

    def commit_append(self, number: str, append: OrdinaryAppend) -> bool:
        """Carry out and commit an ordinary append; answers whether it was written. For `number`, see `commit_steps`."""
        resource, token, stream, length, entries, _ = append
        last = str(length)
        if len(entries) == 1:
            kind, payload, at = entries[0]
            one = (resource, token, stream, last, number, kind, payload, repr(at))
            answer = self._commit_at_once(self._append_one, one)
        else:
            kinds, payloads, moments = ([str(value) for value in column] for column in zip(*entries, strict=True))
            columns = (text_array(kinds), text_array(payloads), text_array(moments))
            many = (resource, token, str(len(entries)), stream, last, number, self.id, last, *columns)
            answer = self._commit_at_once(statements.APPEND_HELD, (self._usual_patience, self.id, *many))
        return any(was_written == "true" for (was_written,) in answer)

    def call_off(self, writer: str, number: str) -> bool:
        """Whether the statement `number` of another link was kept. If not, it never will be."""
        row = self.execute(statements.CALL_OFF, (writer,)).fetchone()
        return row is not None and row[0] == number

    def was_kept(self, writer: str, number: str) -> bool | None:
        """Whether a transaction of another link was kept; nothing while that is not decided."""
        with contextlib.suppress(psycopg.errors.InvalidParameterValue):  # the server has never heard of that number
            row = self.execute(statements.IS_IN_PROGRESS, (number,)).fetchone()
            if row is not None and row[0]:
                return None
        row = self.execute(statements.WAS_KEPT, (writer, number)).fetchone()
        return row is not None and bool(row[0])

    def roll_back(self) -> None:
        """Take back what is not committed; raises if the connection is gone."""
        if self.connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
            self.connection.execute(statements.ROLLBACK)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(psycopg.Error):
            if self.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
                self.execute(statements.REMOVE_WRITER, (self.id,))
        self.connection.close()
