"""Knows the tables of the store's file, and how a file of an older version becomes one of today.

A version, once released, is never edited: a change is a new entry at the end of `MIGRATIONS`. The version stands in
`PRAGMA user_version`, and `PRAGMA application_id` says that the file is ours.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from troth.runtime.store.errors import NewerStoreError, NotAStoreError, StoreError, UnsupportedSqliteError

__all__ = ["APPLICATION", "MIGRATIONS", "VERSION", "inspect_file", "migrate", "probe", "version_of"]

APPLICATION = 0x54524F54  # "TROT"

_V1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE runs (
    id TEXT PRIMARY KEY, decision TEXT NOT NULL, label TEXT, state TEXT NOT NULL, args TEXT NOT NULL,
    result TEXT, error TEXT, code TEXT, parent TEXT, forked_from TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0, waiting_for TEXT, wake_at REAL,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
);
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_by_decision ON runs (decision, created_at, id);
CREATE INDEX runs_by_label ON runs (label, created_at, id) WHERE label IS NOT NULL;
CREATE INDEX runs_to_cancel ON runs (state) WHERE cancel_requested = 1;
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;

CREATE TABLE steps (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    args TEXT NOT NULL, code TEXT, color TEXT, result TEXT, error TEXT,
    started_at REAL NOT NULL, finished_at REAL, wake_at REAL,
    PRIMARY KEY (run_id, branch, seq)
) WITHOUT ROWID;

CREATE TABLE attempts (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL,
    outcome TEXT NOT NULL, error TEXT, started_at REAL, finished_at REAL NOT NULL, next_at REAL
);
CREATE INDEX attempts_by_place ON attempts (run_id, branch, seq);

CREATE TABLE signals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    key TEXT, sent_at REAL NOT NULL, taken_by TEXT
);
CREATE INDEX signals_untaken ON signals (run_id, name, id) WHERE taken_by IS NULL;
CREATE INDEX signals_by_run ON signals (run_id, id);
CREATE UNIQUE INDEX signals_once ON signals (run_id, key) WHERE key IS NOT NULL;

CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, payload TEXT NOT NULL, at REAL NOT NULL
);
CREATE UNIQUE INDEX events_by_place ON events (stream, seq);

CREATE TABLE owners (
    id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL, pid_started INTEGER NOT NULL,
    beat_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE leases (resource TEXT PRIMARY KEY, owner TEXT NOT NULL, token TEXT NOT NULL, taken_at REAL NOT NULL)
WITHOUT ROWID;
CREATE INDEX leases_by_owner ON leases (owner);
"""

MIGRATIONS: Sequence[str] = (_V1,)
VERSION = len(MIGRATIONS)

_NEEDS = {
    "partial indexes and tables WITHOUT ROWID (3.8.2)": (
        "CREATE TABLE a (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID; CREATE INDEX b ON a (v) WHERE v IS NOT NULL;"
    ),
    "INSERT … ON CONFLICT DO UPDATE (3.24)": (
        "INSERT INTO a VALUES ('x', 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v;"
    ),
}


def probe(connection: sqlite3.Connection, version: str = sqlite3.sqlite_version) -> None:
    """Refuse a SQLite that lacks what the store stands on. `connection` is an empty one, in memory."""
    if sqlite3.threadsafety == 0:
        raise UnsupportedSqliteError(
            f"This Python's SQLite ({version}) was built without thread safety; the store is used from any thread.\n"
            "Nothing was opened. Use a Python whose SQLite is built with SQLITE_THREADSAFE=1, as nearly all are."
        )
    for feature, statements in _NEEDS.items():
        try:
            connection.executescript(statements)
        except sqlite3.Error as cause:
            raise UnsupportedSqliteError(
                f"This Python's SQLite ({version}) does not have {feature}: {cause}.\n"
                "Nothing was opened. Use a Python linked with SQLite 3.24 or newer; "
                "`python -c 'import sqlite3; print(sqlite3.sqlite_version)'` shows which one it has."
            ) from cause


def inspect_file(path: Path) -> int:
    """The version of the file, 0 for a new one. Opens it for reading only, so what is refused stays untouched."""
    if path.is_dir():
        raise NotAStoreError(f"{str(path)!r} is a folder, and a store is a file. Nothing was done. Name a file in it.")
    if not path.exists() or path.stat().st_size == 0:
        return 0
    # Without a log the file is the whole truth, and reading it as immutable leaves no side files behind.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=5.0)
        try:
            version, application = version_of(connection)
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.DatabaseError as cause:
        if "not a database" in str(cause):
            raise NotAStoreError(
                f"{str(path)!r} is not a Troth store: {cause}. It was not touched. Name another file, or move it away."
            ) from cause
        raise StoreError(f"The store {str(path)!r} could not be read: {cause}. It was not touched.") from cause
    if application != APPLICATION and (tables or version):
        raise NotAStoreError(
            f"{str(path)!r} is a database of another program ({tables} tables, none of them Troth's).\n"
            "It was not touched. Name another file for the store."
        )
    if version > VERSION:
        raise NewerStoreError(
            f"{str(path)!r} is a store of version {version}; this Troth knows versions up to {VERSION}.\n"
            "It was not touched, because an older program would not keep what a newer one relies on.\n"
            "Install the Troth that wrote it, or a newer one, or name another file."
        )
    return version


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """The schema version and the application id of an open file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return version, application


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring the file to the last of `migrations`, inside the transaction that the caller has begun."""
    version, _ = version_of(connection)
    for number, script in enumerate(migrations[version:], start=version + 1):
        for statement in filter(str.strip, script.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
