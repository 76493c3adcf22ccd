"""One file through its versions: made, opened again, migrated, or refused untouched."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.store import (
    NewerStoreError,
    NotAStoreError,
    RunState,
    SqliteStore,
    StoreError,
    UnsupportedSqliteError,
    commit_point,
)
from troth.runtime.store.sqlite import schema
from troth.runtime.store.sqlite.store import STORE_MIGRATE
from troth.testing import failpoints

POINT = commit_point("test.schema", "whatever a test writes")
V1, V3 = (Path(__file__).with_name(name) for name in ("v1.sql", "v3.sql"))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_v1(path, script=V1):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script.read_text(encoding="utf-8"))


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_first_version_is_frozen(path):
    """A released version is never edited: a new file of version 1 has exactly the tables of the file kept here."""
    write_v1(path)
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(":memory:")) as new:
        schema.migrate(new, schema.MIGRATIONS[:1])
        tables = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name"
        assert old.execute(tables).fetchall() == new.execute(tables).fetchall()


def test_a_file_of_version_1_is_read(path):
    """What version 1 wrote is there in today's words."""
    write_v1(path)
    with SqliteStore(path) as store:
        run = store.run("order-1")
        assert (run.state, run.result) == (RunState.COMPLETED, {"sent": True})
        assert [(step.name, step.result) for step in store.steps("order-1")] == [("charge", 42), ("ship", None)]
        assert [attempt.outcome for attempt in store.steps("order-1")[1].attempts] == ["timeout"]
        assert [event.payload for event in store.events("talk")] == ["hello", "again"]
    with closing(sqlite3.connect(path)) as connection:
        assert schema.version_of(connection) == (schema.VERSION, schema.APPLICATION)


def test_a_file_of_version_3_keeps_its_steps(path):
    """Each step, its answer and its attempts, as version 3 had them; the file that is kept here was written by it."""
    write_v1(path, V3)
    columns = "kind, name, state, key, attempt, args, code, color, started_at, finished_at, wake_at"
    with closing(sqlite3.connect(path)) as connection:
        then = {
            (row[0], row[1], row[2]): row[3:]
            for row in connection.execute(f"SELECT run_id, branch, seq, {columns} FROM steps")
        }
        tries = "SELECT run_id, branch, seq, number, outcome, started_at, finished_at, next_at FROM attempts"
        attempts = sorted(connection.execute(tries).fetchall())
    with SqliteStore(path) as store:
        steps = [step for run in store.runs() for step in store.steps(run.id)]
        assert {tuple(step.place): tuple(getattr(step, name) for name in columns.split(", ")) for step in steps} == then
        assert attempts == sorted(
            (*step.place, one.number, one.outcome, one.started_at, one.finished_at, one.next_at)
            for step in steps
            for one in step.attempts
        )
        for run in store.runs():
            assert [entry.seq for entry in store.history(run.id)] == [*range(1, store.last_entry(run.id) + 1)]
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert "steps" not in tables
        assert "attempts" not in tables


def test_a_migrated_file_has_the_tables_of_a_new_one(path, tmp_path):
    """Whatever version it comes from."""
    write_v1(path, V3)
    SqliteStore(path).close()
    SqliteStore(tmp_path / "new.db").close()
    tables = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(tmp_path / "new.db")) as new:
        assert old.execute(tables).fetchall() == new.execute(tables).fetchall()


def told(runtime, run_id):
    return [(event.what, event.place, str(event.state)) for event in runtime.events(run_id, timeout=0)]


def test_runs_of_version_3_are_told_and_go_on(path):
    """What happened is told as it was told before; what waits goes on with what it has."""
    write_v1(path, V3)
    calls = []

    def flaky():
        raise AssertionError("it was done before")

    def charge():
        calls.append("charge")

    order = Workflow(
        "order",
        step("charge", function=charge, undo=charge),
        step("flaky", function=flaky, retry={"attempts": 3, "delay": "1ms"}),
        step("all", parallel=[step("x", function=charge), step("y", sleep="1ms")]),
        step("ok", approval="Ship it?", timeout="1000000h"),
        step("ship", function=charge),
    )
    with Runtime(path) as runtime:
        begun = [("run begun", "", "running"), ("step begun", "charge", "running"), ("step ended", "charge", "done")]
        asked = [("step begun", "ok", "running"), ("asked", "ok", "waiting")]
        assert told(runtime, "waits")[:3] == told(runtime, "forked")[:3] == begun
        assert told(runtime, "waits")[-2:] == told(runtime, "forked")[-2:] == asked
        assert told(runtime, "denied")[-6:] == [
            *asked,
            ("step ended", "ok", "failed"),
            ("step begun", "undo charge", "running"),
            ("step ended", "undo charge", "done"),
            ("run ended", "", "rolled back"),
        ]
        assert told(runtime, "stopped")[-1] == ("run ended", "", "failed")
        assert [run.id for run in runtime.runs(state="rolled back")] == ["undone", "denied"]
        runtime.approve("waits", by="ann")
        assert runtime.resume("waits", order, accept_changes=True).succeeded
        assert calls == ["charge"], "only what was left to do"
        assert told(runtime, "waits")[-4:] == [
            ("step ended", "ok", "done"),
            ("step begun", "ship", "running"),
            ("step ended", "ship", "done"),
            ("run ended", "", "completed"),
        ]


def test_a_migration_runs_once_and_keeps_what_was_there(path):
    """A later version is reached by its script alone, from any version before it."""
    write_v1(path)
    later = [*schema.MIGRATIONS, ["ALTER TABLE runs ADD COLUMN mood TEXT"], ["CREATE TABLE moods (name TEXT)"]]
    with SqliteStore(path) as store:
        for _ in range(2):
            store.commit(STORE_MIGRATE, lambda tx: tx.migrate(later))
        assert store.run("order-1").result == {"sent": True}
    with closing(sqlite3.connect(path)) as connection:
        assert schema.version_of(connection)[0] == schema.VERSION + 2
        assert connection.execute("SELECT mood FROM runs").fetchall() == [(None,)]


@pytest.mark.parametrize("failpoint", STORE_MIGRATE.failpoints[:2])
def test_a_migration_that_fails_leaves_the_old_version(path, failpoint):
    """All of a migration or nothing of it, also when its own statements are wrong."""
    write_v1(path)
    SqliteStore(path).close()
    before = dump(path)
    later = [*schema.MIGRATIONS, ["CREATE TABLE moods (name TEXT)"], ["CREATE TABLE moods (name TEXT)"]]
    with SqliteStore(path) as store:
        with pytest.raises(Exception, match="moods already exists"):
            store.commit(STORE_MIGRATE, lambda tx: tx.migrate(later))
        with failpoints.armed(failpoint), pytest.raises(failpoints.InjectedFaultError):
            store.commit(STORE_MIGRATE, lambda tx: tx.migrate(later[:-1]))
    assert dump(path) == before


@pytest.mark.parametrize("leave_log", [False, True], ids=["closed cleanly", "its newest version still in the log"])
def test_a_newer_file_is_refused_and_untouched(path, leave_log):
    """An older program would not keep what a newer one relies on."""
    with SqliteStore(path) as store:
        store.commit(STORE_MIGRATE, lambda tx: tx.set_meta("kept", 1))
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    newer.commit()
    if not leave_log:
        newer.close()
    before = {file.name: digest(file) for file in path.parent.iterdir() if not file.name.endswith("-shm")}
    with pytest.raises(NewerStoreError, match=f"version {schema.VERSION + 1}; this Troth knows versions up to"):
        SqliteStore(path)
    after = {file.name: digest(file) for file in path.parent.iterdir() if not file.name.endswith("-shm")}
    assert after == before
    newer.close()


@pytest.mark.parametrize("kind", ["another program's database", "text"])
def test_somebody_elses_file_is_refused_and_untouched(path, kind):
    """A mistyped path must not cost anybody their data."""
    if kind == "text":
        path.write_text("dear diary, " * 100, encoding="utf-8")
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE diary (day TEXT)")
    before = digest(path)
    with pytest.raises(NotAStoreError, match="not changed"):
        SqliteStore(path)
    assert digest(path) == before


def test_an_empty_file_becomes_a_store(path):
    """`mktemp` makes the file first."""
    path.touch()
    with SqliteStore(path) as store:
        assert store.runs() == []


class Lacking(sqlite3.Connection):
    """A SQLite that is older than it says."""

    def executescript(self, script, /):
        if "ON CONFLICT" in script:
            raise sqlite3.OperationalError('near "ON": syntax error')
        return super().executescript(script)


def test_an_old_sqlite_is_named():
    """The error says what is missing, and how to see which SQLite one has."""
    connection = sqlite3.connect(":memory:", factory=Lacking)
    with (
        closing(connection),
        pytest.raises(UnsupportedSqliteError, match=r"3\.20\.1.*does not have INSERT … ON CONFLICT"),
    ):
        schema.probe(connection, "3.20.1")


def test_a_damaged_file_is_told(path):
    """By whoever reads or writes, in the store's own words; closing it is quiet."""
    SqliteStore(path).close()
    tables = path.stat().st_size  # the pages in front hold the tables' own descriptions
    with SqliteStore(path) as store:
        for number in range(900):
            store.commit(POINT, lambda tx, number=number: tx.append_event("s", "said", "x" * 500 + str(number), 0.0))
    whole = bytearray(path.read_bytes())
    assert len(whole) > 2 * tables
    whole[tables:] = b"\xee" * (len(whole) - tables)
    path.write_bytes(whole)
    with SqliteStore(path) as store:
        with pytest.raises(StoreError, match="could not be read"):
            store.events("s", limit=1000)
        with pytest.raises(StoreError, match="could not be"):
            store.commit(POINT, lambda tx: tx.append_event("s", "said", "y", 0.0))
