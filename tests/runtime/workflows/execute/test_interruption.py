"""A task cancelled at any of its awaits leaves a run that goes on or is undone: nothing done twice, nothing undone twice.

Every scenario is cancelled at its first suspension, its second, and so on until it comes to its end, in each of the
three ways of `troth.testing.interruption`, and after each turn of the loop. What a step does is the last thing in its function, so each effect has to be
there exactly once: an answer that was there when the cancellation came is not lost.
"""

import asyncio
import itertools
from collections import Counter

import pytest

from troth.runtime import Runtime, Saga, SagaState, Workflow, step
from troth.runtime.workflows.record.report import RunWord
from troth.testing.interruption import HOWS, interrupted

MOST = 60  # turns of a loop after which what is left is only the wait for a thread
PATIENCE = 20  # seconds after which what should be at once is given up as hanging


ENOUGH = 25  # suspensions below which a scenario would prove little


class World:
    """Counts what is done and undone, by run and step."""

    def __init__(self):
        self.did = Counter()

    def do(self, name, *, fails=False):
        async def do(run):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if fails:
                raise ValueError(name)
            self.did[run, name] += 1
            return name

        return do

    def undo(self, name):
        async def undo(run, result=None):
            await asyncio.sleep(0)
            self.did[run, f"undo {name}"] += 1

        return undo

    def of(self, run):
        return {name: count for (whose, name), count in self.did.items() if whose == run}


def acts(world, name, **fields):
    inputs = {"run": "run.id"}
    return step(
        name, function=world.do(name), inputs=inputs, undo={"function": world.undo(name), "inputs": inputs}, **fields
    )


def fails(world, name, **fields):
    return step(name, function=world.do(name, fails=True), inputs={"run": "run.id"}, **fields)


def straight(world):
    return Workflow("straight", acts(world, "a"), acts(world, "b"), acts(world, "c"))


def wide(world):
    inner = [acts(world, "x"), acts(world, "y", after="x"), step("nap", sleep="1ms")]
    return Workflow(
        "wide", step("p", parallel=inner), step("e", each=[1, 2], steps=[acts(world, "i")]), acts(world, "z")
    )


def winding(world):
    ways = [{"when": "steps.a == 'a'", "steps": [acts(world, "r")]}, {"otherwise": []}]
    return Workflow(
        "winding",
        acts(world, "a"),
        step("way", branch=ways),
        step("l", loop=[acts(world, "q")], at_most=2, pause="1ms"),
        step("s", saga=[acts(world, "s1"), fails(world, "s2")], optional=True),
        step("w", workflow=Workflow("inner", step("i", sleep="1ms"))),
    )


def racing(world):
    slow = step("slow", saga=[step("nap", sleep="60s"), acts(world, "never")])
    return Workflow("racing", step("race", parallel=[slow, acts(world, "won")], join="any"), acts(world, "z"))


def failing(world):
    return Workflow(
        "failing", acts(world, "a"), acts(world, "b"), fails(world, "c", retry={"attempts": 2, "delay": "1ms"})
    )


COMPLETE = {
    straight: {"a": 1, "b": 1, "c": 1},
    wide: {"x": 1, "y": 1, "i": 2, "z": 1},
    winding: {"a": 1, "r": 1, "q": 2, "s1": 1, "undo s1": 1},
    racing: {"won": 1, "z": 1},
}


async def cancelled_after(work, turns):
    """Cancel a task after so many turns of its loop: what it does in branches of its own is met there too."""
    task = asyncio.create_task(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    return await task


async def everywhere(make, check):
    """Cancel `make(run_id)` at each suspension in each way; `check(run_id)` afterwards. Answers how many there were."""
    total = 0
    for how in (*HOWS, "turns"):
        for at in itertools.count(1):
            run_id = f"{how}-{at}".replace(" ", "_")
            work = cancelled_after(make(run_id), at) if how == "turns" else interrupted(make(run_id), at, how)
            task = asyncio.create_task(work)
            await asyncio.wait([task], timeout=PATIENCE)
            assert task.done(), f"hangs when it is cancelled at {at} {how}"
            was_cancelled = task.cancelled()
            if not was_cancelled and task.exception() is not None:
                raise task.exception()
            await asyncio.wait_for(check(run_id), PATIENCE)
            total += 1
            if not was_cancelled or at == MOST:
                break
    return total


def is_unknown(runtime, run_id):
    return runtime.engine.find(run_id) is None


@pytest.mark.parametrize("flow", list(COMPLETE), ids=lambda flow: flow.__name__)
def test_it_goes_on(tmp_path, flow):
    """Asked for again, the run completes; nothing is done twice."""
    world = World()

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            linked = runtime.load(flow(world))

            async def check(run_id):
                run = await runtime.arun(linked, run_id=run_id)
                assert run.state is RunWord.COMPLETED
                assert world.of(run_id) == COMPLETE[flow]

            return await everywhere(lambda run_id: runtime.arun(linked, run_id=run_id), check)

    assert asyncio.run(main()) > ENOUGH


@pytest.mark.parametrize("flow", list(COMPLETE), ids=lambda flow: flow.__name__)
def test_it_is_undone(tmp_path, flow):
    """Cancelled for good, whatever it had done is undone, each once; what was not done may be undone once too."""
    world = World()

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            linked = runtime.load(flow(world))

            async def check(run_id):
                if is_unknown(runtime, run_id):
                    return
                run = await runtime.acancel(run_id)
                did = world.of(run_id)
                if run.state is RunWord.COMPLETED:
                    assert did == COMPLETE[flow]
                    return
                assert run.state is RunWord.CANCELLED
                for name, count in COMPLETE[flow].items():
                    assert did.get(name, 0) <= count, did
                    if not name.startswith("undo"):
                        assert did.get(name, 0) <= did.get(f"undo {name}", 0) <= count, did

            return await everywhere(lambda run_id: runtime.arun(linked, run_id=run_id), check)

    assert asyncio.run(main()) > ENOUGH


def test_an_undoing_goes_on(tmp_path):
    """A run that fails and is interrupted on the way, before or while it is undone, ends rolled back, each step once."""
    world = World()

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            linked = runtime.load(failing(world))

            async def check(run_id):
                run = await runtime.arun(linked, run_id=run_id, check=False)
                assert (run.state, run.undone) == (RunWord.ROLLED_BACK, ("b", "a"))
                assert world.of(run_id) == {"a": 1, "b": 1, "undo a": 1, "undo b": 1}

            return await everywhere(lambda run_id: runtime.arun(linked, run_id=run_id, check=False), check)

    assert asyncio.run(main()) > ENOUGH


@pytest.mark.parametrize("verb", ["aresume", "afork", "acancel", "aattach"])
def test_the_other_verbs(tmp_path, verb):
    """Cancelled at any await, the verb can be used again, and the run comes to its end."""
    world = World()
    flow = Workflow("w", acts(world, "a"), step("ok", approval="Well?"), acts(world, "b"))

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            linked = runtime.load(flow)
            for number in itertools.count(1):
                name = f"r{number}"
                await runtime.arun(linked, run_id=name, wait=False)
                if verb != "acancel":
                    await runtime.aapprove(name)
                if verb == "afork":
                    await runtime.aattach(name)
                target = f"fork-{name}" if verb == "afork" else name
                work = runtime.afork(name, "b", fork_id=target) if verb == "afork" else getattr(runtime, verb)(name)
                task = asyncio.create_task(interrupted(work, number, HOWS[number % len(HOWS)]))
                await asyncio.wait([task], timeout=PATIENCE)
                assert task.done(), f"{verb} hangs when it is cancelled at {number}"
                if not task.cancelled() and task.exception() is not None and verb != "aresume":
                    raise task.exception()
                if verb == "acancel":
                    run = await asyncio.wait_for(runtime.acancel(name), PATIENCE)
                    assert (run.state, world.of(name)) == (RunWord.CANCELLED, {"a": 1, "undo a": 1})
                elif not is_unknown(runtime, target):
                    run = await asyncio.wait_for(runtime.aattach(target), PATIENCE)
                    assert run.state is RunWord.COMPLETED
                    assert world.of(target) == ({"b": 1} if verb == "afork" else {"a": 1, "b": 1})
                if not task.cancelled() and number > len(HOWS) * 2:
                    return number
        return 0

    assert asyncio.run(main()) >= 7


@pytest.mark.parametrize("fails_at", [None, "c"], ids=["completes", "is rolled back"])
def test_a_saga(tmp_path, fails_at):
    """The same for a saga: resumed or rolled back from wherever it was."""
    world = World()

    def saga(run):
        made = Saga("s")
        for name in ("a", "b", "c"):
            do = world.do(name, fails=name == fails_at)
            made.step(name, do=do, undo=world.undo(name), arguments={"run": run})
        return made

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:

            async def check(run_id):
                outcome = await runtime.arun_saga(saga(run_id), run_id=run_id, check=False)
                if fails_at is None:
                    assert (outcome.state, world.of(run_id)) == (SagaState.COMPLETED, {"a": 1, "b": 1, "c": 1})
                else:
                    assert outcome.state is SagaState.ROLLED_BACK
                    in_flight = world.of(run_id).get("undo c", 0)  # interrupted, its outcome is unknown: undone too
                    assert outcome.undone == (("c", "b", "a") if in_flight else ("b", "a"))
                    done = {"a": 1, "b": 1, "undo b": 1, "undo a": 1}
                    assert world.of(run_id) == (done | {"undo c": 1} if in_flight else done)

            def make(run_id):
                return runtime.arun_saga(saga(run_id), run_id=run_id, check=False)

            return await everywhere(make, check)

    assert asyncio.run(main()) > ENOUGH
