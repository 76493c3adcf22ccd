"""What a loop does not wait for: the disk, a long record, sync steps, and threads that are stuck."""

import asyncio
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine, EngineClosedError, RunCancelledError, RunFailedError, Step
from troth.runtime.store import RunState, SqliteStore
from troth.runtime.store.sqlite import writer
from troth.testing import engine_programs as programs


@pytest.fixture
def committing(monkeypatch):
    """The names of the threads in which something was committed."""
    seen = set()

    def noted(method):
        def wrapper(*args):
            seen.add(threading.current_thread().name)
            return method(*args)

        return wrapper

    for name in ("_alone", "_locked"):
        monkeypatch.setattr(writer.SqliteWriter, name, noted(getattr(writer.SqliteWriter, name)))
    return seen


def test_with_full_nothing_is_committed_on_the_loop(tmp_path, committing):
    """Whatever a task asks of an engine: to open, run, start, signal, fork, cancel, be interrupted, and close."""
    path = str(tmp_path / "effects")

    async def main(store):
        committing.clear()
        async with EmbeddedEngine(store, decisions=programs.DECISIONS) as engine:
            await engine.arun(programs.order, path)
            await (await engine.astart(programs.fans_out, path, 3)).aresult(20)
            waiting = await engine.astart(programs.approval, path, run_id="waits")
            await engine.asignal("waits", "answer", 1)
            await waiting.aresult(20)
            fork = await engine.afork("waits", 1)
            await engine.asignal(fork.id, "answer", 2)
            await fork.aresult(20)
            hangs = asyncio.create_task(engine.arun(programs.waits_for_ever, path, "async step", run_id="hangs"))
            while not [step for step in await engine.asteps("hangs") if step.name == "hang"]:
                await asyncio.sleep(0.005)
            hangs.cancel()
            await asyncio.wait([hangs])
            await engine.acancel("hangs")
            with pytest.raises(RunCancelledError):
                await engine.aresult("hangs", 20)

    with SqliteStore(tmp_path / "troth.db", synchronous="FULL") as store:
        asyncio.run(main(store))
        assert committing, "nothing was noted"
        assert threading.current_thread().name not in committing


def test_a_long_record_is_read_beside_the_loop(tmp_path):
    """To go on with a run of many steps does not hold up the other tasks until all of them are read."""

    def long(steps):
        for number in range(steps):
            yield Step("one", abs, number)
        return steps

    async def main(engine):
        reading = asyncio.create_task(engine.afork("long", 3000))
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, await (await reading).aresult(30)

    with EmbeddedEngine(tmp_path / "troth.db") as engine:
        engine.run(long, 3000, run_id="long")
        turns, result = asyncio.run(main(engine))
    assert result == 3000
    assert turns > 10


def test_stuck_threads_do_not_keep_anybody_from_looking(tmp_path):
    """At the cap new sync steps are refused; to find, list and read is still possible."""
    release = threading.Event()

    def stuck():
        return (yield Step("stuck", release.wait, timeout=0.05))

    async def main(engine):
        for number in range(2):
            with pytest.raises(RunFailedError, match="did not return within"):
                await engine.arun(stuck, run_id=f"r{number}")
        with pytest.raises(RunFailedError, match="the maximum, are stuck"):
            await engine.arun(stuck, run_id="refused")
        steps = await engine.asteps("refused")
        return (await engine.afind("refused")).state, len(await engine.alist()), steps[0].error["outcome"]

    with EmbeddedEngine(tmp_path / "troth.db", abandoned_threads=2) as engine:
        assert asyncio.run(main(engine)) == (RunState.FAILED, 3, "refused")
        release.set()


@pytest.mark.parametrize("way", ["run", "start"])
def test_closed_in_the_middle_of_a_step(tmp_path, way):
    """Whoever carries the run out, or waits for it, is told that the engine was closed; the next one goes on."""
    begun, release, told = threading.Event(), threading.Event(), []

    def hang():
        begun.set()
        release.wait(20)
        return "in time"

    def decision():
        return (yield Step("hang", hang))

    def carry_out():
        try:
            engine.run(decision, run_id="r") if way == "run" else engine.start(decision, run_id="r").result()
        except EngineClosedError as error:
            told.append(str(error))

    engine = EmbeddedEngine(tmp_path / "troth.db")
    thread = threading.Thread(target=carry_out)
    thread.start()
    assert begun.wait(20)
    before = time.monotonic()
    engine.close()
    assert time.monotonic() - before < 15
    release.set()
    thread.join(20)
    assert "run 'r'" in told[0]
    with EmbeddedEngine(tmp_path / "troth.db", decisions=[]) as engine:
        assert engine.run(decision, run_id="r") == "in time"
