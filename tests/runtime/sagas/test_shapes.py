"""Nineteen shapes of callables, as `do` and as `undo`: each is called properly or refused before any effect.

The table of a known implementation, with our answers: there, sync ones ran and were then called failures, were run
three times over by retries, or left the saga wedged half undone.
"""

import asyncio
import functools
import time
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from troth.runtime import Retry, Runtime, Saga, SagaFailedError, SagaState
from troth.runtime.sagas.checked_callable import WrongColorError


class Count:
    """How often the effect took place."""

    def __init__(self):
        self.effects = 0

    def happen(self):
        self.effects += 1


class Awaitable:
    def __init__(self, count):
        self.count = count

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        self.count.happen()
        return "done"


def shapes(count):
    """Every shape, and what becomes of it: `done`, `failed`, `unknown` (failed, its effect may be there) or `refused`."""

    def returns_none():
        count.happen()

    def returns_value():
        count.happen()
        return 7

    class Thing:
        def method(self):
            count.happen()

        async def amethod(self):
            count.happen()

        def __call__(self):
            count.happen()

    class AsyncThing:
        async def __call__(self):
            count.happen()

    async def plain():
        count.happen()

    async def forgets():
        plain()

    async def blocks():
        time.sleep(0.25)
        count.happen()

    async def swallows():
        try:
            await asyncio.sleep(0.5)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        count.happen()

    def raises():
        raise ValueError("no")

    async def araises():
        raise ValueError("no")

    def own_timeout():
        raise TimeoutError("the peer's own")

    def generator():
        count.happen()
        yield

    async def agenerator():
        count.happen()
        yield

    return {
        "sync returning None": (returns_none, "done"),
        "sync returning a value": (returns_value, "done"),
        "bound sync method": (Thing().method, "done"),
        "object with a sync call": (Thing(), "done"),
        "Mock of a sync function": (
            Mock(spec=returns_none, side_effect=lambda **_: count.happen(), return_value=None),
            "done",
        ),
        "async function": (plain, "done"),
        "bound async method": (Thing().amethod, "done"),
        "lambda returning a coroutine": (lambda: plain(), "done"),  # noqa: PLW0108
        "lambda with arguments returning a coroutine": (lambda result=None: plain(), "done"),
        "partial of a coroutine function": (functools.partial(plain), "done"),
        "object with an async call": (AsyncThing(), "done"),
        "AsyncMock": (AsyncMock(side_effect=lambda **_: count.happen(), return_value=None), "done"),
        "lambda returning an awaitable": (lambda: Awaitable(count), "done"),
        "sync that raises": (raises, "failed"),
        "async that raises": (araises, "failed"),
        "its own TimeoutError": (own_timeout, "failed"),
        "async wrapper that forgets an await": (forgets, "unknown"),
        "async that blocks beyond its time": (blocks, "unknown"),
        "async that swallows its cancellation": (swallows, "unknown"),
        "generator function": (generator, "refused"),
        "async generator function": (agenerator, "refused"),
        "MagicMock of no color": (MagicMock(), "refused"),
    }


NAMES = list(shapes(Count()))
SLOW = ("async that blocks beyond its time", "async that swallows its cancellation")


def policy(name):
    timeout = 0.1 if name in SLOW else 10
    return {"timeout": timeout}, {"undo_timeout": timeout}


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_as_do(runtime, name):
    """Done once; or failed after its genuine attempts; or undone because its outcome is not known; or never begun."""
    count, undone = Count(), []
    call, fate = shapes(count)[name]
    saga = Saga("do").step("first", do=lambda: 1, undo=lambda: undone.append("first"))
    if fate == "refused":
        with pytest.raises(WrongColorError):
            saga.step("shape", do=call, undo=lambda: undone.append("shape"))
        assert count.effects == 0
        return
    retry = Retry(attempts=3, delay=0.001) if fate != "unknown" else 1
    saga.step("shape", do=call, undo=lambda: undone.append("shape"), retry=retry, **policy(name)[0])
    outcome = runtime.run_saga(saga, check=False)
    if fate == "done":
        assert outcome.state is SagaState.COMPLETED
        assert (outcome.done, outcome.undone, count.effects) == (("first", "shape"), (), 1)
        assert undone == []
    else:
        assert outcome.state is SagaState.ROLLED_BACK
        assert outcome.failed.step == "shape"
        assert undone == (["first"] if fate == "failed" else ["shape", "first"])
        assert count.effects <= 1
    if name == "its own TimeoutError":
        assert outcome.failed.type == "TimeoutError"


@pytest.mark.parametrize("name", NAMES)
def test_as_undo(runtime, name):
    """Whatever shape it has, the other undos happen; what could not be undone is named, and nothing is left wedged."""
    count, undone = Count(), []
    call, fate = shapes(count)[name]

    def fails():
        raise ValueError("the last step")

    saga = Saga("undo").step("first", do=lambda: 1, undo=lambda: undone.append("first"))
    if fate == "refused":
        with pytest.raises(WrongColorError):
            saga.step("shape", do=lambda: 2, undo=call)
        return
    saga.step("shape", do=lambda: 2, undo=call, undo_retry=1, **policy(name)[1])
    saga.step("third", do=lambda: 3, undo=lambda: undone.append("third"))
    saga.step("last", do=fails, undo=None)
    outcome = runtime.run_saga(saga, check=False)
    assert undone == ["third", "first"]
    assert outcome.failed.step == "last"
    if fate == "done":
        assert (outcome.state, outcome.undone) == (SagaState.ROLLED_BACK, ("third", "shape", "first"))
        assert count.effects == 1
    else:
        assert outcome.state is SagaState.ROLLBACK_INCOMPLETE
        assert [left.step for left in outcome.not_undone] == ["shape"]
        assert outcome.undone == ("third", "first")


def test_there_are_at_least_nineteen():
    """The table of the known implementation is covered."""
    assert len(NAMES) >= 19


def test_a_failed_saga_raises_with_its_outcome(runtime):
    """And says in words what was done, undone and left."""

    def fails():
        raise ValueError("no stock")

    saga = Saga("order").step("charge", do=lambda: "pay-1", undo=lambda result: None).step("ship", do=fails, undo=None)
    with pytest.raises(SagaFailedError) as failed:
        runtime.run_saga(saga)
    assert str(failed.value).splitlines()[0].startswith("rolled back: the step 'ship' failed with ValueError: no stock")
    assert failed.value.outcome.results == {"charge": "pay-1"}


def test_nothing_runs_in_a_terminal_saga(runtime):
    """Asked for again by its id, a saga that is over answers from the record."""
    count = Count()

    def act():
        count.happen()

    saga = Saga("order").step("a", do=act, undo=None)
    assert runtime.run_saga(saga, run_id="one").state is SagaState.COMPLETED
    assert runtime.run_saga(saga, run_id="one").state is SagaState.COMPLETED
    assert count.effects == 1


def test_a_saga_from_async_code(runtime):
    """The same meaning, the same outcome."""
    saga = Saga("order").step("a", do=lambda: 1, undo=None)
    assert asyncio.run(runtime.arun_saga(saga)).results == {"a": 1}


def test_a_saga_that_was_loaded_stays_one(runtime):
    """What `load` returned can be run as often as the saga itself, in any order: its steps are those of the saga."""
    saga = Saga("order").step("a", do=lambda: 1, undo=None)
    loaded = runtime.load(saga)
    for source in (loaded, saga, loaded, loaded):
        assert runtime.run(source).state == "completed"
        assert runtime.run_saga(saga).results == {"a": 1}


@pytest.mark.parametrize("turns", range(0, 24, 2))
def test_cancelled_anywhere_it_is_undone_or_goes_on(tmp_path, turns):
    """A cancellation of the run at any turn of the loop ends completed or undone, and each undo once."""
    world, undone = set(), []

    async def act(name):
        await asyncio.sleep(0)
        world.add(name)
        await asyncio.sleep(0)

    async def back(name):
        await asyncio.sleep(0)
        world.discard(name)
        undone.append(name)

    saga = Saga("order")
    for name in "abc":
        saga.step(name, do=act, undo=back, arguments={"name": name})

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            runtime.load(saga)
            task = asyncio.create_task(runtime.arun_saga(saga, run_id="r", check=False))
            while runtime.engine.find("r") is None:
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            await runtime.acancel("r")
            return await task

    outcome = asyncio.run(main())
    if outcome.state is SagaState.COMPLETED:
        assert world == {"a", "b", "c"}
    else:
        assert outcome.state is SagaState.CANCELLED
        assert world == set()
        assert len(undone) == len(set(undone)), "undone twice"
