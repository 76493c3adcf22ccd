"""Streams: entries in order, numbered without a gap."""

from contextlib import ExitStack
from functools import partial

from troth.runtime.store import (
    Store,
    Transaction,
)
from troth.testing.store_conformance.check import PATIENCE, POINT, Ground, append, check, in_threads, started

__all__: list[str] = []


@check("streams")
def numbers_have_no_gaps(ground: Ground) -> None:
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

    with ground.open() as one, ground.open() as two:
        in_threads([partial(append, store, number) for number in range(40) for store in (one, two)])
        events = one.events("s")
        assert [event.seq for event in events] == list(range(1, 61))
        assert sorted(event.payload for event in events) == sorted([n for n in range(40) if n % 4] * 2)
        assert one.last_event("s") == two.last_event("s") == 60
        assert two.events("s", after=57) == events[57:]
        assert [event.seq for event in two.events("s", after=10, limit=3)] == [11, 12, 13]
        assert (one.events("none"), one.last_event("none")) == ([], 0)


@check("streams")
def processes_append_to_one_stream(ground: Ground) -> None:
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
def the_streams_written_to_last_come_first(ground: Ground) -> None:
    """Of those whose names begin alike."""
    with ground.open() as store:
        for name in ("talk/a", "talk/b", "other", "talk/c", "talk/a", "talkative"):
            store.commit(POINT, append("x", name))
        assert store.recent_streams("talk/", 2) == ["talk/a", "talk/c"]
        assert store.recent_streams("talk/", 9) == ["talk/a", "talk/c", "talk/b"]
