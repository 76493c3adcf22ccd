"""Streams: entries in order, numbered without a gap."""

import threading
import time
from contextlib import ExitStack
from functools import partial

from troth.runtime.store import (
    Store,
    Transaction,
)
from troth.testing.store_conformance.check import PATIENCE, POINT, StoreGround, append, check, in_threads, started

__all__: list[str] = []


@check("streams")
def numbers_have_no_gaps(ground: StoreGround) -> None:
    """Threads of two stores append to one stream, and some of their commits fail."""

    def append(store: Store, number: int) -> None:
        def work(tx: Transaction) -> int:
            seq = tx.append_event("s", "said", number, 1.0)
            if number % 4 == 0:
                raise KeyError(number)
            return seq

        try:
            store.commit(POINT, work)
        except KeyError:
            assert number % 4 == 0

    with ground.open() as first, ground.open() as second:
        in_threads([partial(append, store, number) for number in range(40) for store in (first, second)])
        events = first.events("s")
        assert [event.seq for event in events] == list(range(1, 61))
        assert sorted(event.payload for event in events) == sorted([n for n in range(40) if n % 4] * 2)
        assert first.last_event("s") == second.last_event("s") == 60
        assert second.events("s", after=57) == events[57:]
        assert [event.seq for event in second.events("s", after=10, limit=3)] == [11, 12, 13]
        assert (first.events("none"), first.last_event("none")) == ([], 0)


@check("streams")
def processes_append_to_one_stream(ground: StoreGround) -> None:
    """Each entry once, without a gap, with those of one process in their order."""
    body = """
        from troth.runtime.store import commit_point
        POINT = commit_point("test.conformance", "whatever a check of a store writes")
        with open_store() as store:
            print("ready", flush=True)
            sys.stdin.readline()
            for number in range(25):
                store.commit(POINT, lambda tx: tx.append_event("s", "said", [sys.argv[1], number], 1.0))
    """
    with ground.open() as store, ExitStack() as stack:
        processes = [stack.enter_context(started(ground, body, word)) for word in ("a", "b", "c")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.communicate("\n", timeout=PATIENCE)
            assert process.returncode == 0
        events = store.events("s")
        assert [event.seq for event in events] == list(range(1, 76))
        for word in ("a", "b", "c"):
            assert [event.payload[1] for event in events if event.payload[0] == word] == list(range(25))


@check("streams")
def the_streams_written_to_last_come_first(ground: StoreGround) -> None:
    """Of those whose names begin alike."""
    with ground.open() as store:
        for name in ("talk/a", "talk/b", "other", "talk/c", "talk/a", "talkative"):
            store.commit(POINT, append("x", name))
        assert store.recent_streams("talk/", 2) == ["talk/a", "talk/c"]
        assert store.recent_streams("talk/", 9) == ["talk/a", "talk/c", "talk/b"]


@check("streams")
def a_stream_that_is_cut_off_keeps_its_numbers(ground: StoreGround) -> None:
    """What is left follows what is gone, also for whoever reads from the beginning."""
    with ground.open() as store, ground.open() as other:
        for number in range(6):
            store.commit(POINT, append(number, "s"))
        assert (other.trim("s", 2), other.trim("s", 2), other.trim("none", 2)) == (4, 0, 0)
        assert (store.trimmed("s"), store.last_event("s")) == (4, 6)
        assert [event.seq for event in store.events("s")] == [5, 6]
        assert [event.seq for event in store.events("s", after=5)] == [6]
        assert [event.seq for event in store.commit(POINT, lambda tx: tx.events("s", after=1))] == [5, 6]
        assert store.commit(POINT, append(6, "s")) == 7


@check("streams")
def entries_of_all_streams_are_told_in_order(ground: StoreGround) -> None:
    """Whoever goes on behind the last entry that was told misses none, whoever writes at the same time."""
    entries: list[tuple[str, int]] = []

    def write(store: Store, name: str) -> None:
        for number in range(15):
            store.commit(POINT, append(number, name))

    def read(store: Store, written: threading.Event) -> None:
        after, is_last = 0, False
        while not is_last:
            is_last = written.is_set()  # looked at before the last page
            while page := store.events_of_all("all/", after=after, limit=7):
                assert [event.id for event in page] == sorted(event.id for event in page)
                after = page[-1].id
                entries.extend((event.stream, event.seq) for event in page)
            if is_last and len(entries) < 60:
                is_last = False  # held back by what others commit meanwhile
                time.sleep(0.01)

    with ground.open() as first, ground.open() as second, ground.open() as reader:
        first.commit(POINT, append(0, "another"))
        written = threading.Event()
        thread = threading.Thread(target=read, args=(reader, written), daemon=True)
        thread.start()
        in_threads([partial(write, store, f"all/{n}") for n, store in enumerate((first, second, first, second))])
        written.set()
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"{len(entries)} of 60 entries were told"
        assert sorted(entries) == [(f"all/{n}", seq) for n in range(4) for seq in range(1, 16)]
