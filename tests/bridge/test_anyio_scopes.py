"""The cancellation of an anyio scope ends in that scope, whatever way `bridge.run` inside of it has taken."""

import asyncio

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
        try:
            await anyio.sleep_forever()
        finally:
            self.ended = True


async def by_call(inner):
    await bridge.call(lambda: bridge.run(inner.wait()))


async def by_worker(inner):
    await anyio.to_thread.run_sync(lambda: bridge.run(inner.wait()))


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


WAYS = [by_call, by_worker, by_greenback, by_call_with_a_limit, by_greenback_with_a_limit, by_call_in_a_group]


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
