"""A pooler stands between, and lends each transaction another session: all holds but news, for which one looks."""

import contextlib
import threading

import psycopg
import pytest
from tests.runtime.store.postgres.pooler import Pooler

from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.store import commit_point, open_store
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.pooler import is_between, qualified
from troth.testing import failpoints
from troth.testing.store_conformance import checks

POINT = commit_point("test.pooled", "whatever a test writes")


@pytest.fixture(scope="module")
def pooler(postgres_server):
    missing = Pooler.missing()
    if missing is not None:
        pytest.skip(missing)
    with contextlib.closing(Pooler(postgres_server)) as pooler:
        yield pooler


@pytest.fixture
def schema(postgres_server):
    return parse(postgres_server.address()).schema


class Ground:
    def __init__(self, address):
        self.address = address

    @contextlib.contextmanager
    def open(self):
        with open_store(self.address) as store:
            yield store

    def program(self):
        return (
            f"from troth.runtime import store as stores\ndef open_store(): return stores.open_store({self.address!r})\n"
        )


@pytest.mark.parametrize("check", [pytest.param(check, id=f"{check.part}: {check.name}") for check in checks()])
def test_what_every_store_has_to_do(check, pooler, schema):
    """Each check of the suite, through the pooler."""
    check.run(Ground(pooler.address(schema)))


def test_it_is_noticed(pooler, postgres_server, schema):
    """By the number of the server's process; no setting says so."""
    with psycopg.connect(parse(pooler.address(schema)).conninfo) as through:
        assert is_between(through)
    with psycopg.connect(parse(postgres_server.address()).conninfo) as directly:
        assert not is_between(directly)


def double(number):
    return number * 2


def waits(number):
    first = yield Step("double", double, number)
    return first + (yield Wait("more"))


def test_workers_before_and_behind_it(pooler, postgres_server, schema):
    """One works through the pooler, one without it: each goes on with what the other has begun and sent."""
    with (
        EmbeddedEngine(pooler.address(schema), decisions=[waits]) as pooled,
        EmbeddedEngine(postgres_server.address(schema), decisions=[waits]) as direct,
    ):
        handles = [engine.start(waits, 3, run_id=name) for engine, name in ((pooled, "p"), (direct, "d"))]
        direct.signal("p", "more", 1)
        pooled.signal("d", "more", 2)
        assert [handle.result(60) for handle in handles] == [7, 8]
        assert pooled.result("d", 60) == direct.result("d", 60) == 8


def test_it_is_killed_in_a_commit(postgres_server, schema):
    """Whether the commit was kept is asked through a new one: it is there once."""
    if Pooler.missing():
        pytest.skip(Pooler.missing())

    def write(text):
        return lambda tx: tx.append_event("s", "said", text, 1.0)

    with contextlib.closing(Pooler(postgres_server)) as pooler, open_store(pooler.address(schema)) as store:
        store.commit(POINT, write("before"))
        is_first = iter([True])

        def restart(_):
            if next(is_first, False):
                pooler.restart()

        with failpoints.armed(POINT.written, restart):
            assert store.commit(POINT, write("it")) == 2
        assert store.commit(POINT, write("after")) == 3
        assert [event.payload for event in store.events("s")] == ["before", "it", "after"]


def test_a_commit_that_does_not_move_is_ended(pooler, schema):
    """The limits of a commit hold, too, though nothing can be set for a session."""
    address = pooler.address(schema, heartbeat=0.2, lifetime=0.5)
    with open_store(address) as stuck, open_store(address) as other:
        inside, go_on = threading.Event(), threading.Event()
        is_first = iter([True])

        def work(tx):
            tx.append_event("s", "said", "late", 1.0)
            if next(is_first, False):
                inside.set()
                assert go_on.wait(60)

        thread = threading.Thread(target=stuck.commit, args=(POINT, work))
        thread.start()
        assert inside.wait(60)
        assert other.commit(POINT, lambda tx: tx.append_event("s", "said", "meanwhile", 1.0)) == 1
        go_on.set()
        thread.join(60)
        assert [event.payload for event in other.events("s")] == ["meanwhile", "late"]


def test_nothing_is_left_in_a_session(pooler, postgres_server, schema):
    """What others get lent after us is as the server made it."""
    with open_store(pooler.address(schema)) as store:
        store.commit(POINT, lambda tx: tx.append_event("s", "said", "x", 1.0))
        assert store.lists.counts().runs == {}
    with psycopg.connect(parse(pooler.address(schema)).conninfo, autocommit=True, prepare_threshold=None) as through:
        for _ in range(8):  # each session twice
            shown = [through.execute(f"SHOW {name}".encode()).fetchone()[0] for name in ("search_path", "lock_timeout")]
            assert shown == ['"$user", public', "0"]
            assert through.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


@pytest.mark.parametrize(
    ("statement", "becomes"),
    [
        ("SELECT runs.id FROM runs JOIN leases l ON true", 'SELECT runs.id FROM "t".runs JOIN "t".leases l ON true'),
        ("INSERT INTO events (id) VALUES (1)", 'INSERT INTO "t".events (id) VALUES (1)'),
        ("DO UPDATE SET last = streams.last", "DO UPDATE SET last = streams.last"),
        ("SELECT 1 FROM steps", "SELECT 1 FROM steps"),
        ("SELECT extract(epoch FROM clock_timestamp())", "SELECT extract(epoch FROM clock_timestamp())"),
    ],
)
def test_tables_are_named_with_their_schema(statement, becomes):
    """Where a statement names one of ours, and nowhere else."""
    assert qualified(statement, "t") == becomes
