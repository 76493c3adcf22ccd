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

__all__ = ["Link", "connect", "parameters"]

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
    server = {"search_path": address.schema, **_SERVER, **settings}
    options = " ".join(f"-c {name}={value}" for name, value in server.items())
    usual = {name: value for name, value in _USUAL.items() if name not in chosen}
    return {
        **usual,
        "autocommit": True,
        "prepare_threshold": 2,
        "options": f"{chosen.get('options') or ''} {options}".strip(),
    }


def connect(address: Address, **settings: str) -> "psycopg.Connection[Any]":
    """A new connection."""
    return psycopg.connect(address.conninfo, **parameters(address, **settings))


SHORT_PATIENCE = "250ms"
"""How long what shares a transaction waits for a lock, before each part is committed by itself."""


class Link:
    """A connection for commits. One thread at a time."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self.id = uuid.uuid4().hex
        self._begin = statements.BEGIN.format(writer=self.id).encode()
        # One cursor for all: each answer is read before the next question, and a new one costs as much as a short one.
        self._cursor = connection.cursor()

    def execute(self, statement: str, values: Values = ()) -> "psycopg.Cursor[Any]":
        """Carry out a statement. Its answer is to be read before the next one is asked."""
        return self._cursor.execute(statement, values or None)

    def begin(self) -> str:
        """Begin a transaction; the answer is its number, by which the database can be asked what became of it."""
        answer = self._cursor.execute(self._begin)
        answer.nextset()
        row = answer.fetchone() or self.execute(statements.ADD_WRITER, (self.id,)).fetchone()
        assert row is not None
        return str(row[0])

    def commit_steps(self, number: str, rows: str, *, is_shared: bool) -> list[tuple[Any, ...]]:
        """Carry out and commit ordinary steps; the answer has those whose leases are held.

        `number` is chosen by the caller, who can ask by it what became of the statement: `call_off`.
        """
        values = (number, self.id, SHORT_PATIENCE if is_shared else None, rows)
        answer = self.execute(statements.ORDINARY_STEPS, values).fetchall()
        if not answer:  # this connection has no row yet, or was idle for so long that it was removed
            self.execute(statements.ADD_WRITER, (self.id,))
            answer = self.execute(statements.ORDINARY_STEPS, values).fetchall()
        return answer

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
