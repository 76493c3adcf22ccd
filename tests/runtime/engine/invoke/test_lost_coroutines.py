"""A step that lost a coroutine is never recorded as success, and nobody else is blamed for it."""

import asyncio
import contextlib
import contextvars
import gc
import subprocess
import sys
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine, RunFailedError, Step, Together
from troth.runtime.engine.invoke import lost_coroutines
from troth.runtime.store import RunState, StepState


@pytest.fixture(autouse=True)
def _nobody_else_is_running(monkeypatch):
    """A step that another test left hanging in this process would make the blame uncertain, and nobody blamed."""
    monkeypatch.setattr(lost_coroutines, "_running", {})


async def send():
    """What is forgotten."""


def dropped():
    send()


def dropped_in_a_cycle():
    cycle = [send()]
    cycle.append(cycle)


def dropped_in_a_cycle_after_a_collection():
    cycle = [send()]
    cycle.append(cycle)
    gc.collect(0)  # as Python does by itself in a longer step: the cycle is not young any more
    del cycle


OLDER = []


def dropped_in_a_cycle_while_older_objects_die():
    OLDER.clear()  # the collector takes them off its count of young objects
    cycle = [send()]
    cycle.append(cycle)
    time.sleep(0.001)


def dropped_in_a_cycle_and_collected():
    dropped_in_a_cycle()
    gc.collect(0)  # as Python may do by itself at the next object that is made


def dropped_in_a_cycle_and_collected_when_old():
    cycle = [send()]
    cycle.append(cycle)
    gc.collect(0)
    del cycle
    gc.collect(1)


def dropped_in_a_cycle_and_collected_by_a_thread():
    dropped_in_a_cycle()
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()


class Slow:
    """Frees itself in a cycle, and takes its time."""

    def __init__(self):
        self.me = self
        self.dying = threading.Event()

    def __del__(self):
        self.dying.set()
        time.sleep(0.05)


def dropped_in_a_cycle_while_a_thread_collects():
    slow = Slow()
    dying = slow.dying
    del slow
    dropped_in_a_cycle()
    thread = threading.Thread(target=gc.collect)
    thread.start()
    dying.wait(10)


def dropped_under_a_broad_except():
    with contextlib.suppress(Exception):
        send().nope()


def dropped_in_a_thread_of_ours():
    thread = threading.Thread(target=contextvars.copy_context().run, args=(dropped,))
    thread.start()
    thread.join()


async def forgotten_await():
    send()
    await asyncio.sleep(0)


async def forgotten_in_a_callee():
    await forgotten_await()


async def a_dropped_task():
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    waits = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(_wait_for(waits))
    await asyncio.sleep(0)
    del task, waits


async def _wait_for(future):
    await future


KEPT = []


async def awaited():
    await send()
    await asyncio.gather(send(), send())
    await asyncio.create_task(send())


def closed():
    send().close()


def kept_for_later():
    KEPT.append(send())


LOSING = [
    dropped,
    dropped_in_a_cycle,
    dropped_in_a_cycle_after_a_collection,
    dropped_in_a_cycle_while_older_objects_die,
    dropped_in_a_cycle_and_collected,
    dropped_in_a_cycle_and_collected_when_old,
    dropped_in_a_cycle_and_collected_by_a_thread,
    dropped_in_a_cycle_while_a_thread_collects,
    dropped_under_a_broad_except,
    dropped_in_a_thread_of_ours,
    forgotten_await,
    forgotten_in_a_callee,
]


def decide(name):
    OLDER.extend([] for _ in range(50))
    step = next(one for one in [*LOSING, a_dropped_task, awaited, closed, kept_for_later] if one.__name__ == name)
    return (yield Step(name, step))


WAYS = {
    "run": lambda engine, name: engine.run(decide, name, run_id="r"),
    "arun": lambda engine, name: asyncio.run(engine.arun(decide, name, run_id="r")),
    "start": lambda engine, name: engine.start(decide, name, run_id="r").result(10),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [step.__name__ for step in LOSING])
def test_a_loss_fails_the_step(engine, step, way):
    """The error names what was lost and the line that made it; the run is failed in the record too."""
    with pytest.raises(RunFailedError) as failed:
        WAYS[way](engine, step)
    assert failed.value.error["outcome"] == "lost"
    assert "'send' was never awaited" in failed.value.error["message"]
    assert f"{__file__}:" in failed.value.error["message"]
    assert engine.find("r").state is RunState.FAILED
    assert engine.steps("r")[0].state is StepState.FAILED


async def begun_and_dropped():
    asyncio.create_task(send())
    asyncio.ensure_future(_sleeps())
    await asyncio.sleep(0)


async def begun_and_kept():
    KEPT.append(asyncio.create_task(_sleeps()))


async def begun_and_held_by_another():
    KEPT.append(asyncio.create_task(_holds()))
    await asyncio.sleep(0)


async def _holds():
    inner = asyncio.create_task(_sleeps())
    await inner


async def _sleeps():
    await asyncio.sleep(3600)


def gives_a_coroutine_back():
    return begun_and_dropped()


@pytest.mark.parametrize("step", [begun_and_dropped, gives_a_coroutine_back], ids=lambda one: one.__name__)
def test_a_task_begun_and_dropped_fails_a_step_of_a_sync_run(engine, step):
    """The loop stands still when the step returns, and nobody could ever wait for it: that part never happens."""

    def decision():
        yield Step("drops", step)

    with pytest.raises(RunFailedError) as failed:
        engine.run(decision, run_id="r")
    assert failed.value.error["outcome"] == "lost"
    assert "task '_sleeps' was started, and neither awaited nor kept" in failed.value.error["message"]


@pytest.mark.filterwarnings("ignore::troth.bridge.LeftoverTaskWarning")
@pytest.mark.parametrize("step", [begun_and_kept, begun_and_held_by_another], ids=lambda one: one.__name__)
def test_a_task_that_somebody_keeps_is_theirs(engine, step):
    """A client that keeps its reader is no loss; the bridge warns that the task stands still."""

    def decision():
        yield Step("keeps", step)

    engine.run(decision, run_id="r")
    assert engine.find("r").state is RunState.COMPLETED
    for task in KEPT:
        task.cancel()
    KEPT.clear()
    engine.run(decision_awaiting, run_id="turn the loop")


def decision_awaiting():
    yield Step("awaited", awaited)


def test_a_dropped_task_fails_the_step(engine):
    """A task that nobody kept, collected while it still waited, is work that never happened."""
    with pytest.raises(RunFailedError) as failed:
        WAYS["arun"](engine, "a_dropped_task")
    assert failed.value.error["outcome"] == "lost"
    assert "_wait_for" in failed.value.error["message"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", ["awaited", "closed", "kept_for_later"])
def test_no_false_alarm(engine, step, way):
    """Awaited, closed, or kept for later: nothing is lost."""
    assert WAYS[way](engine, step) is None
    if step == "kept_for_later":
        KEPT.pop().close()


def test_others_losses_are_not_the_steps(engine, recwarn):
    """What the program loses outside of steps is told by Python as ever, and no step fails for it."""

    def own_business():
        send()  # in the decision's caller, not in a step

    own_business()
    assert engine.run(decide, "awaited") is None
    assert [str(warning.message) for warning in recwarn if "never awaited" in str(warning.message)]


def gives_a_coroutine_in_a_list():
    return [send()]


def makes_rubbish():
    nodes = [[] for _ in range(20)]
    for node in nodes:
        node.append(node)


def lost_in_a_cycle():
    cycle = [send()]
    cycle.append(cycle)


@pytest.mark.filterwarnings("ignore:coroutine 'send' was never awaited")
@pytest.mark.parametrize("before", ["a step that failed", "code outside of steps"])
@pytest.mark.parametrize("is_collected", [False, True], ids=["young", "after a collection"])
def test_a_step_is_not_blamed_for_what_is_older(engine, before, is_collected):
    """What the collector finds at a step's end may have been lost long before: only what is younger is the step's."""

    def rubbish():
        makes_rubbish()
        if is_collected:
            gc.collect(0)
            makes_rubbish()

    def fails():
        yield Step("fails", gives_a_coroutine_in_a_list)

    def fine():
        yield Step("rubbish", rubbish)

    for _ in range(20):
        if before == "a step that failed":
            with pytest.raises(RunFailedError):
                engine.run(fails)
        else:
            lost_in_a_cycle()
        engine.run(fine)
    gc.collect()


def test_the_collector_has_its_turns(engine):
    """Steps that leave something behind do not keep Python from collecting what is older."""
    import weakref

    class Node:
        pass

    refs = []

    def leaves():
        node = Node()
        node.me = node
        KEPT.append(node)  # alive at the end of its step, garbage later
        refs.append(weakref.ref(node))
        if len(KEPT) > 3:
            KEPT.pop(0)

    def many():
        for _ in range(20_000 // 20):
            yield Step("leaves", leaves)

    engine.run(many)
    KEPT.clear()
    assert sum(ref() is not None for ref in refs) < len(refs) / 2


def test_a_neighbour_is_not_blamed(engine):
    """Of two steps at once only the one that lost it fails."""

    def both():
        return (yield Together(Step("good", awaited), Step("bad", forgotten_await)))

    with pytest.raises(RunFailedError, match="'bad'"):
        engine.run(both, run_id="r")
    assert {step.name: step.state for step in engine.steps("r") if step.kind == "step"} == {
        "good": StepState.DONE,
        "bad": StepState.FAILED,
    }


HOOKS = """
import sys
from troth.runtime.engine import EmbeddedEngine, Step
async def send(): pass
async def awaited(): await send()
def decide(): return (yield Step("awaited", awaited))
with EmbeddedEngine(sys.argv[1] + "a.db"), EmbeddedEngine(sys.argv[1] + "b.db") as engine:
    engine.run(decide)
    hook = __import__("warnings")._warn_unawaited_coroutine
assert hook is not __import__("warnings")._warn_unawaited_coroutine, "the hook is still there"
send()
"""


def test_the_hooks_go_with_the_last_engine(tmp_path):
    """After that Python speaks for itself again."""
    done = subprocess.run([sys.executable, "-c", HOOKS, f"{tmp_path}/"], capture_output=True, text=True, check=True)
    assert done.stderr.count("coroutine 'send' was never awaited") == 1


def test_an_engine_opens_and_closes_without_searching_all_objects(tmp_path, monkeypatch):
    """In a program with a large heap that search takes a second, in which no other thread gets on."""
    searched = []

    def get_objects(generation=None):
        searched.append(generation)
        return []

    ended = threading.Event()
    other = threading.Thread(target=ended.wait)  # there is somebody to be reached
    other.start()
    monkeypatch.setattr(gc, "get_objects", get_objects)
    with EmbeddedEngine(tmp_path / "troth.db"):
        pass
    ended.set()
    other.join()
    assert None not in searched


@pytest.fixture
def collector():
    """The collector as it was before, whatever a test sets."""
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    KEPT.clear()


KEPT = []


def keep_some():
    KEPT.extend([number] for number in range(20))


@pytest.mark.parametrize("is_enabled", [True, False], ids=["enabled", "disabled"])
def test_few_objects_are_looked_at_after_a_step(engine, collector, is_enabled):
    """However many the program keeps, and also where it has disabled the collector: a step's cost does not grow."""
    if not is_enabled:
        gc.disable()
    looked_at = []

    def keep_and_look():
        keep_some()
        looked_at.append(len(gc.get_objects(0)))

    def keeping():
        for _ in range(200):
            yield Step("keep", keep_and_look)

    engine.run(keeping)
    assert len(KEPT) == 4000
    looked_at.sort()
    assert looked_at[150] < 400


def test_old_objects_are_collected_all_the_same(engine, collector):
    """The collector's oldest generation has its turn as often as it would have had."""
    gc.freeze()  # what other tests keep: the oldest generation is not due before a quarter as much is new
    gc.collect()
    gc.set_threshold(700, 2, 2)
    before = gc.get_stats()[2]["collections"]

    def keeping():
        for _ in range(3000):
            yield Step("keep", keep_some)

    engine.run(keeping)
    assert gc.get_stats()[2]["collections"] > before
