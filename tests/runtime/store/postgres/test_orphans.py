"""Runs that nobody holds are found at once, although an engine that idles does not read all runs again and again."""

import time

import pytest

from troth.runtime.store import RunState
from troth.runtime.store.failpoints import commit_point
from troth.runtime.store.identity import new_owner, retire
from troth.runtime.store.postgres import queries
from troth.runtime.store.postgres.store import PostgresStore

TEST = commit_point("test.orphans", "a run for the tests of orphans")
LONG = 3600.0


@pytest.fixture
def stores(postgres_server):
    address = postgres_server.address()
    with PostgresStore(address) as first, PostgresStore(address) as second:
        yield first, second


def until(condition, seconds=60.0):
    """Wait for a fact, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.005)
    return answer


def enrolled(store):
    owner = new_owner(store.clock())
    store.commit(TEST, lambda tx: tx.enroll(owner))
    return owner


def begun(store, run_id, owner):
    def work(tx):
        tx.add_run(run_id, "d", "[]", store.clock())
        if owner is not None:
            tx.claim(f"run:{run_id}", owner.id, "token", store.clock())

    store.commit(TEST, work)


def counted(monkeypatch):
    asked = []
    ask = queries.orphans

    def orphans(*arguments):
        asked.append(arguments)
        return ask(*arguments)

    monkeypatch.setattr(queries, "orphans", orphans)
    return asked


def test_nothing_is_read_again_while_nothing_happens(stores, monkeypatch):
    """The answer of nothing is repeated as long as the same owners live; without patience it never is."""
    asked = counted(monkeypatch)
    store, _ = stores
    begun(store, "r", enrolled(store))
    assert store.orphans(["d"], patience=LONG) == []
    assert store.wait_until_listening()  # what was told before that may have been missed: one more look
    assert store.orphans(["d"], patience=LONG) == []
    before = len(asked)
    for _ in range(5):
        assert store.orphans(["d"], patience=LONG) == []
    assert len(asked) == before
    assert store.orphans(["d"]) == []
    assert len(asked) == before + 1


def let_go(store, owner):
    store.commit(TEST, lambda tx: tx.release("run:r", "token"))


def died(store, owner):
    retire(owner)


def retired(store, owner):
    store.commit(TEST, lambda tx: tx.retire(owner.id))


@pytest.mark.parametrize("lose", [let_go, died, retired])
@pytest.mark.parametrize("where", ["here", "on another machine"])
def test_a_run_that_loses_its_owner_is_found_at_once(stores, lose, where):
    """Let go of, or left by an owner that is dead: seen in this process at once, elsewhere when the news arrive."""
    looks, acts = stores if where == "on another machine" else (stores[0], stores[0])
    owner = enrolled(acts)
    begun(acts, "r", owner)
    assert looks.orphans(["d"], patience=LONG) == []
    assert looks.wait_until_listening()
    assert looks.orphans(["d"], patience=LONG) == []
    lose(acts, owner)
    assert until(lambda: looks.orphans(["d"], patience=LONG)) == [("r", "d")]


def test_a_run_that_is_written_down_and_held_by_nobody_is_found_at_once(stores):
    """So is one that has ended and is to go on."""
    looks, acts = stores
    assert looks.orphans(["d"], patience=LONG) == []
    assert looks.wait_until_listening()
    assert looks.orphans(["d"], patience=LONG) == []
    begun(acts, "r", None)
    assert until(lambda: looks.orphans(["d"], patience=LONG)) == [("r", "d")]
    acts.commit(TEST, lambda tx: tx.finish_run("r", RunState.FAILED, 5.0, error="{}"))
    assert looks.orphans(["d"], patience=LONG) == []
    assert acts.commit(TEST, lambda tx: tx.reopen_run("r", 6.0, ended_at=5.0))
    assert until(lambda: looks.orphans(["d"], patience=LONG)) == [("r", "d")]


def test_the_end_of_a_run_is_no_news_of_this_kind(stores):
    """A commit that ends a run lets go of its lease, too, and makes nobody read all runs."""
    store, _ = stores
    owner = enrolled(store)
    begun(store, "r", owner)
    store.orphans(["d"], patience=LONG)
    assert store.wait_until_listening()
    until(lambda: store._unheld.count)  # once when it begins to listen
    before = store._unheld.count

    def work(tx):
        tx.finish_run("r", RunState.COMPLETED, 5.0, result="1")
        tx.release("run:r", "token")

    store.commit(TEST, work)
    assert store._unheld.count == before
    let_go(store, owner)
    assert store._unheld.count == before + 1
