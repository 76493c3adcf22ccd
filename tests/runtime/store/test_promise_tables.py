"""The tables of promises: what a promise writes, how it is found again, and how an older file becomes one of today."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from troth.errors import InternalError
from troth.runtime.store import RunState, SqliteStore, commit_point
from troth.runtime.store.promise_records import (
    DeliveryAttempt,
    DeliveryState,
    NewPromise,
    OutboxCounts,
    PromiseState,
    Settlement,
)
from troth.runtime.store.sqlite import schema

POINT = commit_point("test.promise_tables", "whatever a test writes")
V5 = Path(__file__).with_name("v5.sql")
THEN = 1_790_000_100.0  # shortly after that file was written
FRAME = 4096 + 24  # bytes of one page in SQLite's log


def new(promise, session="s", work="run", subject=None, channel=None, home=None, retention=None):
    return NewPromise(promise, session, work, subject or promise, "t", channel, home, retention, THEN)


def start(store, run, **kwargs):
    def work(tx):
        tx.add_run(run, "d", "[]", THEN)
        tx.claim(f"run:{run}", "me", "token", THEN)
        if kwargs.get("promised", True):
            assert tx.promises.add(new(run, **{k: v for k, v in kwargs.items() if k != "promised"}))

    store.commit(POINT, work)


def finish(store, run, result="1", state=RunState.COMPLETED):
    def work(tx):
        tx.finish_run(run, state, THEN, result=result)
        tx.release(f"run:{run}", "token")

    store.commit(POINT, work)


def pages(path, work):
    """How many pages `work` writes to the log."""
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size
    work()
    return (log.stat().st_size - before) // FRAME


@pytest.mark.parametrize(
    ("channel", "home"), [(None, None), ("chat", None), ("inbox", "me")], ids=["stored", "pushed", "in process"]
)
def test_a_promise_adds_few_pages_to_its_run(path, channel, home):
    """Two where the run begins, one or two where it ends: nearly all that a promise costs is the pages it touches."""
    with SqliteStore(path) as store:
        for run in ("plain-1", "plain-2"):  # the first write of a table may make a page
            start(store, run, promised=False)
            finish(store, run)
        start(store, "first", channel=channel, home=home)
        finish(store, "first")
        plain = pages(path, lambda: start(store, "plain", promised=False)), pages(path, lambda: finish(store, "plain"))
        promised = (
            pages(path, lambda: start(store, "promised", channel=channel, home=home)),
            pages(path, lambda: finish(store, "promised")),
        )
    assert (promised[0] - plain[0], promised[1] - plain[1]) == (2, 1 if channel is None else 2)


def test_a_file_of_version_5_keeps_its_promises(path):
    """Each promise and delivery as version 5 had them; the file that is kept here was written by it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(V5.read_text(encoding="utf-8"))
        promises = connection.execute(
            "SELECT id, session, work, subject, title, channel, state, created_at, settled_at, expires_at, expired_at "
            "FROM promises ORDER BY created_at DESC, id DESC"
        ).fetchall()
        deliveries = connection.execute(
            "SELECT id, promise, session, kind, seq, text, count, state, channel, attempt, first_attempt_at, due_at, "
            "owner, leased_until, receipt, problem, created_at, updated_at, finished_at FROM deliveries ORDER BY id"
        ).fetchall()
    with SqliteStore(path, clock=lambda: THEN) as store:
        found = store.promises.newest()
        assert [
            (
                *(p.id, p.session, p.work, p.subject, p.title, p.channel, p.state),
                *(p.created_at, p.settled_at, p.expires_at, p.expired_at),
            )
            for p in found
        ] == promises
        every = sorted(store.promises.deliveries(states=DeliveryState), key=lambda record: record.id)
        assert [
            (
                *(d.id, d.promise, d.session, d.kind, d.seq, d.text, d.count, d.state, d.channel, d.attempt),
                *(d.first_attempt_at, d.due_at, d.owner, d.leased_until, d.receipt, d.problem, d.created_at),
                *(d.updated_at, d.finished_at),
            )
            for d in every
        ] == deliveries
        results = {p.id: p.result for p in found}
        assert (results["delivered"], results["leased"], results["expired"]) == ({"n": 1}, 7, None)
        assert results["large"] == "y" * 1500
        assert store.promises.find("failed").error["message"] == "boom"
        assert store.promises.find("job").result["exit_code"] == 3
        assert store.promises.counts() == OutboxCounts(promised=13, delivered=1, stored=10, expired=1, dead=1)
        assert store.promises.counts().is_balanced
        assert store.promises.open_subjects("job") == ["running"]
        assert store.promises.unheld_runs(THEN) == ["waiting"]
        assert store.promises.shortest_retention() == 0.05
        assert {d.id for d in store.promises.deliveries_of("job")} == {"job-watch-1", "job-watch-2", "job-done-1"}
        finish(store, "waiting")
        assert (
            store.commit(POINT, lambda tx: tx.promises.settle("job", "running", PromiseState.DONE, THEN)) == "running"
        )
        assert store.promises.counts() == OutboxCounts(promised=13, delivered=1, stored=10, expired=1, dead=1)


def plans(store, path, ask):
    """How SQLite finds what `ask` asks for, statement by statement."""
    asked = []
    with closing(sqlite3.connect(path)) as connection:

        class Readers:
            def lend(self):
                return self

            def __enter__(self):
                return self

            def __exit__(self, *_):
                return False

            def execute(self, question, values=()):
                asked.append((question, values))
                return connection.execute(question, values)

        reader = type(store.promises)(Readers())
        ask(reader)
        return [
            row[3]
            for question, values in asked
            for row in connection.execute(f"EXPLAIN QUERY PLAN {question}", values).fetchall()
        ]


def test_a_file_of_version_8_keeps_what_a_receiver_said_last(path):
    """What it said before was not kept; from now on each attempt is."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, schema.MIGRATIONS[:8])
        connection.execute(
            "INSERT INTO promises (number, id, session, work, subject, title, channel, created_at, is_open) "
            "VALUES (1, 'p', 's', 'task', 'r', 'title', 'chat', 1.0, 0)"
        )
        connection.execute(
            "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, outcome, channel, "
            "attempt, problem, finished_at) VALUES ('dead', 's', 1, 'done', 1, 1.0, 2.0, 'done', 'chat', 3, '410', 2.0)"
        )
    with SqliteStore(path) as store:
        (record,) = store.promises.deliveries_of("p")
        assert (record.attempt, record.problem, record.attempts) == (3, "410", ())
        store.commit(POINT, lambda tx: tx.promises.replay("p-done-1", None, 3.0))
        store.commit(POINT, lambda tx: tx.promises.lease("chat", "o", "t", 4.0, until=5.0, limit=1, due_before=4.0))
        gone = Settlement(DeliveryState.DEAD, problem="410 Gone")
        store.commit(POINT, lambda tx: tx.promises.settle_attempt("p-done-1", "t", gone, 4.5))
        (record,) = store.promises.deliveries_of("p")
        assert record.attempts == (DeliveryAttempt(1, 4.5, "chat", "failed", "410 Gone"),)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda reader: reader.find("p"), id="find"),
        pytest.param(lambda reader: reader.delivery("p-done-1"), id="delivery"),
        pytest.param(lambda reader: reader.deliveries_of("p"), id="deliveries of a promise"),
        pytest.param(lambda reader: reader.deliveries(), id="what is owed"),
        pytest.param(lambda reader: reader.deliveries(session="s"), id="what is owed to a session"),
        pytest.param(lambda reader: reader.deliveries(states=["delivered"], session="s"), id="delivered to a session"),
        pytest.param(lambda reader: reader.deliveries(states=["delivered"]), id="delivered"),
        pytest.param(lambda reader: reader.newest(session="s"), id="promises of a session"),
        pytest.param(lambda reader: reader.newest(work="job"), id="jobs"),
        pytest.param(lambda reader: reader.unheld_runs(0.0), id="runs of the dead"),
        pytest.param(lambda reader: reader.open_subjects("job"), id="open jobs"),
        pytest.param(lambda reader: reader.expired_subjects("job", since=0.0), id="expired jobs"),
        pytest.param(lambda reader: reader.next_due("chat", "me"), id="next due"),
        pytest.param(lambda reader: reader.has_stored("s"), id="has stored"),
        pytest.param(lambda reader: reader.needs_sweep(0.0), id="needs a sweep"),
        pytest.param(lambda reader: reader.next_expiry(), id="next expiry"),
        pytest.param(lambda reader: reader.counts(), id="counts"),
    ],
)
def test_what_is_over_is_not_read(path, ask):
    """No question walks through all promises or all deliveries; an index of what it asks for is all it reads."""
    with SqliteStore(path) as store:
        for number, state in enumerate((DeliveryState.DUE, DeliveryState.STORED, DeliveryState.DELIVERED)):
            run = f"r{number}"
            start(store, run, channel="chat" if state is DeliveryState.DUE else None)
            finish(store, run)
        plan = plans(store, path, ask)
    scans = [line for line in plan if line.startswith("SCAN") and "USING" not in line and "CONSTANT ROW" not in line]
    tables = {word for line in scans for word in line.split()}
    assert not tables & {"promises", "deliveries", "runs", "p", "d", "r"}, plan


def test_a_large_result_is_written_once(path):
    """An attempt to deliver it does not write it again."""
    with SqliteStore(path) as store:
        start(store, "large", channel="chat")
        finish(store, "large", result=f'"{"x" * 400_000}"')
        leased = []

        def lease(tx):
            leased.extend(tx.promises.lease("chat", "me", "t", THEN, until=THEN + 30, limit=9, due_before=THEN))

        def settle(tx):
            settlement = Settlement(DeliveryState.DELIVERED, receipt="m")
            assert tx.promises.settle_attempt(leased[0].id, "t", settlement, THEN)

        assert pages(path, lambda: store.commit(POINT, lease)) < 10
        assert pages(path, lambda: store.commit(POINT, settle)) < 10
        assert len(store.promises.find("large").result) == 400_000
        store.commit(POINT, lambda tx: tx.promises.expire(THEN + 10 * 86400, 9))
        assert store.promises.find("large").result is not None, "it is kept forever"


def test_promises_are_listed_newest_first_whatever_became_of_them(path):
    """Open, owed and over, of one session or of all, of one kind of work or of all."""
    with SqliteStore(path) as store:
        for number in range(6):
            start(store, f"r{number}", session="ab"[number % 2])
        store.commit(POINT, lambda tx: tx.promises.add(new("j", "a", "job", "j")))
        for number in (0, 1, 2):
            finish(store, f"r{number}")
        store.commit(POINT, lambda tx: tx.promises.acknowledge("r0-done-1", THEN, "me"))
        store.commit(POINT, lambda tx: tx.promises.acknowledge("r1-done-1", THEN, "me"))
        listed = {
            (session, work): [p.id for p in store.promises.newest(session=session, work=work)]
            for session in (None, "a", "b")
            for work in (None, "run", "job")
        }
        assert [p.id for p in store.promises.newest(session="a", limit=2)] == ["j", "r4"]
    assert listed == {
        (None, None): ["j", "r5", "r4", "r3", "r2", "r1", "r0"],
        (None, "run"): ["r5", "r4", "r3", "r2", "r1", "r0"],
        (None, "job"): ["j"],
        ("a", None): ["j", "r4", "r2", "r0"],
        ("a", "run"): ["r4", "r2", "r0"],
        ("a", "job"): ["j"],
        ("b", None): ["r5", "r3", "r1"],
        ("b", "run"): ["r5", "r3", "r1"],
        ("b", "job"): [],
    }


def test_a_lost_promise_shows_in_the_counts(path):
    """A promise whose work is over and of which nothing tells is neither open nor owed: the sum is not right."""
    with SqliteStore(path) as store:
        start(store, "r")
        assert store.promises.counts() == OutboxCounts(1, 0, 1, 0, 0)
        store.commit(POINT, lambda tx: tx.execute("UPDATE runs SET state = 'completed'"))
        assert not store.promises.counts().is_balanced


def test_a_run_that_is_resumed_does_not_open_its_promise_again(path):
    """What was told stays told: the second end of the run is not promised to anybody."""
    with SqliteStore(path) as store:
        start(store, "r")
        finish(store, "r", None, RunState.FAILED)
        ended_at = store.run("r").finished_at
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", THEN, ended_at=ended_at))
        assert store.promises.counts() == OutboxCounts(1, 0, 1, 0, 0)
        assert store.promises.unheld_runs(THEN) == []
        finish(store, "r")
        assert store.promises.counts() == OutboxCounts(1, 0, 1, 0, 0)
        assert store.promises.find("r").state is PromiseState.FAILED


@pytest.mark.parametrize("subject", ["r", "p"], ids=["another id", "not with its run"])
def test_a_run_and_its_promise_are_written_together(path, subject):
    """Under one id. Otherwise the end of the run would settle nothing."""
    with SqliteStore(path) as store:
        start(store, "r", promised=False)
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.COMPLETED, THEN))
        with pytest.raises(InternalError, match="a different id than its run, or was made after it"):
            store.commit(POINT, lambda tx: tx.promises.add(new("p", subject=subject)))


@pytest.mark.parametrize("how", ["another process", "after a rollback", "the same"])
def test_whoever_ends_a_run_settles_its_promise(path, how):
    """Whether or not it remembers the run."""
    with SqliteStore(path) as first, SqliteStore(path) as second:
        start(first, "plain", promised=False)
        start(first, "r")
        if how == "after a rollback":
            with pytest.raises(ZeroDivisionError):
                first.commit(POINT, lambda _: 1 / 0)
        store = second if how == "another process" else first
        finish(store, "plain")
        finish(store, "r")
        assert store.promises.counts() == OutboxCounts(1, 0, 1, 0, 0)
        assert store.promises.find("r").state is PromiseState.DONE


def test_a_rolled_back_promise_is_not_remembered(path):
    """The run is begun again, without one: its end tells nobody."""
    with SqliteStore(path) as store:

        def work(tx):
            tx.add_run("r", "d", "[]", THEN)
            tx.promises.add(new("r"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.commit(POINT, work)
        start(store, "r", promised=False)
        finish(store, "r")
        assert store.promises.counts() == OutboxCounts(0, 0, 0, 0, 0)


@pytest.mark.parametrize("delivery", ["", "p", "p-done", "p-done-01", "p-done-x", "p-done-2", "-", "--1"])
def test_an_id_that_is_none_finds_nothing(path, delivery):
    """And acknowledges nothing."""
    with SqliteStore(path) as store:
        start(store, "p")
        finish(store, "p")
        assert store.promises.delivery(delivery) is None
        assert store.commit(POINT, lambda tx: tx.promises.delivery(delivery)) is None
        assert not store.commit(POINT, lambda tx: tx.promises.acknowledge(delivery, THEN, "me"))
        assert store.promises.delivery("p-done-1").state is DeliveryState.STORED


def test_only_a_shorter_retention_is_noted(path):
    """The shortest of all, whoever asked for it."""
    with SqliteStore(path) as store:
        seen = []
        for number, retention in enumerate((None, 30 * 86400.0, 60.0, 3600.0, 0.5)):
            start(store, f"r{number}", retention=retention)
            seen.append(store.promises.shortest_retention())
    assert seen == [7 * 86400.0, 7 * 86400.0, 60.0, 60.0, 0.5]
