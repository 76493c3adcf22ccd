"""The tables of the store's file, and how a file of an older version becomes one of today.

A version, once released, is never edited: a change is a new entry at the end of `MIGRATIONS`. The version stands in
`PRAGMA user_version`, and `PRAGMA application_id` says that the file is ours.
"""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from troth.runtime.store.errors import (
    FAULTS,
    NewerStoreError,
    NotAStoreError,
    StoreError,
    UnsupportedSqliteError,
)
from troth.runtime.store.sqlite import migrate_version_3 as into_history
from troth.runtime.store.sqlite import migrate_version_7 as into_lists
from troth.runtime.store.sqlite import migrate_version_9 as into_cheaper_lists
from troth.runtime.store.sqlite.read_only import cannot_be_written, not_writable

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

_SESSIONS = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, creator TEXT NOT NULL, state TEXT NOT NULL, config TEXT NOT NULL,
    created_at REAL NOT NULL, ends_at REAL NOT NULL, ended_at REAL, ending TEXT
) WITHOUT ROWID;
CREATE INDEX sessions_by_age ON sessions (created_at, id);
CREATE INDEX sessions_by_state ON sessions (state, created_at, id);
CREATE INDEX sessions_due ON sessions (ends_at) WHERE state IN ('created', 'handshaking', 'active');

CREATE TABLE members (
    session TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, ring INTEGER NOT NULL, score REAL NOT NULL,
    vouched TEXT NOT NULL, actions TEXT NOT NULL, history TEXT, joined_at REAL NOT NULL, left_at REAL,
    elevated INTEGER, elevated_until REAL, tokens REAL, tokens_at REAL NOT NULL,
    breach REAL NOT NULL DEFAULT 0, breach_at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (session, agent)
) WITHOUT ROWID;
CREATE INDEX members_present ON members (session) WHERE state IN ('present', 'suspended');

CREATE TABLE session_work (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, what TEXT NOT NULL,
    begun_at REAL NOT NULL, is_over INTEGER NOT NULL DEFAULT 0, kill TEXT, handed_to TEXT,
    undone TEXT NOT NULL DEFAULT '[]', process TEXT
) WITHOUT ROWID;
CREATE INDEX session_work_open ON session_work (session, agent) WHERE is_over = 0;
CREATE INDEX session_work_by_kill ON session_work (kill) WHERE kill IS NOT NULL;

CREATE TABLE workspace (
    session TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, owner TEXT NOT NULL,
    readers TEXT, writers TEXT, written_at REAL NOT NULL, PRIMARY KEY (session, path)
) WITHOUT ROWID;
CREATE TABLE workspace_snapshots (
    session TEXT NOT NULL, snapshot TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, owner TEXT NOT NULL,
    readers TEXT, writers TEXT, written_at REAL NOT NULL, PRIMARY KEY (session, snapshot, path)
) WITHOUT ROWID;

CREATE TABLE kills (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, reason TEXT NOT NULL, substitute TEXT,
    at REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 1, answer TEXT
) WITHOUT ROWID;
CREATE INDEX kills_by_agent ON kills (session, agent, at);

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL,
    data TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, mac BLOB NOT NULL
);
CREATE INDEX audit_by_session ON audit (session, seq);
"""
"""Sessions: who is where, what goes on, and what was done. `audit` has no AUTOINCREMENT: its numbers have no gaps."""

_PROMISES = """
CREATE TABLE promises (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, work TEXT NOT NULL, subject TEXT NOT NULL, title TEXT NOT NULL,
    channel TEXT, home TEXT, state TEXT NOT NULL, result TEXT, error TEXT, retention REAL,
    created_at REAL NOT NULL, settled_at REAL, expires_at REAL, expired_at REAL
) WITHOUT ROWID;
CREATE UNIQUE INDEX promises_open ON promises (work, subject) WHERE state = 'open';
CREATE INDEX promises_by_subject ON promises (work, subject);
CREATE INDEX promises_by_session ON promises (session, created_at, id);
CREATE INDEX promises_expiring ON promises (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE deliveries (
    id TEXT PRIMARY KEY, promise TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
    text TEXT, data TEXT, count INTEGER NOT NULL DEFAULT 1, state TEXT NOT NULL,
    channel TEXT, home TEXT, attempt INTEGER NOT NULL DEFAULT 0, first_attempt_at REAL, due_at REAL,
    owner TEXT, token TEXT, leased_until REAL, receipt TEXT, problem TEXT, declined_by TEXT,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
) WITHOUT ROWID;
CREATE INDEX deliveries_by_promise ON deliveries (promise, kind, seq);
CREATE INDEX deliveries_due ON deliveries (channel, due_at, created_at) WHERE state = 'due';
CREATE INDEX deliveries_due_at_home ON deliveries (home) WHERE state = 'due' AND home IS NOT NULL;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE state = 'leased';
CREATE INDEX deliveries_stored_for ON deliveries (channel) WHERE state = 'stored' AND channel IS NOT NULL;
CREATE INDEX deliveries_owed ON deliveries (created_at, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_dead ON deliveries (created_at, id) WHERE state = 'dead';
CREATE INDEX deliveries_by_age ON deliveries (created_at, id);

CREATE TABLE outbox_counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE channels (
    name TEXT NOT NULL, owner TEXT NOT NULL, opened_at REAL NOT NULL, PRIMARY KEY (name, owner)
) WITHOUT ROWID;
"""

_HISTORY = """
CREATE TABLE history (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL, what TEXT NOT NULL, at REAL NOT NULL,
    branch TEXT, step INTEGER, name TEXT, data TEXT, kind TEXT, key TEXT, args TEXT, color TEXT, code TEXT,
    attempt INTEGER, outcome TEXT, began_at REAL, wake_at REAL, note TEXT, done_by TEXT,
    PRIMARY KEY (run_id, seq, sub)
) WITHOUT ROWID;
CREATE INDEX history_waits ON history (run_id, name, seq, sub) WHERE kind = 'wait';

ALTER TABLE runs ADD COLUMN ending TEXT;
CREATE INDEX runs_by_word ON runs (substr(decision, 1, instr(decision, ':')), coalesce(ending, state), created_at, id)
    WHERE instr(decision, ':') > 0;
"""
"""What happened in each run, appended and never changed; a step is what its entries say. It takes the place of `steps`
and `attempts`. An entry that is shown has a number of its own, with `sub` 0; those that are not shown stand behind it,
with its number, so that the numbers of those shown have no gaps. What most entries have comes first: with the columns
in another order a step costs a tenth more."""

_STEPS_GONE = "DROP TABLE steps; DROP TABLE attempts"

_ASKS = """
CREATE TABLE asks (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, arguments TEXT NOT NULL,
    digest TEXT NOT NULL, policy TEXT NOT NULL, reason TEXT NOT NULL, people INTEGER NOT NULL,
    asked_at REAL NOT NULL, expires_at REAL NOT NULL, state TEXT NOT NULL, answers TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE INDEX asks_open ON asks (session, asked_at) WHERE state = 'open';
"""
"""Acts that wait for the yes of a person."""

_SERVER = """
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, scopes TEXT NOT NULL,
    created_at REAL NOT NULL, expires_at REAL, revoked_at REAL
) WITHOUT ROWID;

CREATE TABLE belongings (
    kind TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, about TEXT NOT NULL, created_at REAL NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX belongings_by_age ON belongings (kind, created_at, id);
CREATE INDEX belongings_by_owner ON belongings (owner, kind, created_at, id);

CREATE TABLE turns (conversation TEXT PRIMARY KEY, agent TEXT NOT NULL, begun_at REAL NOT NULL) WITHOUT ROWID;

CREATE TABLE requests (
    owner TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, base TEXT NOT NULL, holder TEXT,
    answer TEXT, created_at REAL NOT NULL, finished_at REAL, PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX requests_by_age ON requests (created_at);

CREATE TABLE trimmed (stream TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
"""
"""What a server keeps: keys as digests, what belongs to whom, turns that are not over, answers to requests that may be
repeated. `trimmed` says up to which entry a stream was cut off."""

_LEAN_PROMISES = """
CREATE TABLE lean_promises (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, work TEXT NOT NULL, subject TEXT,
    title TEXT NOT NULL, channel TEXT, home TEXT, retention REAL, created_at REAL NOT NULL, is_open INTEGER,
    result TEXT, error TEXT
);
CREATE TABLE lean_deliveries (
    state TEXT NOT NULL, session TEXT NOT NULL, promise INTEGER NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, outcome TEXT, expires_at REAL, result TEXT, error TEXT,
    channel TEXT, home TEXT, due_at REAL, text TEXT, data TEXT, count INTEGER NOT NULL DEFAULT 1,
    attempt INTEGER NOT NULL DEFAULT 0, first_attempt_at REAL, owner TEXT, token TEXT, leased_until REAL, receipt TEXT,
    problem TEXT, declined_by TEXT, finished_at REAL, expired_at REAL,
    PRIMARY KEY (state, session, promise, kind, seq)
) WITHOUT ROWID;

INSERT INTO lean_promises (id, session, work, subject, title, channel, home, retention, created_at, is_open)
    SELECT id, session, work, CASE WHEN work = 'run' AND subject = id THEN NULL ELSE subject END, title, channel, home,
        retention, created_at, CASE WHEN (work = 'run' AND subject = id) THEN NULL ELSE state = 'open' END
    FROM promises ORDER BY created_at, id;
INSERT INTO lean_deliveries
    SELECT d.state, d.session, n.number, d.kind, d.seq, d.created_at, d.updated_at,
        CASE d.kind WHEN 'done' THEN p.state END, CASE d.kind WHEN 'done' THEN p.expires_at END,
        CASE d.kind WHEN 'done' THEN p.result END, CASE d.kind WHEN 'done' THEN p.error END,
        d.channel, d.home, d.due_at, d.text, d.data, d.count, d.attempt, d.first_attempt_at, d.owner, d.token,
        d.leased_until, d.receipt, d.problem, d.declined_by, d.finished_at,
        CASE d.kind WHEN 'done' THEN p.expired_at END
    FROM deliveries d JOIN promises p ON p.id = d.promise JOIN lean_promises n ON n.id = p.id;
INSERT INTO meta (key, value)
    SELECT 'shortest retention', shortest FROM (SELECT min(retention) AS shortest FROM promises)
    WHERE shortest IS NOT NULL
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
UPDATE outbox_counts SET name = 'further', count = count - (SELECT count(*) FROM promises) WHERE name = 'promised';

DROP TABLE promises;
DROP TABLE deliveries;
ALTER TABLE lean_promises RENAME TO promises;
ALTER TABLE lean_deliveries RENAME TO deliveries;

CREATE UNIQUE INDEX promises_open ON promises (work, subject) WHERE is_open = 1;
CREATE INDEX promises_by_work ON promises (work, number) WHERE work != 'run';
CREATE INDEX deliveries_due ON deliveries (channel, home, due_at, created_at) WHERE state = 'due';
CREATE INDEX deliveries_over_by_age ON deliveries (created_at) WHERE finished_at IS NOT NULL;
CREATE INDEX deliveries_expiring ON deliveries (expires_at) WHERE finished_at IS NOT NULL AND expires_at IS NOT NULL;
CREATE INDEX deliveries_expired ON deliveries (expired_at) WHERE expired_at IS NOT NULL;
"""
"""The same with fewer pages. Each page that a commit touches costs a third of a whole one-row commit, and a promise
touched fourteen beside those of its run; now it is three, or four where it is pushed. So: the row of a promise is
written once, when it is made; the end of its work stands in the delivery that tells of it, of which there is one.
Deliveries lie by their state and their session, so that what is owed is found without an index of its own; those by age
and by expiry follow when a delivery is over, and are written by whoever delivers, many in one commit. Of a promised run
`runs_by_state` says that it is open (`subject` and `is_open` are for other work). `number` counts promises, without
gaps, since none is ever deleted. A `result` or `error` that is large stands with the promise: a delivery is written
anew with each attempt."""


Migration = str | Callable[[sqlite3.Connection], None]
"""A script of statements, or what a script cannot do."""

MIGRATIONS: Sequence[Sequence[Migration]] = (
    (_V1,),
    (_SESSIONS,),
    (_PROMISES,),
    (_HISTORY, into_history.move, _STEPS_GONE),
    (_ASKS,),
    (_SERVER,),
    (_LEAN_PROMISES,),
    (into_lists.TABLES, into_lists.move),
    ("ALTER TABLE deliveries ADD COLUMN attempts TEXT",),
    (into_cheaper_lists.move,),
)
VERSION = len(MIGRATIONS)

_NEEDS = {
    "partial indexes and tables WITHOUT ROWID (3.8.2)": (
        "CREATE TABLE a (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID; CREATE INDEX b ON a (v) WHERE v IS NOT NULL;"
    ),
    "INSERT … ON CONFLICT DO UPDATE (3.24)": (
        "INSERT INTO a VALUES ('x', 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v;"
    ),
    "window functions (3.25)": "SELECT row_number() OVER (PARTITION BY k ORDER BY v) FROM a;",
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
                "Nothing was opened. Use a Python linked with SQLite 3.25 or newer; "
                "`python -c 'import sqlite3; print(sqlite3.sqlite_version)'` shows which one it has."
            ) from cause


def inspect_file(path: Path) -> int:
    """The version of the file, 0 for a new one. Opens it for reading only, so what is refused stays untouched."""
    if path.is_dir():
        raise NotAStoreError(f"{str(path)!r} is a folder, and a store is a file. Nothing was done. Name a file in it.")
    if not path.exists() or path.stat().st_size == 0:
        return 0
    # Without a log the file is the whole truth, and reading it as immutable leaves no side files behind.
    log = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=5.0)
        try:
            version, application = version_of(connection)
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            connection.close()
    except FAULTS as cause:
        if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise NotAStoreError(
                f"{str(path)!r} is not a Troth store: {cause}. It was not changed. Name another file, or move it away."
            ) from cause
        if cannot_be_written(cause) and path.exists():
            raise not_writable(path, cause) from cause
        raise StoreError(f"The store {str(path)!r} could not be read: {cause}. It was not changed.") from cause
    if application != APPLICATION and (tables or version):
        raise NotAStoreError(
            f"{str(path)!r} is a database of another program, with tables of its own.\n"
            "It was not changed. Name another file for the store."
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


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[Migration]] = MIGRATIONS) -> None:
    """Bring the file to the last of `migrations`, inside the transaction that the caller has begun."""
    version, _ = version_of(connection)
    for number, parts in enumerate(migrations[version:], start=version + 1):
        for part in parts:
            if callable(part):
                part(connection)
                continue
            for statement in filter(str.strip, part.split(";")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
