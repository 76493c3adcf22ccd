"""Sync work beside a loop: bounded, named, with context; given up when it hangs, and refused when too much hangs."""

import asyncio
import contextvars
import inspect
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine, RunFailedError, Step, Together
from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool

WHO = contextvars.ContextVar("WHO", default="nobody")


@pytest.fixture
def release():
    event = threading.Event()
    yield event
    event.set()


def one(call, **settings):
    def decision():
        return (yield Step("step", call, **settings))

    return decision


def test_a_sync_step_runs_on_the_callers_own_thread(engine):
    """So Ctrl-C works, and code that is bound to its thread does."""
    assert engine.run(one(lambda: threading.current_thread().name)) == threading.current_thread().name


@pytest.mark.parametrize("way", ["arun", "start", "run with a timeout"])
def test_a_sync_step_beside_a_loop_runs_in_a_named_thread(engine, way):
    """In each of the ways that must not block somebody else."""
    decision = one(lambda: threading.current_thread().name, timeout=5 if "timeout" in way else None)
    if way == "arun":
        name = asyncio.run(engine.arun(decision))
    elif way == "start":
        name = engine.start(decision).result(10)
    else:
        name = engine.run(decision)
    assert name.startswith("troth-step-")


@pytest.mark.parametrize("timeout", [None, 5])
def test_context_variables_reach_every_step(engine, timeout):
    """On the caller's thread, in a worker thread, on the loop."""

    async def awho():
        return WHO.get()

    WHO.set("me")
    for call in (WHO.get, awho):
        decision = one(call, timeout=timeout)
        assert engine.run(decision) == "me"
        assert asyncio.run(engine.arun(decision)) == "me"
    WHO.set("nobody")


def test_the_loop_goes_on_while_a_sync_step_works(engine, release):
    """Other tasks run meanwhile, however long it takes."""

    async def main():
        run = asyncio.create_task(engine.arun(one(lambda: release.wait(20))))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not run.done()
        release.set()
        return await run

    assert asyncio.run(main()) is True


@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_thread_that_hangs_is_abandoned_and_counted(engine, release, caplog, way):
    """The caller gets its timeout; the thread is named; when it comes back it is not counted any more."""
    decision = one(lambda: release.wait(20), timeout=0.05)
    with pytest.raises(RunFailedError, match=r"is abandoned\. Whether its effect happened is unknown"):
        engine.run(decision, run_id="r") if way == "run" else asyncio.run(engine.arun(decision, run_id="r"))
    assert [stuck.partition(" (")[0] for stuck in engine.workers.abandoned] == ["step 'step' of run 'r'"]
    assert "is abandoned (1 of at most 16)" in caplog.text
    release.set()
    deadline = time.monotonic() + 10
    while engine.workers.abandoned:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert engine.steps("r")[0].attempts[0].outcome == "timeout"


def test_at_the_cap_new_sync_work_is_refused(tmp_path, release):
    """Loudly, naming what hangs; async work and sync work on the caller's own thread go on."""
    with EmbeddedEngine(tmp_path / "troth.db", abandoned_threads=2) as engine:
        stuck = one(lambda: release.wait(20), timeout=0.01)
        for _ in range(2):
            with pytest.raises(RunFailedError, match="abandoned"):
                engine.run(stuck)
        with pytest.raises(RunFailedError, match="2 threads, the maximum, are stuck") as refused:
            engine.run(one(lambda: 1, timeout=5))
        assert refused.value.error["outcome"] == "refused"
        assert engine.run(one(lambda: 1)) == 1
        release.set()


def test_at_the_cap_what_waits_for_a_thread_is_refused_too(tmp_path, release):
    """Otherwise each that is given up would be followed by the next, as many as there are."""
    decision = one(lambda: release.wait(30), timeout=0.1)

    async def main(engine):
        return await asyncio.gather(*(engine.arun(decision) for _ in range(12)), return_exceptions=True)

    with EmbeddedEngine(tmp_path / "troth.db", threads=2, abandoned_threads=3) as engine:
        found = [str(error) for error in asyncio.run(main(engine))]
    given_up = sum("is abandoned" in error for error in found)
    refused = sum("the maximum, are stuck" in error for error in found)
    assert (given_up + refused, 3 <= given_up <= 4) == (12, True), found


def test_threads_are_bounded(tmp_path):
    """Two hundred sync steps at once use as many threads as allowed, and each runs."""
    seen = set()

    def work(number):
        seen.add(threading.current_thread().name)
        time.sleep(0.001)
        return number

    def many():
        return (yield Together.of(Step("work", work, number) for number in range(200)))

    with EmbeddedEngine(tmp_path / "troth.db", threads=4) as engine:
        assert asyncio.run(engine.arun(many)) == list(range(200))
        assert 1 <= len(seen) <= 4


def test_a_queued_step_has_its_whole_time(tmp_path):
    """The time spent waiting for a thread is not the step's."""

    def work():
        time.sleep(0.1)
        return True

    def many():
        return (yield Together.of(Step("work", work, timeout=0.5) for _ in range(10)))

    with EmbeddedEngine(tmp_path / "troth.db", threads=1) as engine:
        assert asyncio.run(engine.arun(many)) == [True] * 10


async def obstinate():
    for _ in range(2):
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            continue


async def blocking():
    time.sleep(0.2)
    return "done"


async def own_timeout():
    raise TimeoutError("the peer's")


async def own_cancellation():
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("call", "outcome", "says"),
    [
        pytest.param(obstinate, "timeout", "ignores its cancellation", id="swallows its cancellation"),
        pytest.param(blocking, "late", "during which it blocked the loop", id="blocks the loop and returns late"),
        pytest.param(own_timeout, "failed", "the peer's", id="raises a TimeoutError of its own"),
        pytest.param(own_cancellation, "failed", "", id="raises a CancelledError of its own"),
        pytest.param(lambda: exec("raise SystemExit(3)"), "failed", "3", id="raises SystemExit"),
    ],
)
@pytest.mark.filterwarnings("ignore::troth.bridge.LeftoverTaskWarning")
@pytest.mark.parametrize("way", ["run", "arun"])
def test_async_steps_that_misbehave(engine, call, outcome, says, way, caplog):
    """None of them is recorded as success, none ends the program, and each is called by its name."""
    decision = one(call, timeout=0.1)
    with pytest.raises(RunFailedError) as failed:
        engine.run(decision) if way == "run" else asyncio.run(engine.arun(decision))
    assert failed.value.error["outcome"] == outcome
    assert says in failed.value.error["message"]


@pytest.mark.parametrize(
    "is_late", [True, False], ids=["given up before it returned", "returned before it was given up"]
)
def test_a_coroutine_that_nobody_takes_is_closed(release, is_late):
    """It has not begun, and nobody will await it; Python would call it lost."""

    async def never():
        raise AssertionError

    coroutine = never()

    def give_back():
        release.wait(60)
        return coroutine

    pool = WorkerPool(limit=1)
    job = pool.submit(Job("slow", give_back))
    if is_late:
        assert not job.wait(0.01)
        assert pool.abandon(job)
        release.set()
        assert job.wait(60)
    else:
        release.set()
        assert job.wait(60)
        job.disown()
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    pool.close()
