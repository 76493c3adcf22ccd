"""What is committed together, by whom, and what happens when it cannot be."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, nullcontext

import pytest

from troth.errors import MisuseError
from troth.runtime.store import SqliteStore, StoreBusyError, StoreError, commit_point
from troth.testing import failpoints

POINT = commit_point("test.commit", "whatever a test writes")
BOTH = pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])


def append(text, stream="s"):
    return lambda tx: tx.append_event(stream, "said", text, 0.0)


def said(store, stream="s"):
    return [event.payload for event in store.events(stream)]


def transactions(store):
    """How many transactions were committed, as SQLite's own header counts them."""
    return store._writer.since_checkpoint


@BOTH
def test_threads_share_transactions(path, synchronous):
    """Those who come while somebody writes are committed by whoever writes next, in one go; each gets its answer."""
    with SqliteStore(path, synchronous=synchronous) as store:
        gate, inside = threading.Event(), threading.Event()

        def slow(tx):
            inside.set()
            gate.wait(10)
            return append("first")(tx)

        answers = {}
        first = threading.Thread(target=lambda: store.commit(POINT, slow))
        first.start()
        inside.wait(10)

        def commit(number):
            answers[number] = store.commit(POINT, append(number, f"s{number}"))

        others = [threading.Thread(target=commit, args=(number,)) for number in range(20)]
        for thread in others:
            thread.start()
        while len(store._writer._queue) < 20:
            threading.Event().wait(0.001)
        before = transactions(store)
        gate.set()
        for thread in [first, *others]:
            thread.join(10)
        assert transactions(store) - before == 2
        assert answers == dict.fromkeys(range(20), 1)
        assert all(said(store, f"s{number}") == [number] for number in range(20))


@BOTH
def test_tasks_share_transactions(path, synchronous):
    """What the tasks of a loop commit in one turn is one transaction, and every one of them gets its answer."""

    async def main():
        before = transactions(store)
        answers = await asyncio.gather(*(store.acommit(POINT, append(number)) for number in range(50)))
        return answers, transactions(store) - before

    with SqliteStore(path, synchronous=synchronous) as store:
        for turn in range(2):  # two successive loops
            answers, count = asyncio.run(main())
            assert answers == [turn * 50 + number + 1 for number in range(50)]
            assert count == 1
        assert said(store) == [*range(50), *range(50)]


@BOTH
def test_where_a_loops_writes_happen(path, synchronous):
    """With FULL there is an fsync in it, so it is the store's thread that writes, never the loop's."""

    async def main():
        return await store.acommit(POINT, lambda tx: threading.current_thread().name)

    with SqliteStore(path, synchronous=synchronous) as store:
        here = threading.current_thread().name
        assert asyncio.run(main()) == (here if synchronous == "NORMAL" else "troth-store")


def test_a_commit_at_once_waits_for_nobody(path):
    """It is made, or nothing is; with FULL, while somebody writes and while a failpoint is armed it is not."""
    with SqliteStore(path, synchronous="FULL") as store:
        assert store.commit_at_once(append("x")) is None
    with SqliteStore(path) as store:
        assert store.commit_at_once(append("x")) == (1,)
        with store.transaction(POINT):
            assert store.commit_at_once(append("y")) is None
        with failpoints.armed("test.commit.after"):
            assert store.commit_at_once(append("y")) is None
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert store.commit_at_once(append("y")) is None
        assert said(store) == ["x"]
    assert store.commit_at_once(append("y")) is None


def test_a_loop_does_not_wait_for_a_thread_that_writes(store):
    """While another thread holds the writer, the loop goes on, and its commit is made elsewhere, later."""
    gate, inside = threading.Event(), threading.Event()

    def slow(tx):
        inside.set()
        gate.wait(10)

    async def main():
        await asyncio.to_thread(inside.wait, 10)
        commit = asyncio.create_task(store.acommit(POINT, append("mine")))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not commit.done()
        gate.set()
        return await commit

    thread = threading.Thread(target=lambda: store.commit(POINT, slow))
    thread.start()
    assert asyncio.run(main()) == 1
    thread.join(10)


def test_a_unit_that_fails_fails_alone(store):
    """Of those who share a transaction, only the one whose work raised is rolled back, and only it is told."""

    def broken(tx):
        tx.append_event("s", "said", "never", 0.0)
        raise ValueError("broken")

    async def main():
        return await asyncio.gather(
            store.acommit(POINT, append("a")),
            store.acommit(POINT, broken),
            store.acommit(POINT, append("b")),
            return_exceptions=True,
        )

    first, failed, last = asyncio.run(main())
    assert (first, last) == (1, 2)
    assert isinstance(failed, ValueError)
    with pytest.raises(ValueError, match="broken"):
        store.commit(POINT, broken)
    assert said(store) == ["a", "b"]


def test_several_writes_in_one_block(store):
    """All of a block or nothing of it."""
    with store.transaction(POINT) as tx:
        tx.append_event("audit", "did", 1, 0.0)
        tx.append_event("outbox", "send", 2, 0.0)

    def half():
        with store.transaction(POINT) as tx:
            tx.append_event("audit", "did", 3, 0.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert (said(store, "audit"), said(store, "outbox")) == ([1], [2])


def test_a_commit_inside_a_block_is_refused(store):
    """It would wait for itself."""
    with store.transaction(POINT), pytest.raises(MisuseError, match="wait for itself"):
        store.commit(POINT, append("x"))
    assert store.commit(POINT, append("y")) == 1


@pytest.mark.parametrize(
    ("failpoint", "kept"),
    [
        pytest.param("test.commit.before", [], id="before"),
        pytest.param("test.commit.written", [], id="written, not committed"),
        pytest.param("test.commit.after", ["x"], id="after"),
    ],
)
@pytest.mark.parametrize("way", ["commit", "acommit", "transaction"])
def test_failpoints_stand_around_every_commit(store, way, failpoint, kept):
    """However a commit is made, it can be stopped at three places, and afterwards the store works."""

    def write():
        if way == "commit":
            store.commit(POINT, append("x"))
        elif way == "acommit":
            asyncio.run(store.acommit(POINT, append("x")))
        else:
            with store.transaction(POINT) as tx:
                append("x")(tx)

    with failpoints.armed(failpoint), pytest.raises(failpoints.InjectedFaultError):
        write()
    assert said(store) == kept
    store.commit(POINT, append("y"))
    assert said(store) == [*kept, "y"]


def test_interrupted_leader_leaves_the_others_work(store):
    """Ctrl-C in the thread that happens to commit for others costs them nothing."""

    def interrupt(tx):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.commit(POINT, interrupt)
    assert store.commit(POINT, append("x")) == 1


def test_another_process_that_locks_the_file(path):
    """The store waits for it, and then says who is to blame and what was not done."""
    with SqliteStore(path, busy_timeout=0.2) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match=r"was locked by another process for 0\.2 s\. Nothing was written"):
            store.commit(POINT, append("x"))
        with pytest.raises(StoreBusyError):
            asyncio.run(store.acommit(POINT, append("x")))
        other.execute("ROLLBACK")
        assert store.commit(POINT, append("y")) == 1


def test_a_disk_that_is_full(store):
    """What was committed before is safe, and the store works again once there is room."""
    store.commit(POINT, append("kept"))
    pages = store._writer._open().execute("PRAGMA page_count").fetchone()[0]
    store._writer._open().execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match=r"disk is full.*This commit was not kept"):
        store.commit(POINT, append("x" * 100_000))
    store._writer._open().execute("PRAGMA max_page_count = 1000000")
    assert store.commit(POINT, append("again")) == 2


def test_a_store_after_fork(store):
    """A child has connections, locks and a thread of its own; the parent's stay the parent's."""
    store.commit(POINT, append("parent"))
    asyncio.run(store.acommit(POINT, append("loop")))
    child = os.fork()
    if child == 0:
        try:
            store.commit(POINT, append("child"))
            asyncio.run(store.acommit(POINT, append("child's loop")))
            os._exit(0 if len(said(store)) == 4 else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.commit(POINT, append("parent again"))
    assert said(store) == ["parent", "loop", "child", "child's loop", "parent again"]


def test_the_log_is_folded_into_the_file(path):
    """The log does not grow forever, although SQLite's own checkpoints are off."""
    with SqliteStore(path) as store:
        for _ in range(3):
            for number in range(1000):
                store.commit(POINT, append("x" * 500, f"s{number % 7}"))
        assert path.with_name("troth.db-wal").stat().st_size < 20_000_000
        assert path.stat().st_size > 1_000_000
    assert not path.with_name("troth.db-wal").exists()


@pytest.mark.parametrize("use", ["commit", "acommit", "read"])
def test_a_closed_store_says_so(path, use):
    """Twice closed is closed; after that nothing is written or read in silence."""
    store = SqliteStore(path)
    store.close()
    store.close()
    uses = {
        "commit": lambda: store.commit(POINT, append("x")),
        "acommit": lambda: asyncio.run(store.acommit(POINT, append("x"))),
        "read": lambda: store.events("s"),
    }
    with pytest.raises(MisuseError, match="is closed"):
        uses[use]()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        pytest.param(":memory:", "outlive the process", id="memory"),
        pytest.param("/nowhere/at/all/troth.db", "does not exist", id="no such directory"),
    ],
)
def test_places_where_no_store_can_live(path, says):
    """Said at once, before anything relies on it."""
    with pytest.raises(MisuseError, match=says):
        SqliteStore(path)


ON_A_FULL_DISK = """
import asyncio, resource, sys, threading
from troth.runtime.store import SqliteStore, StoreError, commit_point

POINT = commit_point("test.full", "whatever fits")
path, synchronous, how = sys.argv[1:]
kept, refused = [], []

def append(text):
    return lambda tx: tx.append_event("s", "said", text, 0.0)

def note(text, outcome):
    (refused if isinstance(outcome, StoreError) else kept).append(text)

def outcome_of(function, *args):
    try:
        return function(*args)
    except StoreError as error:
        return error

def big(number):
    return f"{number}:" + "x" * (number * 37 % 9000)

async def turn(store, texts):
    found = await asyncio.gather(*(store.acommit(POINT, append(text)) for text in texts), return_exceptions=True)
    for text, outcome in zip(texts, found):
        note(text, outcome)

def threads(store, texts):
    def one(text):
        note(text, outcome_of(store.commit, POINT, append(text)))
    working = [threading.Thread(target=one, args=(text,)) for text in texts]
    for thread in working: thread.start()
    for thread in working: thread.join()

with SqliteStore(path, synchronous=synchronous) as store:
    for limit in (200_000, 350_000, 500_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for start in range(0, 120, 6):
            texts = [big(limit // 1000 + number) for number in range(start, start + 6)]
            if how == "loop":
                asyncio.run(turn(store, texts))
            elif how == "threads":
                threads(store, texts)
            else:
                for text in texts:
                    note(text, outcome_of(store.commit, POINT, append(text)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.commit(POINT, append("at last"))
    there = [event.payload for event in store.events("s", limit=10_000)]
assert refused, "the disk was never full"
assert sorted(there) == sorted([*kept, "at last"]), (len(there), len(kept), len(refused))
"""


@BOTH
@pytest.mark.parametrize("how", ["alone", "threads", "loop"])
def test_on_a_full_disk_a_commit_is_kept_or_refused(path, synchronous, how):
    """Never told as kept and rolled back: whatever SQLite takes back by itself is refused to whoever asked for it."""
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(path), synchronous, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("is_armed", [False, True], ids=["alone", "with failpoints"])
def test_half_of_a_letter_is_refused_in_words(path, is_armed):
    """No store keeps it, so nothing is called that; the next commit is made as ever."""
    armed = failpoints.armed("job.start.before") if is_armed else nullcontext()
    with SqliteStore(path) as store, armed:
        for ask in (lambda: store.commit(POINT, append("x", "\ud800")), lambda: list(store.events("\ud800"))):
            with pytest.raises(MisuseError, match="contains half of a character"):
                ask()
        store.commit(POINT, append("whole"))
        assert said(store) == ["whole"]
