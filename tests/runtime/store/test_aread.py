"""A loop reads a database beside itself, and leaves it alone when nobody waits for the answer any more."""

import asyncio
import contextvars
import threading
import time

import pytest

from troth.runtime.store import SqliteStore
from troth.runtime.store.aread import aread
from troth.runtime.store.postgres.store import PostgresStore

PATIENCE = 30  # seconds after which what should be at once is given up as hanging
AT_ONCE = 8
who = contextvars.ContextVar("who", default="nobody")


@pytest.fixture
def store(postgres_server):
    with PostgresStore(postgres_server.address()) as opened:
        yield opened


class Held:
    """A question that a database leaves without an answer, until it is let go."""

    def __init__(self):
        self.asked = threading.Semaphore(0)
        self.gate = threading.Event()

    def __call__(self):
        self.asked.release()
        assert self.gate.wait(PATIENCE)
        return "late"

    async def are_asked(self, count):
        for _ in range(count):
            assert await asyncio.to_thread(self.asked.acquire, timeout=PATIENCE)


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "troth-read"]


def until(is_so):
    deadline = time.monotonic() + PATIENCE
    while not (answer := is_so()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def test_a_file_is_read_here(tmp_path):
    """A thread costs more than a look at a file."""
    with SqliteStore(tmp_path / "troth.db") as store:
        assert asyncio.run(aread(store, threading.get_ident)) == threading.get_ident()


@pytest.mark.parametrize(
    "error", [ValueError("no"), StopIteration("no"), SystemExit(3)], ids=lambda error: type(error).__name__
)
def test_what_is_raised_arrives(store, error):
    """No error is lost on its way, and none hangs whoever waits; a coroutine may not raise StopIteration itself."""

    def refuses():
        raise error

    async def main():
        with pytest.raises(RuntimeError if isinstance(error, StopIteration) else type(error)) as caught:
            await aread(store, refuses)
        return error in (caught.value, caught.value.__cause__)

    assert asyncio.run(main())


def test_the_question_knows_who_asks(store):
    """It is asked on another thread, in the caller's context."""

    async def main():
        who.set("me")
        return await aread(store, lambda: (who.get(), threading.get_ident()))

    name, thread = asyncio.run(main())
    assert name == "me"
    assert thread != threading.get_ident()


def test_whoever_stops_waiting_is_not_held_up(store):
    """A database that does not answer holds up neither a cancelled task nor the end of its loop."""
    held = Held()

    async def main():
        asking = asyncio.create_task(aread(store, held))
        await held.are_asked(1)
        asking.cancel()
        await asyncio.wait([asking], timeout=PATIENCE)
        return asking.cancelled()

    was_cancelled = asyncio.run(main())
    assert was_cancelled
    assert not held.gate.is_set()
    held.gate.set()


def test_what_nobody_waits_for_is_not_asked(store):
    """Questions stand in line behind those without an answer; one that is cancelled there is never put."""
    held, asked = Held(), []

    async def main():
        stuck = [asyncio.create_task(aread(store, held)) for _ in range(AT_ONCE)]
        await held.are_asked(AT_ONCE)
        dropped = asyncio.create_task(aread(store, lambda: asked.append("dropped")))
        kept = asyncio.create_task(aread(store, lambda: asked.append("kept")))
        await asyncio.sleep(0)
        dropped.cancel()
        await asyncio.wait([dropped], timeout=PATIENCE)
        held.gate.set()
        await asyncio.gather(*stuck, kept)

    asyncio.run(main())
    assert asked == ["kept"]


def test_another_store_is_read_meanwhile(store, postgres_server):
    """A database that hangs takes the threads of its own store, and nobody else's."""
    held = Held()

    async def main():
        stuck = [asyncio.create_task(aread(store, held)) for _ in range(AT_ONCE)]
        await held.are_asked(AT_ONCE)
        with PostgresStore(postgres_server.address()) as other:
            answer = await asyncio.wait_for(aread(other, lambda: other.run("unknown")), PATIENCE)
        held.gate.set()
        await asyncio.gather(*stuck)
        return answer

    assert asyncio.run(main()) is None


def test_no_thread_is_left(store):
    """Threads that are asked nothing end by themselves; the next question begins one anew."""

    async def main():
        return await asyncio.gather(*(aread(store, lambda: store.last_event("none")) for _ in range(100)))

    assert until(lambda: not readers())  # of other tests
    for _ in range(2):
        assert asyncio.run(main()) == [0] * 100
        assert len(readers()) <= AT_ONCE
        assert until(lambda: not readers())
