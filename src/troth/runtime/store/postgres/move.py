"""Move a file into PostgreSQL: every row in one transaction, then count and compare both sides.

Who held what in the old place is not moved: those processes have ended, so their runs are free for the workers of the
new one. A second run over the same file finds everything there, compares it, and writes nothing; once the new place has
gone on, by the digests that were noted there.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from troth.errors import MisuseError
from troth.runtime.store.errors import StoreError
from troth.runtime.store.postgres import faults, statements
from troth.runtime.store.postgres.address import Address, parse
from troth.runtime.store.postgres.link import connect_plain
from troth.runtime.store.postgres.store import PostgresStore
from troth.runtime.store.sqlite.message_index import INDEX, INDEXED
from troth.runtime.store.sqlite.store import SqliteStore

__all__ = ["Move", "MovedTable", "move_file"]

_LEFT = frozenset({"owners", "leases", "channels"})  # of processes that have ended
_FETCH = 2000  # rows at a time
_COUNTERS = {"signals": "id", "events": "id", "promises": "number", "state_changes": "id"}
_IN_PARTS = {"outbox_counts": statements.MOVED_OUTBOX_COUNTS, "state_counts": statements.MOVED_STATE_COUNTS}
_BY_TRIGGERS = frozenset({"state_counts", "state_changes"})  # written when other tables are
_MOVED = "moved from a file"
"""The key in `meta` under which stand the digests of the file, by table."""
_OF_ONE_SIDE = frozenset({_MOVED, INDEXED})  # keys in `meta` that say nothing of what is kept


class Move(Enum):
    """What there was to do."""

    WRITTEN = "every row was written"
    THERE = "every row was there already"
    GONE_ON = "every row was written at another time, and the store has changed since"


class MovedTable(NamedTuple):
    """One table: how many rows it has on both sides, and what they come to."""

    table: str
    rows: int
    digest: str


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def move_file(path: str | os.PathLike[str], url: str) -> tuple[list[MovedTable], Move]:
    """Move the file at `path` into the store at `url`. Answers the tables, and what there was to do.

    Refused if somebody living works on the file, if it has changed since it was moved there, or if the store holds
    something else already.
    """
    file, address = Path(path), parse(url)
    if not file.exists():
        raise MisuseError(f"There is no store {str(file)!r}. Nothing was moved.")
    with SqliteStore(file) as store:  # brought to today's version, if it is older
        _check_idle(store)
    with PostgresStore(url) as target:
        name = target.name
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{file.absolute()}?mode=ro", uri=True)) as source,
            contextlib.closing(connect_plain(address)) as connection,
            _in_schema(connection, address),
        ):
            source.execute("BEGIN")  # all that is read is of one moment
            tables = list(_tables(source))
            before = _digests_here(source, tables)
            move = _write(source, connection, address, tables, before, (str(file), name))
            after = before if move is Move.GONE_ON else _digests_there(connection, tables)
            if after != before:
                pairs = zip(before, after, strict=True)
                wrong = ", ".join(here.table for here, there in pairs if here != there)
                raise StoreError(
                    f"What was written to {name} differs from the file: {wrong} differ. None of it was kept."
                )
    except sqlite3.Error as cause:
        raise StoreError(f"The store {str(file)!r} could not be read: {cause}. Nothing was moved.") from cause
    except psycopg.Error as cause:
        raise faults.named(cause, name) from cause
    return after, move


def _check_idle(store: SqliteStore) -> None:
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        resources = [row[0] for row in connection.execute("SELECT resource FROM leases")]
    for resource in resources:
        holder = store.holder(resource)
        if holder is not None and store.is_alive(holder):
            raise MisuseError(
                f"The process {holder.pid} works on {resource!r} of {store.name!r}; nothing was moved.\n"
                "Stop the programs that use the file, and move it then."
            )


def _tables(source: sqlite3.Connection) -> Iterator[_Table]:
    names = source.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
    )
    # Promises come first, because their deliveries are told by their ids; what is told comes last.
    for (name,) in sorted(names.fetchall(), key=lambda row: (row[0] in _BY_TRIGGERS, row[0] != "promises", row[0])):
        if name in _LEFT or name.startswith(INDEX):
            continue
        info = source.execute(f"PRAGMA table_info({name})").fetchall()
        key = [row[1] for row in sorted((row for row in info if row[5]), key=lambda row: row[5])]
        yield _Table(name, tuple(row[1] for row in info), tuple(key))


def _rows_here(source: sqlite3.Connection, table: _Table) -> Iterator[tuple[Any, ...]]:
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    cursor = source.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")  # noqa: S608  names of our own tables
    while rows := cursor.fetchmany(_FETCH):
        yield from _kept(table, rows)


def _rows_there(connection: "psycopg.Connection[Any]", table: _Table) -> Iterator[tuple[Any, ...]]:
    if table.name in _IN_PARTS:
        yield from connection.execute(_IN_PARTS[table.name].encode())
        return
    query = sql.SQL(statements.MOVED_ROWS).format(
        columns=_names(table.columns), table=sql.Identifier(table.name), key=_names(table.key)
    )
    with connection.transaction(), connection.cursor(name="troth_move") as cursor:
        cursor.itersize = _FETCH
        yield from _kept(table, cursor.execute(query))


def _kept(table: _Table, rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    return rows if table.name != "meta" else (row for row in rows if row[0] not in _OF_ONE_SIDE)


@contextlib.contextmanager
def _in_schema(connection: "psycopg.Connection[Any]", address: Address) -> Iterator[None]:
    """A transaction that finds the tables of the store, also through a pooler, which keeps nothing for a session."""
    with connection.transaction():
        connection.execute(sql.SQL(statements.IN_SCHEMA).format(schema=sql.Identifier(address.schema)))
        yield


def _names(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _digest(table: str, rows: Iterable[Sequence[Any]]) -> MovedTable:
    digest, count = hashlib.sha256(), 0
    for row in rows:
        count += 1
        digest.update(json.dumps([value.hex() if isinstance(value, bytes) else value for value in row]).encode())
    return MovedTable(table, count, digest.hexdigest()[:16])


def _digests_here(source: sqlite3.Connection, tables: Sequence[_Table]) -> list[MovedTable]:
    return [_digest(table.name, _rows_here(source, table)) for table in tables]


def _digests_there(connection: "psycopg.Connection[Any]", tables: Sequence[_Table]) -> list[MovedTable]:
    return [_digest(table.name, _rows_there(connection, table)) for table in tables]


def _write(
    source: sqlite3.Connection,
    connection: "psycopg.Connection[Any]",
    address: Address,
    tables: Sequence[_Table],
    before: Sequence[MovedTable],
    names: tuple[str, str],
) -> Move:
    """Copy every table, unless all of them are there already. Whoever else moves at the same time waits."""
    connection.execute(statements.LOCK_STORE, (f"move {address.schema}",))
    digests = _digests_there(connection, tables)
    if digests == list(before):
        return Move.THERE
    if filled := [digest.table for digest in digests if digest.rows]:
        _check_moved(connection, before, filled, names)
        return Move.GONE_ON
    for table in tables:
        columns = (*table.columns, "part") if table.name in _IN_PARTS else table.columns
        if table.name in _BY_TRIGGERS:
            connection.execute(sql.SQL(statements.EMPTY).format(table=sql.Identifier(table.name)))
        into = sql.SQL(statements.COPY_IN).format(table=sql.Identifier(table.name), columns=_names(columns))
        more = (0,) if table.name in _IN_PARTS else ()
        with connection.cursor().copy(into) as copy:
            for row in _rows_here(source, table):
                copy.write_row((*row, *more))
    connection.execute(statements.COUNT_STREAMS)
    for table_name, column in _COUNTERS.items():
        counter = sql.SQL(statements.GO_ON_COUNTING).format(
            place=f"{address.schema}.{table_name}",
            column=column,
            name=sql.Identifier(column),
            table=sql.Identifier(table_name),
        )
        connection.execute(counter)
    connection.execute(statements.SET_META, (_MOVED, json.dumps({one.table: one.digest for one in before})))
    return Move.WRITTEN


def _check_moved(
    connection: "psycopg.Connection[Any]", before: Sequence[MovedTable], filled: Sequence[str], names: tuple[str, str]
) -> None:
    """Refuse a store that has rows, unless the file was moved there, and has not changed since."""
    file, name = names
    row = connection.execute(statements.GET_META, (_MOVED,)).fetchone()
    if row is None:
        raise MisuseError(
            f"The store {name} is not empty: it has rows in {', '.join(filled)}.\n"
            "Nothing was moved. Name an empty schema: `postgresql://…?schema=NAME`."
        )
    moved = json.loads(row[0])
    if changed := [one.table for one in before if moved.get(one.table) != one.digest]:
        raise MisuseError(
            f"The store {name} is not empty: a file was moved there, which differs from {file!r} in "
            f"{', '.join(changed)}.\n"
            "Nothing was moved. If a program still uses the file, stop it: two places would go on with the same runs. "
            "To move the file as it is now, name an empty schema: `postgresql://…?schema=NAME`."
        )
