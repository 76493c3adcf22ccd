"""The tables in PostgreSQL: made once, by whoever comes first, and the same as those of the file."""

import ast
import contextlib
import re
import sqlite3
import threading
import time
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from troth.errors import MisuseError
from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.store import (
    NewerStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    RunState,
    SqliteStore,
    commit_point,
    open_store,
)
from troth.runtime.store.postgres import schema
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.link import connect

POINT = commit_point("test.commit", "whatever a test writes")
OURS = {"streams", "writers", "troth_version"}  # what counting and asking need where others write, too
KINDS = {"TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"}
COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable = 'NO', collation_name FROM information_schema.columns "
    "WHERE table_schema = %s"
)


@pytest.fixture
def address(postgres_server):
    return postgres_server.address()


def columns_of(address):
    with contextlib.closing(connect(parse(address))) as connection:
        return connection.execute(COLUMNS, (parse(address).schema,)).fetchall()


def test_both_stores_have_the_same_columns(address, tmp_path):
    """A table or a column that only one of them has would be lost when a file is moved."""
    SqliteStore(tmp_path / "troth.db").close()
    open_store(address).close()
    here = {}
    with contextlib.closing(sqlite3.connect(tmp_path / "troth.db")) as file:
        for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite*'"):
            for _, column, kind, is_needed, _, key in file.execute(f"PRAGMA table_info({table})").fetchall():
                here[table, column] = KINDS[kind], bool(is_needed or key)
    there = {(row[0], row[1]): (row[2], row[3]) for row in columns_of(address) if row[0] not in OURS}
    for table in ("outbox_counts", "state_counts"):
        assert there.pop((table, "part")) == ("bigint", True)
    assert there == here


def test_text_is_compared_byte_by_byte(address):
    """Whatever language the database speaks: pages and prefixes rely on it."""
    open_store(address).close()
    texts = [row for row in columns_of(address) if row[2] == "text"]
    assert len(texts) > 50
    assert {row[4] for row in texts} == {"C"}


def test_workers_that_start_together_make_the_tables_once(address):
    """Each of them finds a store that is whole."""
    problems = []

    def start():
        try:
            with open_store(address) as store:
                store.commit(POINT, lambda tx: tx.append_event("s", "said", 1, 1.0))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    with open_store(address) as store:
        assert store.last_event("s") == 6


def test_a_migrated_schema_is_a_fresh_one(postgres_server):
    """Version by version, or all at once."""
    step, fresh = postgres_server.address(), postgres_server.address()
    for number in range(1, schema.VERSION + 1):
        with contextlib.closing(connect(parse(step))) as connection:
            schema.migrate(connection, parse(step).schema, schema.MIGRATIONS[:number])
    open_store(fresh).close()
    assert sorted(columns_of(step)) == sorted(columns_of(fresh))
    assert objects_of(step) == objects_of(fresh)


def objects_of(address):
    """Indexes, triggers and functions of a schema, without its name."""
    name = parse(address).schema
    with contextlib.closing(connect(parse(address))) as connection:
        indexes = connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = %s", (name,)).fetchall()
        triggers = connection.execute(
            "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND NOT t.tgisinternal",
            (name,),
        ).fetchall()
        functions = connection.execute(
            "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
            "WHERE n.nspname = %s",
            (name,),
        ).fetchall()
    assert min(len(indexes), len(triggers), len(functions)) > 5
    return sorted(text.replace(name, "schema") for (text,) in (*indexes, *triggers, *functions))


def test_a_store_of_the_version_before_is_counted(address):
    """Runs, deliveries and conversations that are there already are in the lists and in the counts."""
    name = parse(address).schema
    with contextlib.closing(connect(parse(address))) as connection:
        schema.migrate(connection, name, schema.MIGRATIONS[:1])
        connection.execute(
            "INSERT INTO runs (id, decision, state, args, created_at, updated_at, ending) VALUES "
            "('a', 'workflow:x', 'failed', '[]', 1, 1, 'rolled back'), ('b', 'workflow:x', 'waiting', '[]', 2, 2, NULL)"
        )
        for seq, (kind, payload) in enumerate(
            [
                ("opened", '{"agent":"Clerk"}'),
                ("message", '{"role":"user","text":"hello"}'),
                ("run.started", '{"run":"1"}'),
                ("run.ended", '{"run":"1","outcome":"finished"}'),
            ],
            start=1,
        ):
            connection.execute(
                "INSERT INTO events (stream, seq, kind, payload, at) VALUES ('conversation/talk', %s, %s, %s, %s)",
                (seq, kind, payload, float(seq)),
            )
    with open_store(address) as store:
        counts = store.lists.counts(family="workflow:")
        assert (counts.runs, counts.conversations) == ({"rolled back": 1, "waiting": 1}, {"finished": 1})
        (talk,) = store.lists.conversations()
        assert (talk.id, talk.agent, talk.title, talk.opened_at, talk.changed_at) == (
            "talk",
            "Clerk",
            "hello",
            1.0,
            4.0,
        )
        assert [item.id for item in store.lists.runs(family="workflow:")] == ["b", "a"]
        assert store.lists.changes().items == []


def test_a_store_of_version_3_keeps_what_a_receiver_said_last(address):
    """What it said before was not kept; from now on each attempt is."""
    name = parse(address).schema
    with contextlib.closing(connect(parse(address))) as connection:
        schema.migrate(connection, name, schema.MIGRATIONS[:3])
        connection.execute(
            "INSERT INTO promises (number, id, session, work, subject, title, channel, created_at, is_open) "
            "VALUES (1, 'p', 's', 'task', 'r', 'title', 'chat', 1.0, 0)"
        )
        connection.execute(
            "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, outcome, channel, "
            "attempt, problem, finished_at) VALUES ('dead', 's', 1, 'done', 1, 1.0, 2.0, 'done', 'chat', 3, '410', 2.0)"
        )
    with open_store(address) as store:
        (record,) = store.promises.deliveries_of("p")
        assert (record.attempt, record.problem, record.attempts) == (3, "410", ())


def test_what_is_not_ours_is_not_touched(address):
    """A schema with tables of another program, and one that a newer Troth has written."""
    name = parse(address).schema
    with psycopg.connect(parse(address).conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("CREATE TABLE {} (a int)").format(sql.Identifier(name, "theirs")))
        with pytest.raises(NotAStoreError, match="tables of another program"):
            open_store(address)
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name, "theirs")))
        open_store(address).close()
        connection.execute(sql.SQL("INSERT INTO {} VALUES (99)").format(sql.Identifier(name, "troth_version")))
        with pytest.raises(NewerStoreError, match="version 99"):
            open_store(address)


def test_no_rights_but_those_of_the_schema(postgres_server):
    """A user without any right is told what an administrator has to do; after that, nothing more is needed."""
    address = postgres_server.address()
    name = parse(address).schema
    theirs = address.replace("troth@", f"{name}@")
    with psycopg.connect(parse(address).conninfo, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER").format(sql.Identifier(name)))
        with pytest.raises(MisuseError, match="CREATE SCHEMA .* AUTHORIZATION"):
            open_store(theirs)
        admin.execute(sql.SQL("CREATE SCHEMA {0} AUTHORIZATION {0}").format(sql.Identifier(name)))
        with open_store(theirs) as store:
            assert store.commit(POINT, lambda tx: tx.append_event("s", "said", 1, 1.0)) == 1


def test_read_only(address):
    """What would write is refused, and nothing is made by looking."""
    with pytest.raises(ReadOnlyStoreError, match="has to be created"):
        open_store(address, read_only=True)
    with open_store(address) as store:
        store.commit(POINT, lambda tx: tx.append_event("s", "said", 1, 1.0))
    with open_store(address, read_only=True) as store:
        assert store.last_event("s") == 1
        with pytest.raises(ReadOnlyStoreError, match="opened read-only"):
            store.commit(POINT, lambda tx: tx.append_event("s", "said", 2, 1.0))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"schema": "pg_mine"}, "`schema` is"),
        ({"schema": "Robert'); DROP TABLE runs"}, "`schema` is"),
        ({"heartbeat": "soon"}, "`heartbeat` is 'soon'"),
        ({"heartbeat": 4}, "at least two heartbeats"),
    ],
)
def test_settings_that_make_no_sense(postgres_server, more, says):
    """Said when the store is opened."""
    with pytest.raises(MisuseError, match=says):
        open_store(postgres_server.address(**{"schema": "t_x", **more}))


SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|COPY|LISTEN|SET|BEGIN|WITH|CREATE|ALTER|DROP|LOCK|TRUNCATE)\s", re.ASCII
)
OF_THE_FILE = {  # that is moved
    "SELECT resource FROM leases",
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "SELECT ",  # columns, from a table of the file
}


def test_every_statement_stands_in_one_place():
    """By name, in `statements`; but for what makes the tables, and what reads the file that is moved."""
    folder = Path(schema.__file__).parent
    migrations = [statement for version in schema.MIGRATIONS for statement in version]
    texts = [
        (file.relative_to(folder).as_posix(), node.value)
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert {"statements.py", "schema.py", "move.py"} <= {file for file, _ in texts}
    elsewhere = [
        (file, text)
        for file, text in texts
        if file != "statements.py"
        and not (file == "schema.py" and any(whole in text or text.strip() in whole for whole in migrations))
        and not (file == "move.py" and text in OF_THE_FILE)
        and (file, text) != ("pooler.py", r"CREATE TABLE (\w+)")
    ]
    assert not elsewhere


def test_other_kinds_of_address():
    """There are two kinds of stores."""
    with pytest.raises(MisuseError, match="no kind of store 'mysql'"):
        open_store("mysql://x/y")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://app:p@5ecret@127.0.0.1:1/app",
        "postgresql://app:p@5ecret:w@127.0.0.1:1/app",
        "postgresql://app:p/5ecret@127.0.0.1:1/app",
        "postgresql:app:5ecret@127.0.0.1/app",
        "host=127.0.0.1 password=5ecret dbname=app",
        "password=5ecret host=127.0.0.1",
    ],
)
def test_a_password_that_is_not_written_as_an_address_wants_it(address, tmp_path, monkeypatch):
    """libpq would take a part of it for a host or a database, and name it in its error; a file would be called so."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match="may contain a password") as refused:
        open_store(address)
    assert "5ecret" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_two_servers_in_one_folder_have_two_names():
    """What is shown leads to the server that was meant, and what lies on this machine beside a store is its own."""
    first, second = (parse(f"postgresql://app@%2Frun%2Fpostgresql:{port}/app").shown for port in (5432, 5433))
    assert first != second
    assert parse(second).shown == second


CHARGED = []


def charge(order):
    CHARGED.append(order)
    return f"charged {order}"


def fulfil(order):
    paid = yield Step("charge", charge, order)
    agreed = yield Wait("agreed")
    return [paid, agreed, (yield Step("ship", str, order))]


@pytest.fixture(scope="module")
def begun(postgres_server):
    """A store of today with two runs that wait."""
    address = postgres_server.address()
    with open_store(address) as store, EmbeddedEngine(store, decisions=[fulfil]) as engine:
        for run_id in ("waits", "died"):
            engine.start(fulfil, run_id, run_id=run_id)
        deadline = time.monotonic() + 60
        while {run.state for run in engine.list()} != {RunState.WAITING}:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    return parse(address).schema


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_the_runs_of_an_older_version_go_on(begun, address, version):
    """One that waits, and one whose worker died in a step: only what was in flight is done again."""
    name = parse(address).schema
    with contextlib.closing(connect(parse(address))) as connection:
        schema.migrate(connection, name, schema.MIGRATIONS[:version])
        assert schema.version_of(connection, name) == version
        for table in ("runs", "history"):
            columns = ", ".join(column for of, column, *_ in columns_of(address) if of == table)
            connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {begun}.{table}")
        connection.execute("DELETE FROM history WHERE run_id = 'died' AND what <> 'run begun' AND seq > 2")
        connection.execute("UPDATE runs SET state = 'running', waiting_for = NULL, wake_at = NULL WHERE id = 'died'")
    CHARGED.clear()
    with EmbeddedEngine(address, decisions=[fulfil]) as engine:
        for run_id in ("waits", "died"):
            engine.signal(run_id, "agreed", True)
            assert engine.result(run_id, 60) == [f"charged {run_id}", True, run_id]
            assert [step.name for step in engine.steps(run_id)] == ["charge", "agreed", "ship"]
    assert CHARGED == ["died"]
