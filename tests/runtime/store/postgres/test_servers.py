"""The server fails over, is full, or lets nobody in: clear words, no loss, and it goes on by itself."""

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import StoreError, commit_point, open_store
from troth.runtime.store.postgres.store import PostgresStore
from troth.testing.postgres_server import PostgresServer

POINT = commit_point("test.servers", "whatever a test writes")


@pytest.fixture(autouse=True)
def _needs_a_server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)


REPLAYED = "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"


def append(text, stream="s"):
    return lambda tx: tx.append_event(stream, "said", text, 1.0)


def said(store, stream="s"):
    return [event.payload for event in store.events(stream)]


def count(steps):
    total = 0
    for number in range(steps):
        total += yield Step(f"s{number}", int, 1)
    return total


def test_another_server_takes_over(tmp_path):
    """The address names both: runs go on with the one that is written to, and nothing that was told is lost."""
    settings = {"max_wal_senders": "4", "synchronous_commit": "on"}
    with PostgresServer(**settings) as first, PostgresServer(standby_of=first, hot_standby="on") as second:
        with psycopg.connect(f"postgresql://troth@/postgres?host={first.folder}", autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        both = f"postgresql://troth@/postgres?host={first.folder},{second.folder}&target_session_attrs=read-write"
        with EmbeddedEngine(both, decisions=[count]) as engine:
            assert engine.run(count, 5, run_id="before") == 5
            handle = engine.start(count, 200, run_id="amid")
            while len(engine.steps("amid")) < 20:
                time.sleep(0.01)
            first.stop("immediate")
            second.promote()
            assert handle.result(90) == 200
            assert [step.name for step in engine.steps("amid")] == [f"s{number}" for number in range(200)]
            assert engine.result("before") == 5
            assert engine.run(count, 3) == 3


def test_a_standby_can_be_looked_at():
    """What is written is refused there by name; what was written is read."""
    with PostgresServer(max_wal_senders="4") as first, PostgresServer(standby_of=first, hot_standby="on") as second:
        address = first.address()
        schema = address.partition("schema=")[2]
        with open_store(address) as store:
            store.commit(POINT, append("it"))
        with psycopg.connect(f"postgresql://troth@/postgres?host={first.folder}", autocommit=True) as connection:
            deadline = time.monotonic() + 60
            while connection.execute(REPLAYED).fetchone() != (True,):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        with open_store(second.address(schema), read_only=True) as store:
            assert said(store) == ["it"]
            with pytest.raises(StoreError, match="was opened read-only"):
                store.commit(POINT, append("no"))
            with pytest.raises(StoreError, match="This server is a standby"):
                store.lists.changes()
            with pytest.raises(StoreError, match="This server is a standby"):
                store.events_of_all("")
        with pytest.raises(StoreError, match="read-write"):
            open_store(second.address(schema)).commit(POINT, append("no"))


def test_no_connection_is_left():
    """Whoever opens is told so; whoever has the store open waits until there is one, and goes on."""
    with PostgresServer(max_connections="12", superuser_reserved_connections="0") as server:
        address = server.address()
        with PostgresStore(address) as store, contextlib.ExitStack() as crowd:
            plain = f"postgresql://troth@/postgres?host={server.folder}"
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    crowd.enter_context(contextlib.closing(psycopg.connect(plain)))
            with pytest.raises(StoreError, match="too many clients"):
                open_store(address)
            waiting = threading.Thread(target=store.commit, args=(POINT, append("it")))
            waiting.start()
            time.sleep(0.5)  # it is refused a few times meanwhile
            assert waiting.is_alive()
            crowd.close()
            waiting.join(60)
            assert said(store) == ["it"]


@pytest.fixture
def small_disk():
    """A disk of a few megabytes, in memory. Directly in /tmp: the user that the server runs as has to be let through."""
    folder = Path(tempfile.mkdtemp(prefix="troth-disk-", dir="/tmp"))
    folder.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m,mode=0777", "none", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("a disk that can be filled needs the right to mount one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def test_a_disk_that_is_full(small_disk):
    """What does not fit is refused, and says what to do; when there is room, the same store goes on."""
    settings = {"max_wal_size": "32MB", "min_wal_size": "32MB"}
    with PostgresServer(data=small_disk / "data", **settings) as server, open_store(server.address()) as store:
        store.commit(POINT, append("before"))
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 65536)
        with pytest.raises(StoreError, match="Free disk space on the database server"):
            for _ in range(200):
                store.commit(POINT, append(os.urandom(50_000).hex(), "large"))
        kept = store.last_event("large")
        ballast.unlink()
        deadline = time.monotonic() + 60
        while True:
            try:
                store.commit(POINT, append("after"))
                break
            except StoreError:
                assert time.monotonic() < deadline
        assert said(store) == ["before", "after"]
        assert len(store.events("large")) == kept
