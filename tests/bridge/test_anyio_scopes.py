"""The cancellation of an anyio scope ends in that scope, whatever way `bridge.run` inside of it has taken."""

import asyncio
import contextlib
import threading

import anyio
import anyio.to_thread
import pytest

from troth import bridge


class Inner:
    """A coroutine that says when it began, waits forever, and says when it ended."""

    def __init__(self):
        self.began = asyncio.Event()
        self.ended = False

    async def wait(self):
        self.began.set()
        await self.sleep()

    async def sleep(self):
        try:
            await anyio.sleep_forever()
        finally:
            self.ended = True


async def by_call(inner):
    await bridge.call(lambda: bridge.run(inner.wait()))


async def by_worker(inner):
    await anyio.to_thread.run_sync(lambda: bridge.run(inner.wait()))


async def by_worker_through_a_portal(inner):
    with bridge.Portal() as portal:
        await anyio.to_thread.run_sync(lambda: portal.run(inner.wait()))


async def by_worker_that_iterates(inner):
    async def source():
        await inner.wait()
        yield 1

    await anyio.to_thread.run_sync(lambda: list(bridge.iterate(source())))


async def by_worker_that_enters(inner):
    @contextlib.asynccontextmanager
    async def manager():
        await inner.wait()
        yield

    def enter():
        with bridge.enter(manager()):
            raise AssertionError

    await anyio.to_thread.run_sync(enter)


async def by_worker_late(inner):
    """The scope is cancelled while the thread is at work, and the coroutine begins afterwards."""
    is_cancelled = threading.Event()

    def work():
        bridge.run(_begin(inner))
        assert is_cancelled.wait(60)
        bridge.run(inner.sleep())

    async with anyio.create_task_group() as group:

        async def tell():
            try:
                await anyio.sleep_forever()
            finally:
                is_cancelled.set()

        group.start_soon(tell)
        await anyio.to_thread.run_sync(work)


async def _begin(inner):
    inner.began.set()


async def by_greenback(inner):
    greenback = pytest.importorskip("greenback")
    await greenback.ensure_portal()
    bridge.run(inner.wait())


async def by_greenback_with_a_limit(inner):
    greenback = pytest.importorskip("greenback")
    await greenback.ensure_portal()
    bridge.run(inner.wait(), timeout=60)


async def by_call_with_a_limit(inner):
    await bridge.call(lambda: bridge.run(inner.wait(), timeout=60))


async def by_call_in_a_group(inner):
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        await by_call(inner)


WAYS = [
    by_call,
    by_worker,
    by_worker_through_a_portal,
    by_worker_that_iterates,
    by_worker_that_enters,
    by_worker_late,
    by_greenback,
    by_call_with_a_limit,
    by_greenback_with_a_limit,
    by_call_in_a_group,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_cancelled_scope_ends_where_it_was_opened(way):
    """Nothing escapes, the coroutine's `finally` has run, and the code after the scope goes on."""

    async def main():
        inner = Inner()
        scope = anyio.CancelScope()

        async def stop():
            with anyio.fail_after(30):
                await inner.began.wait()
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            with scope:
                await way(inner)
        await anyio.sleep(0)
        return scope.cancelled_caught, inner.ended

    assert anyio.run(main) == (True, True)


class Resource:
    """What a sync function uses for a while, and cleans up."""

    def __init__(self):
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.steps = []

    async def use(self):
        self.began.set()
        await asyncio.sleep(3600)

    async def clean_up(self):
        await asyncio.sleep(0)
        self.steps.append("cleaned")

    async def clean_up_slowly(self):
        self.steps.append("begun")
        self.began.set()
        await asyncio.sleep(3600)

    def work(self, clean_up):
        loop = bridge.run(_loop)
        try:
            bridge.run(self.use())
        finally:
            try:
                bridge.run(clean_up())
            finally:
                loop.call_soon_threadsafe(self.ended.set)


async def _loop():
    return asyncio.get_running_loop()


@pytest.mark.parametrize("send", [bridge.call, anyio.to_thread.run_sync], ids=["bridge.call", "anyio.to_thread"])
def test_a_cancelled_task_leaves_its_finally_blocks_in_peace(send):
    """asyncio cancels once; what the sync function runs to clean up is awaited to its end."""

    async def main():
        resource = Resource()
        task = asyncio.create_task(send(resource.work, resource.clean_up))
        await resource.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await resource.ended.wait()
        return resource.steps

    assert asyncio.run(main()) == ["cleaned"]


def test_a_second_cancellation_reaches_the_finally_block():
    """As it does in a coroutine."""

    async def main():
        resource = Resource()
        task = asyncio.create_task(bridge.call(resource.work, resource.clean_up_slowly))
        await resource.began.wait()
        resource.began.clear()
        task.cancel()
        await resource.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return resource.steps, resource.ended.is_set()

    assert asyncio.run(main()) == (["begun"], True)
