"""A cancelled task leaves nothing behind: no lease without a driver, no task, no thread, no effect done twice."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from troth.bridge._threads.waiting_threads import is_parked
from troth.runtime.engine import (
    EmbeddedEngine,
    Join,
    RunFailedError,
    Sleep,
    Start,
    Step,
    Together,
    Wait,
    WaitTimeoutError,
    current_step,
)
from troth.runtime.store import RunState, SqliteStore, StepState
from troth.testing.interruption import HOWS, interrupted

PATIENCE = 10  # seconds after which what should be at once is given up as hanging


def note(path):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{current_step().key}\n")
    return current_step().name


async def anote(path):
    await asyncio.sleep(0)
    return note(path)


def needs(path, marker):
    if not Path(marker).exists():
        raise FileNotFoundError(marker)
    return note(path)


def plain(path):
    first = yield Step("one", note, path)
    second = yield Step("two", note, path)
    return [first, second]


def mixed(path):
    first = yield Step("sync", note, path)
    second = yield Step("async", anote, path)
    return [first, second]


def timed(path):
    first = yield Step("sync", note, path, timeout=20)
    second = yield Step("async", anote, path, timeout=20)
    return [first, second]


def waiting(path):
    yield Step("before", note, path)
    yield Sleep(0.001)
    try:
        yield Wait("answer", timeout=0.002)
    except WaitTimeoutError:
        return "nobody"


def wide(path):
    return (yield Together(mixed(path), mixed(path), mixed(path), limit=2))


def child(path):
    return (yield Step("child", note, path))


def nested(path):
    own = yield Start(child, path, run_id="nested-child")
    return (yield Join(own))


def resumable(path, marker):
    yield Step("before", note, path)
    return (yield Step("needs", needs, path, marker))


DECISIONS = [plain, mixed, timed, waiting, wide, nested, child, resumable]


class Place:
    """An engine, its store and what its steps did."""

    def __init__(self, folder, synchronous):
        folder.mkdir()
        self.store = SqliteStore(folder / "troth.db", synchronous=synchronous)
        self.engine = EmbeddedEngine(self.store, decisions=DECISIONS, recover=False)
        self.path = str(folder / "effects")
        self.marker = str(folder / "marker")

    def effects(self):
        path = Path(self.path)
        return Counter(path.read_text().splitlines()) if path.exists() else Counter()

    def is_free(self, run_id):
        return until(lambda: self.store.holder(f"run:{run_id}") is None)

    def recorded(self, run_id):
        steps = self.engine.steps(run_id)
        return {step.key for step in steps if step.state is StepState.DONE and step.kind == "step"}

    def finish(self, run_id, decision, *args):
        """Command for the run, as somebody does who knows nothing of the interruption."""
        answers = []

        def ask():
            answers.append(self.engine.run(decision, *args, run_id=run_id))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(PATIENCE)
        assert answers, f"nobody drives {self.engine.find(run_id)}; held by {self.store.holder(f'run:{run_id}')}"
        assert self.engine.find(run_id).state is RunState.COMPLETED

    def close(self):
        self.engine.close()
        self.store.close()


@pytest.fixture(params=["NORMAL", "FULL"])
def places(request, tmp_path):
    """New places, one after the other; what they leave behind in the process is noticed."""
    before = others()
    opened = []

    def make():
        opened.append(Place(tmp_path / str(len(opened)), request.param))
        return opened[-1]

    yield make
    for place in opened:
        place.close()
    assert until(lambda: others() <= before, PATIENCE), others() - before


def others():
    """The threads at work, but for those of steps. The bridge keeps its workers for the process, and they rest."""
    return {thread.name for thread in threading.enumerate() if not is_kept(thread)}


def is_kept(thread):
    return thread.name.startswith("troth-step") or (thread.name.startswith("troth-worker") and is_parked(thread))


def until(is_so, seconds=1.0):
    deadline = time.monotonic() + seconds
    while not (answer := is_so()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return answer


async def is_cancelled(work, at, how):
    """Whether it was cancelled; if not, it came to its end before. Either way nothing of it is at work afterwards."""
    task = asyncio.create_task(interrupted(work, at, how))
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    assert done, "a cancelled call did not return"
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if task.cancelled():
        assert not left
        return True
    task.result()
    return False


def every_suspension():
    """1, 2, 3 …; more than any case has means that it would never end."""
    yield from itertools.takewhile(lambda at: at < 100, itertools.count(1))
    pytest.fail("it never came to its end")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("decision", [plain, mixed, timed, waiting, wide, nested], ids=lambda one: one.__name__)
def test_arun(places, decision, how):
    """Cancelled wherever it waits, the lease is free, nothing is at work, and the run goes on when it is asked for."""
    for at in every_suspension():
        place = places()
        if not asyncio.run(is_cancelled(place.engine.arun(decision, place.path, run_id="r"), at, how)):
            break
        assert place.is_free("r"), f"the lease is kept, cancelled at suspension {at}"
        recorded, before = place.recorded("r"), place.effects()
        place.finish("r", decision, place.path)
        after = place.effects()
        assert {key: after[key] for key in recorded} == {key: before[key] for key in recorded}
        assert max(after.values()) <= 2
        place.close()
    assert at > 1


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_has_returned_is_not_done_again(places, color, how):
    """A cancellation that finds a step ended lets its answer be written: only what was in flight is repeated."""

    def steps(path):
        for name in ("one", "two", "three"):
            yield Step(name, note if color == "sync" else no_wait, path)

    for at in every_suspension():
        place = places()
        place.engine.register(steps, "steps")
        was_cancelled = asyncio.run(is_cancelled(place.engine.arun(steps, place.path, run_id="r"), at, how))
        assert place.is_free("r")
        place.finish("r", steps, place.path)
        repeated = [key for key, count in place.effects().items() if count > 1]
        assert len(repeated) <= (color == "sync" and how != "as it wakes")
        place.close()
        if not was_cancelled:
            break


async def no_wait(path):
    return note(path)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("way", ["astart", "afork", "aresume"])
def test_other_ways_to_begin(places, way, how):
    """The same for every other way in which a task comes to hold a run."""
    for at in every_suspension():
        place = places()
        if way != "astart":
            prepare(place)
        was_cancelled = asyncio.run(began(place, way, at, how))
        run_id, *asked = (
            ("r", plain, place.path) if way == "astart" else ("failed", resumable, place.path, place.marker)
        )
        run_id = "fork" if way == "afork" else run_id
        assert place.is_free(run_id), f"the lease is kept, cancelled at suspension {at}"
        if way == "afork" and place.engine.find("fork") is None:
            place.engine.fork("failed", "needs", fork_id="fork")
        if way == "aresume" and place.engine.find("failed").state is RunState.FAILED:
            place.engine.resume("failed")
        place.finish(run_id, *asked)
        assert max(place.effects().values()) <= 2
        place.close()
        if not was_cancelled:
            break
    assert at > 1


def prepare(place):
    """A run that failed for want of a file, which is there now."""
    with contextlib.suppress(RunFailedError):
        place.engine.run(resumable, place.path, place.marker, run_id="failed")
    Path(place.marker).touch()


async def began(place, way, at, how):
    """Begin in that way and be cancelled; what then lives on the loop dies with it, as it does under `asyncio.run`."""
    if way == "astart":
        work = place.engine.astart(plain, place.path, run_id="r")
    elif way == "afork":
        work = place.engine.afork("failed", "needs", fork_id="fork")
    else:
        work = place.engine.aresume("failed")
    task = asyncio.create_task(interrupted(work, at, how))
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.done()
    return task.cancelled()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda engine: engine.aresult("r"), id="aresult"),
        pytest.param(lambda engine: engine.afind("r"), id="afind"),
        pytest.param(lambda engine: engine.alist(), id="alist"),
        pytest.param(lambda engine: engine.asteps("r"), id="asteps"),
        pytest.param(lambda engine: engine.asignal("r", "answer", 1, key="once"), id="asignal"),
        pytest.param(lambda engine: engine.acancel("r"), id="acancel"),
        pytest.param(lambda engine: engine.aclose(), id="aclose"),
    ],
)
def test_what_only_looks_or_tells(places, call, how):
    """Cancelled, it ends; the run that it was about is as it was, and the engine can be closed."""

    def asks():
        return (yield Wait("answer"))

    for at in every_suspension():
        place = places()
        place.engine.start(asks, run_id="r")

        async def main(place=place, at=at):
            await place.engine.astart(asks, run_id="here")
            task = asyncio.create_task(interrupted(call(place.engine), at, how))
            done, _ = await asyncio.wait([task], timeout=0.3)
            if not done:  # `aresult` waits for what does not come, and was not cancelled yet
                task.cancel()
                await asyncio.wait([task])
                return False
            return task.cancelled()

        was_cancelled = asyncio.run(main())
        place.close()
        with EmbeddedEngine(place.store.path, recover=False) as engine:
            assert {run.id for run in engine.list()} == {"r", "here"}
            assert engine.store.holder("run:r") is engine.store.holder("run:here") is None
        if not was_cancelled:
            break


@pytest.mark.parametrize("way", ["cancelled", "Ctrl-C"])
def test_an_interrupted_run_is_left_until_it_is_asked_for(tmp_path, way):
    """It does not go on by itself in the same engine a moment later: whoever interrupted it meant to."""
    seen = []

    def interrupts():
        raise KeyboardInterrupt

    async def hangs():
        seen.append("hangs")
        await (asyncio.Event().wait() if len(seen) == 1 else asyncio.sleep(0))

    def decide():
        if way == "cancelled":
            yield Step("hangs", hangs)
        else:
            yield Step("interrupts", interrupts if not seen else (lambda: seen.append("again")))

    async def cancelled():
        task = asyncio.create_task(engine.arun(decide, run_id="r"))
        while not seen:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])

    with EmbeddedEngine(tmp_path / "troth.db", decisions=[]) as engine:
        if way == "cancelled":
            asyncio.run(cancelled())
        else:
            with pytest.raises(KeyboardInterrupt):
                engine.run(decide, run_id="r")
        before = list(seen)
        time.sleep(0.7)  # more than two of the engine's looks for orphans
        assert engine.find("r").state is RunState.INTERRUPTED
        assert seen == before
        seen.append("second time")
        engine.result("r", PATIENCE)
        assert engine.find("r").state is RunState.COMPLETED


def test_a_cancelled_run_that_was_left_alone_is_cleaned_up(tmp_path):
    """`cancel` is to ask for it: the decision hears of it, although nobody waits."""
    undone = threading.Event()

    async def hangs():
        await asyncio.Event().wait()

    def decide():
        try:
            yield Step("hangs", hangs)
        finally:
            yield Step("undo", undone.set)

    async def main():
        task = asyncio.create_task(engine.arun(decide, run_id="r"))
        while not (engine.find("r") and engine.steps("r")):
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
        assert await engine.acancel("r")

    with EmbeddedEngine(tmp_path / "troth.db") as engine:
        asyncio.run(main())
        assert undone.wait(PATIENCE)
