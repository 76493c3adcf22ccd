"""Do without a session of one's own where a pooler of connections stands between: each transaction may have another.

What is set for a session is lost there, so nothing is: the tables are named with their schema, the limits of a commit
are set in its own transaction, no statement is prepared, and nobody listens for news. That a pooler stands between is
seen by the number of the server's process: a pooler tells one of its own.
"""

import functools
import re
from typing import Any

import psycopg

from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.schema import MIGRATIONS

__all__ = ["cursor_of", "is_between", "qualified"]

_CREATED = re.compile(r"CREATE TABLE (\w+)")


def is_between(connection: "psycopg.Connection[Any]") -> bool:
    """Whether a pooler stands between us and the server of that connection."""
    row = connection.execute(statements.SERVER_PROCESS).fetchone()
    return row is not None and row[0] != connection.info.backend_pid


@functools.cache
def _tables() -> "re.Pattern[str]":
    """A table of ours where a statement names one to read from or to write to."""
    names = {name for version in MIGRATIONS for statement in version for name in _CREATED.findall(statement)}
    return re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)( +)({'|'.join(sorted(names))})\b")


@functools.lru_cache(maxsize=2000)
def qualified(statement: str, schema: str) -> str:
    """The statement with the tables named in their schema. `runs.id` then still means the table of that name."""
    return _tables().sub(rf'\1\2"{schema}".\3', statement)


def cursor_of(schema: str) -> "type[psycopg.Cursor[Any]]":
    """A cursor that finds the tables of `schema` whatever the search path is."""

    class QualifiedCursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            if isinstance(query, bytes):
                query = query.decode()
            if isinstance(query, str):
                query = qualified(query, schema)
            return super().execute(query, params, **options)

    return QualifiedCursor
