"""What one reader of a log is told, without a socket between."""

import asyncio
import json
from contextlib import aclosing

import pytest

from troth.runtime import Runtime
from troth.runtime.store import commit_point
from troth.server import Limits, Server
from troth.server.channels import Reader
from troth.server.streams.feeds import EventPage, Item
from troth.server.streams.sources import LogSource
from troth.server.streams.sse import tell

POINT = commit_point("test.streams", "whatever a test writes")
LIMITS = Limits(lag=50, write_time=0.05, keep_alive=0.1)


@pytest.fixture
def context(tmp_path):
    with Runtime(tmp_path / "x.db", in_process=False) as runtime:
        yield Server(runtime, keys=False, limits=LIMITS).context


def write(context, count):
    context.store.commit(POINT, lambda tx: [tx.append_event("log", "k", {"n": n}, 0.0) for n in range(count)])


def reading(context, after=0, **options):
    """What a reader is told, thing by thing."""
    source = LogSource(context.store, "log")

    async def singly():
        async with aclosing(tell(context, lambda: source, source.topic, after, **options)) as batches:
            async for things in batches:
                for thing in things:
                    yield thing

    return aclosing(singly())


async def take(things, count):
    """The next things that are told; those that only say that the connection lives are left out."""
    told = []
    async with asyncio.timeout(60):
        while len(told) < count:
            one = await anext(things)
            if one.kind is not None:
                told.append(one)
    return told


async def quiet(things):
    """Wait until the reader has everything."""
    async with asyncio.timeout(60):
        while (await anext(things)).kind is not None:
            pass


def test_a_late_reader_gets_the_whole(context):
    """However much that is: reading what came before is not being slow."""

    async def main():
        write(context, 2000)
        async with reading(context) as things:
            told = await take(things, 2000)
            await quiet(things)  # then it says only that it lives
            return told

    assert [one.seq for one in asyncio.run(main())] == list(range(1, 2001))


def test_a_burst_is_not_slowness(context):
    """A reader who takes everything as it comes is told all of it."""

    async def main():
        write(context, 1)
        async with reading(context) as things:
            await quiet(things)
            write(context, 500)
            return await take(things, 500)

    assert [one.seq for one in asyncio.run(main())] == list(range(2, 502))


def test_a_slow_reader_is_told_and_goes_on_from_its_cursor(context):
    """It is told how far it is behind, and the stream ends; with its cursor it misses nothing."""

    async def main():
        write(context, 1)
        async with reading(context) as things:
            await quiet(things)
            write(context, 10)
            first = await take(things, 1)
            write(context, 500)
            await asyncio.sleep(LIMITS.write_time * 4)  # it does something else for longer than it may
            rest = [one async for one in things if one.kind is not None]
        async with reading(context, rest[-1].seq, follow=False) as things:
            return first + rest, [one async for one in things]

    told, later = asyncio.run(main())
    assert told[-1].kind == "slow"
    assert json.loads(told[-1].data)["behind"] > LIMITS.lag
    assert [one.seq for one in told[:-1] + later] == list(range(2, 512))


def test_an_event_between_two_looks_is_told(tmp_path):
    """It comes after a reader has looked and before it sleeps. Without it, that would be until the next keep-alive."""

    async def main(context):
        write(context, 1)
        async with reading(context, reader=Reader()) as things:
            await take(things, 1)
            feed, _ = context.feeds._feeds[LogSource(context.store, "log").topic]
            while feed.last < 1:
                await asyncio.sleep(0.01)
            waiting = asyncio.ensure_future(take(things, 1))
            page = EventPage([Item(2, "k", "{}")], 1, 2, is_over=False)
            asyncio.get_running_loop().call_soon(feed._take, page)  # behind the reader's look, before anything else
            return [one.seq for one in await waiting]

    with Runtime(tmp_path / "y.db", in_process=False) as runtime:
        patient = Server(runtime, keys=False, limits=Limits(keep_alive=3600)).context
        assert asyncio.run(main(patient)) == [2]


def test_two_readers_and_one_leaves(context):
    """Each sees all, and the one who stays is not touched by the other's leaving."""

    async def main():
        write(context, 1)
        async with reading(context) as stays:
            async with reading(context) as leaves:
                assert [one.seq for one in await take(leaves, 1)] == [1]
                assert [one.seq for one in await take(stays, 1)] == [1]
                assert context.feeds.readers == 2
            write(context, 3)
            return [one.seq for one in await take(stays, 3)]

    assert asyncio.run(main()) == [2, 3, 4]
    assert context.feeds.readers == 0


def test_a_log_that_was_trimmed_while_it_was_read(context):
    """A `gap` in the middle, and then what is left."""

    async def main():
        write(context, 1)
        async with reading(context) as things:
            await quiet(things)
            write(context, 1000)
            context.store.trim("log", 5)
            return await take(things, 6)

    told = asyncio.run(main())
    assert told[0].kind == "gap"
    assert [one.seq for one in told[1:]] == list(range(997, 1002))


def test_the_end_of_the_server_is_told(context):
    """`closing`, with the cursor."""

    async def main():
        write(context, 2)
        async with reading(context) as things:
            await quiet(things)
            await context.drain()
            async with asyncio.timeout(60):
                return [one async for one in things]

    told = asyncio.run(main())
    assert [(one.kind, one.seq) for one in told if one.kind] == [("closing", 2)]
