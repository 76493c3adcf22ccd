"""A wait that is held to a time: nothing is lost of what it gives, and nothing of who ends it."""

import asyncio

import pytest

from troth.server.within import within

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


NEVER = float("inf")


class Waiter:
    """Waits for an event, in several steps, and notes how it ended."""

    def __init__(self):
        self.go, self.end = asyncio.Event(), None

    async def wait(self):
        try:
            await asyncio.sleep(0)
            await self.go.wait()
        except BaseException as problem:
            self.end = type(problem)
            raise
        return "here"


async def at_once():
    return "here"


async def fails():
    raise ValueError("no")


async def test_what_is_there_is_given_whatever_the_time_is():
    """Nothing is waited for, so no time can be up."""
    assert await within(0.0, at_once()) == "here"
    with pytest.raises(ValueError, match="no"):
        await within(0.0, fails())


async def test_what_comes_in_time_is_given():
    """However many steps it takes."""
    waiter = Waiter()
    waiting = asyncio.create_task(within(NEVER, waiter.wait()))
    for _ in range(3):
        await asyncio.sleep(0)
    waiter.go.set()
    assert await waiting == "here"


async def test_what_comes_too_late_is_cancelled():
    """And whoever waits hears that the time is up."""
    waiter = Waiter()
    with pytest.raises(TimeoutError):
        await within(0.0, waiter.wait())
    assert waiter.end is asyncio.CancelledError


@pytest.mark.parametrize("turns", [pytest.param(1, id="in its first step"), pytest.param(3, id="in a later one")])
async def test_whoever_cancels_it_ends_it(turns):
    """As if there were no time at all."""
    waiter = Waiter()
    waiting = asyncio.create_task(within(NEVER, waiter.wait()))
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert waiter.end is asyncio.CancelledError


async def test_what_goes_on_in_spite_of_it_is_awaited():
    """A coroutine that cleans up, and waits for that, has the time it needs."""
    cleaned = asyncio.Event()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            cleaned.set()

    with pytest.raises(TimeoutError):
        await within(0.0, stubborn())
    assert cleaned.is_set()
