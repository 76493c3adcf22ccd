"""One connection that sends statements without waiting for the answers that nobody has asked for yet.

It is in pipeline mode all the time: a statement is sent at once, and whoever reads an answer waits for all up to it. An
ordinary commit so makes two round trips, one for its statements and one for COMMIT. What a statement ends with is known
at the next `fetchone`, `fetchall`, `rowcount` or `sync`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.address import Address

__all__ = ["Answer", "Link", "connect", "parameters"]

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


def parameters(address: Address, **settings: str) -> dict[str, Any]:
    """What psycopg is given beside the address, so that statements find the tables of the store's schema."""
    given = conninfo_to_dict(address.conninfo)
    options = " ".join(f"-c {name}={value}" for name, value in {"search_path": address.schema, **settings}.items())
    usual = {name: value for name, value in _USUAL.items() if name not in given}
    return {
        **usual,
        "autocommit": True,
        "prepare_threshold": 2,
        "options": f"{given.get('options') or ''} {options}".strip(),
    }


def connect(address: Address, **settings: str) -> "psycopg.Connection[Any]":
    """A new connection."""
    return psycopg.connect(address.conninfo, **parameters(address, **settings))


class Answer:
    """What a statement answers, once it is read."""

    __slots__ = ("_cursor", "_link")

    def __init__(self, link: "Link", cursor: "psycopg.Cursor[Any]") -> None:
        self._link = link
        self._cursor = cursor

    def fetchone(self) -> Any:
        """The next row, or nothing."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor.fetchall())

    @property
    def rowcount(self) -> int:
        """How many rows were written."""
        self._link.sync()
        return self._cursor.rowcount


class Link:
    """A connection for commits. One thread at a time."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self._stack = contextlib.ExitStack()
        self._pipeline = self._stack.enter_context(connection.pipeline())

    def execute(self, statement: str, values: Values = ()) -> Answer:
        """Send a statement."""
        return Answer(self, self.connection.execute(statement.encode(), values or None))

    def sync(self) -> None:
        """Wait until everything that was sent is done; raises what went wrong with it."""
        self._pipeline.sync()

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE

    def roll_back(self) -> None:
        """Take back what is not committed, whatever state the connection is in; raises if it is gone."""
        with contextlib.suppress(psycopg.Error):  # what was sent and failed is what is rolled back
            self._pipeline.sync()
        self.execute(statements.ROLLBACK)
        self._pipeline.sync()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(psycopg.Error):
            self._stack.close()
        self.connection.close()
