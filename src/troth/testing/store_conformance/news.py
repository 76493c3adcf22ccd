"""Being told of what others have committed."""

import asyncio
import time
from typing import Any

from troth.runtime.store import (
    Follower,
    HistoryFollower,
    Notifier,
    RunState,
    Store,
)
from troth.runtime.store.records import Place
from troth.runtime.store.sqlite.transaction import run_topic
from troth.testing.store_conformance.check import (
    PATIENCE,
    POINT,
    StoreGround,
    append,
    begin,
    check,
    in_threads,
    started,
    until,
)

__all__: list[str] = []


@check("news")
def a_follower_sees_every_entry_once(ground: StoreGround) -> None:
    """In order, also what another store writes, on a thread and on a loop."""

    async def follow(store: Store) -> list[Any]:
        collected: list[Any] = []
        with Follower(store, "s") as follower:
            while len(collected) < 30:
                events = await follower.atake(PATIENCE)
                assert events, "nothing came"
                collected += [event.payload for event in events]
        return collected

    def take(store: Store) -> list[Any]:
        collected: list[Any] = []
        with Follower(store, "s", page=7) as follower:
            while len(collected) < 30:
                events = follower.take(PATIENCE)
                assert events, "nothing came"
                collected += [event.payload for event in events]
        return collected

    def write(store: Store) -> None:
        for number in range(30):
            store.commit(POINT, append(number))

    with ground.open() as store, ground.open() as second:
        answers = in_threads(
            [lambda: asyncio.run(follow(store)), lambda: take(store), lambda: take(second), lambda: write(second)]
        )
        assert answers[:3] == [list(range(30))] * 3


@check("news")
def a_waiter_for_a_run_is_notified(ground: StoreGround) -> None:
    """Of a signal, of an end, of a lease given back; by a commit here and by one in another process."""
    body = """
        from troth.runtime.store import commit_point
        POINT = commit_point("test.conformance", "whatever a check of a store writes")
        store = open_store()
        print("ready", flush=True)
        sys.stdin.readline()
        store.commit(POINT, lambda tx: tx.send_signal("r", "s", "1", 1.0))
        sys.stdin.readline()
    """
    with ground.open() as store, started(ground, body) as process:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        bell = Notifier()
        with store.listening(bell, run_topic("r")):
            store.commit(POINT, lambda tx: tx.request_cancel("r", 2.0))
            until(lambda: bell.count, "the ring of a commit here")
            process.stdin.write("\n")
            process.stdin.flush()
            deadline = time.monotonic() + PATIENCE
            while not store.signals("r"):
                count = bell.count
                if not store.signals("r"):
                    assert bell.wait(count, deadline - time.monotonic()), "nobody was told of the signal"


@check("news")
def the_history_of_a_run_is_followed(ground: StoreGround) -> None:
    """From a cursor on, to its end."""

    def work(store: Store) -> None:
        for number in range(1, 6):
            store.commit(POINT, lambda tx, number=number: begin(tx, Place("r", "", number), "one", 2.0))  # type: ignore[misc]
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.COMPLETED, 3.0, result="1"))

    def follow(store: Store) -> list[int]:
        collected: list[int] = []
        deadline = time.monotonic() + PATIENCE
        with HistoryFollower(store, "r", page=2) as follower:
            while True:
                is_over, entries = follower.look()
                collected += [entry.seq for entry in entries]
                if is_over and not entries:
                    return collected
                assert time.monotonic() < deadline, "the end of the run was not told"
                if not entries:
                    follower.wait(deadline - time.monotonic())

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        answers = in_threads([lambda: follow(store), lambda: follow(second), lambda: work(second)])
        assert answers[:2] == [list(range(1, 8))] * 2
