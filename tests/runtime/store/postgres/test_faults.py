"""The connection is lost, the server dies, others are in the way: what was told is true, and it goes on by itself."""

import logging
import os
import threading
import time

import psycopg
import pytest
from tests.runtime.store.postgres.proxy import Proxy

from troth.errors import MisuseError
from troth.runtime.store import StoreError, commit_point, open_store
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.faults import UnknownOutcomeError
from troth.runtime.store.postgres.store import PostgresStore
from troth.testing import failpoints
from troth.testing.postgres_server import PostgresServer

POINT = commit_point("test.commit", "whatever a test writes")


def append(text, stream="s"):
    return lambda tx: tx.append_event(stream, "said", text, 1.0)


def said(store, stream="s"):
    return [event.payload for event in store.events(stream)]


@pytest.fixture
def address(postgres_server):
    return postgres_server.address()


@pytest.fixture
def own_server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server


@pytest.fixture
def proxy(postgres_server):
    proxy = Proxy(postgres_server)
    yield proxy
    proxy.close()


def through(proxy, schema):
    return f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema={schema}"


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("way", ["commit", "transaction"])
def test_the_connection_is_lost_in_commit(proxy, postgres_server, how, way):
    """Whether it was kept is asked before anything is said; what was not kept is done again, once."""
    address = postgres_server.address()
    schema = parse(address).schema
    with open_store(through(proxy, schema)) as store:
        store.commit(POINT, append("before"))
        with failpoints.armed(POINT.written, lambda _: proxy.cut(how)):
            if way == "commit":
                assert store.commit(POINT, append("it")) == 2
            elif how == "after":
                with store.transaction(POINT) as tx:
                    append("it")(tx)
            else:
                with pytest.raises(StoreError, match="Nothing of this commit was kept"), store.transaction(POINT) as tx:
                    append("it")(tx)
                store.commit(POINT, append("it"))
        assert store.commit(POINT, append("after")) == 3
        assert said(store) == ["before", "it", "after"]


def test_an_outcome_that_cannot_be_known_is_told(postgres_server, proxy):
    """The connection is lost in COMMIT and the server cannot be asked: that is what is said, not one or the other."""
    schema = parse(postgres_server.address()).schema
    with PostgresStore(through(proxy, schema), patience=0.5) as store:
        store.commit(POINT, append("before"))

        def cut(_):
            proxy.cut("after")
            proxy.refuse()

        with failpoints.armed(POINT.written, cut), pytest.raises(UnknownOutcomeError, match="cannot be asked"):
            store.commit(POINT, append("it"))
    with open_store(postgres_server.address(schema)) as store:
        assert said(store) == ["before", "it"]


@pytest.mark.parametrize("place", ["before", "written", "after"])
def test_the_server_crashes_in_a_commit(own_server, place):
    """It is started again a moment later: the commit is kept once, and those that follow as well."""
    address = own_server.address()
    with open_store(address) as store:
        store.commit(POINT, append("before"))
        restarting = threading.Thread(target=own_server.start)

        def crash(_):
            own_server.stop("immediate")
            restarting.start()

        with failpoints.armed(f"{POINT.name}.{place}", crash):
            assert store.commit(POINT, append("it")) == 2
        restarting.join(60)
        assert store.commit(POINT, append("after")) == 3
        assert said(store) == ["before", "it", "after"]


def test_a_server_that_stays_away(own_server):
    """After as long as the store waits, the commit says so; when the server is back, the store goes on."""
    with PostgresStore(own_server.address(), patience=0.3) as store:
        store.commit(POINT, append("before"))
        own_server.stop("immediate")
        with pytest.raises(StoreError, match="could not be reached for 0.3 s"):
            store.commit(POINT, append("lost"))
        with pytest.raises(StoreError, match="could not be reached"):
            store.events("s")
        own_server.start()
        deadline = time.monotonic() + 60
        while True:
            try:
                assert store.commit(POINT, append("after")) == 2
                break
            except StoreError:
                assert time.monotonic() < deadline
        assert said(store) == ["before", "after"]


def test_a_store_is_opened_while_sessions_are_ended(address, monkeypatch):
    """Somebody who is let in and then cut off tries again; a wrong address is told at once."""
    times = iter([True, True])
    prepare = PostgresStore._prepare_over

    def cut_off(store, connection):
        if next(times, False):
            with psycopg.connect(parse(address).conninfo, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", (connection.info.backend_pid,))
        prepare(store, connection)

    monkeypatch.setattr(PostgresStore, "_prepare_over", cut_off)
    with open_store(address) as store:
        assert store.commit(POINT, append("a")) == 1
        assert next(times, None) is None
    with pytest.raises(StoreError, match="could not be opened"):
        open_store("postgresql://troth@/postgres?host=/nowhere")


def test_a_store_is_opened_while_the_server_starts(own_server):
    """It goes through what it had not written before it crashed, and lets nobody in: that is waited for."""
    address = own_server.address()
    with open_store(address) as store:
        store.commit(POINT, append("before"))
    own_server.stop("immediate")
    starting = threading.Thread(target=own_server.start)
    starting.start()
    deadline = time.monotonic() + 60
    while True:
        try:
            with open_store(address) as store:
                assert said(store) == ["before"]
            break
        except StoreError as error:
            is_away = any(word in str(error) for word in ("No such file or directory", "Connection refused"))
            if not is_away or time.monotonic() >= deadline:
                raise
    starting.join(60)


def test_a_deadlock_is_nobodys_error(address):
    """Two commits that wait for each other: one is done again."""
    with open_store(address) as one, open_store(address) as two:
        meet = threading.Barrier(2)

        def work(first, second):
            tries = iter([True])

            def write(tx):
                append("a", first)(tx)
                if next(tries, False):
                    meet.wait(30)
                append("b", second)(tx)

            return write

        threads = [
            threading.Thread(target=one.commit, args=(POINT, work("x", "y"))),
            threading.Thread(target=two.commit, args=(POINT, work("y", "x"))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(said(one, "x")) == sorted(said(one, "y")) == ["a", "b"]


def test_a_session_that_was_ended_by_an_administrator(address):
    """The next commit and the next look go on over new connections."""
    with open_store(address) as store:
        store.commit(POINT, append("a"))
        said(store)
        with psycopg.connect(parse(address).conninfo, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'troth' "
                "AND pid <> pg_backend_pid() AND query LIKE '%%'"
            )
        assert store.commit(POINT, append("b")) == 2
        assert said(store) == ["a", "b"]


def test_a_transaction_that_does_not_move_is_ended(postgres_server):
    """A worker that is stopped in the middle of a commit holds nobody up for longer than it lives."""
    address = postgres_server.address(heartbeat=0.2, lifetime=0.5)
    with open_store(address) as stuck, open_store(address) as other:
        stuck.commit(POINT, append("a"))
        inside, go_on = threading.Event(), threading.Event()
        is_first = iter([True])

        def work(tx):
            append("late")(tx)
            if next(is_first, False):
                inside.set()
                assert go_on.wait(60)

        thread = threading.Thread(target=stuck.commit, args=(POINT, work))
        thread.start()
        assert inside.wait(60)
        assert other.commit(POINT, append("meanwhile")) == 2
        go_on.set()
        thread.join(60)
        assert said(other) == ["a", "meanwhile", "late"]


def test_what_cannot_be_kept_is_refused(address):
    """PostgreSQL has no text with a NUL in it; nothing else of the commit is kept either."""
    with open_store(address) as store:
        with pytest.raises(StoreError, match="NUL"):
            store.commit(POINT, lambda tx: (append("a")(tx), tx.add_run("r", "d", "[]", 1.0, label="a\0b")))
        store.commit(POINT, append("nul \0 in JSON"))
        assert said(store) == ["nul \0 in JSON"]


def test_what_a_person_says_may_have_a_nul(address, tmp_path):
    """It is kept as it is; only the title that it gives the conversation in lists has another character there."""
    for place in (address, tmp_path / "talk.db"):
        with open_store(place) as store:
            for kind, payload in (("opened", {"agent": "a"}), ("message", {"role": "user", "text": "a\0b"})):
                store.commit(
                    POINT, lambda tx, kind=kind, said=payload: tx.append_event("conversation/c", kind, said, 1.0)
                )
            assert store.events("conversation/c")[1].payload["text"] == "a\0b"
            assert [talk.title for talk in store.lists.conversations()] == ["a\ufffdb"]


def test_the_clock_is_that_of_the_database(address, monkeypatch):
    """However wrong the clock of this machine is."""
    right = time.time()
    monkeypatch.setattr(time, "time", lambda: right - 3600)
    with open_store(address) as store:
        assert abs(store.clock() - right) < 60


def test_a_password_is_never_shown(postgres_server, caplog):
    """Not in the name, not in errors, not in the log, not in `repr`."""
    secret = "pa55word"
    caplog.set_level(logging.DEBUG)
    parts = f"host={postgres_server.folder}&schema=t_secret"
    good = f"postgresql://troth:{secret}@/postgres?{parts}"
    with open_store(good) as store:
        shown = [store.name, repr(store), repr(store._address)]
        store.commit(POINT, append("x"))
        store.close()
        with pytest.raises(MisuseError) as closed:
            store.commit(POINT, append("x"))
        shown.append(str(closed.value))
    for bad in (
        f"postgresql://troth:{secret}@/nowhere?{parts}",
        f"postgresql://troth:{secret}@127.0.0.1:1/x",
        f"postgresql://troth:{secret}@[host/x",
        f"postgresql://troth@/x?password={secret}&host=/nowhere",
        f"postgresql://troth:{secret}@/x?nonsense=1",
    ):
        with pytest.raises((MisuseError, StoreError)) as problem:
            open_store(bad)
        shown += [str(problem.value), repr(problem.value)]
    assert not [text for text in [*shown, caplog.text] if secret in text]
    assert os.environ.get("PGPASSWORD") is None
