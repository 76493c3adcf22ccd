"""Several processes, threads and loops on one file: each run has one owner, and a dead one's run goes on elsewhere."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine, EngineClosedError, ResultTimeoutError, Step, Wait
from troth.runtime.store import RunState
from troth.testing import engine_programs as programs
from troth.testing.engine_programs import DECISIONS, effects


def child(path, body, **kwargs):
    prelude = f"""
        import sys, time, json
        from troth.runtime.engine import EmbeddedEngine
        from troth.testing import engine_programs as programs
        def open_engine(**settings):
            return EmbeddedEngine({str(path)!r}, decisions=programs.DECISIONS, **settings)
    """
    code = textwrap.dedent(prelude) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **kwargs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


@pytest.fixture
def trace(tmp_path):
    return str(tmp_path / "effects")


def until(is_so):
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


OWNER = """
    with open_engine() as engine:
        handle = engine.start(programs.approval, sys.argv[1] if len(sys.argv) > 1 else TRACE, run_id="r")
        while engine.find("r").state != "waiting": time.sleep(0.01)
        print("waiting", flush=True)
        print(json.dumps(handle.result(30)), flush=True)
"""


def test_a_second_process_attaches(path, trace):
    """It waits for the owner's result; the steps run once; its signal reaches the owner in the other process."""
    with child(path, OWNER.replace("TRACE", repr(trace))) as owner:
        assert owner.stdout.readline() == "waiting\n"
        with EmbeddedEngine(path, decisions=DECISIONS) as engine:
            waiting = threading.Thread(target=lambda: results.append(engine.run(programs.approval, trace, run_id="r")))
            results = []
            waiting.start()
            time.sleep(0.1)
            assert engine.find("r").state is RunState.WAITING
            engine.signal("r", "answer", 5)
            waiting.join(20)
            assert results == [5]
            assert json.loads(owner.stdout.readline()) == 5
    assert [name for name, _ in effects(trace)] == ["ask", "done"]


def test_a_killed_owners_run_is_taken_over_while_others_wait(path, trace):
    """The one who was attached goes on by itself, within a second of the kill, without repeating what is recorded."""
    with child(path, OWNER.replace("TRACE", repr(trace))) as owner:
        assert owner.stdout.readline() == "waiting\n"
        with EmbeddedEngine(path, decisions=DECISIONS) as engine:
            engine.signal("r", "unrelated", 1)
            owner.send_signal(signal.SIGKILL)
            owner.wait(10)
            until(lambda: (h := engine.store.holder("run:r")) is not None and h.pid == os.getpid())
            engine.signal("r", "answer", 6)
            assert engine.result("r", 20) == 6
    assert [name for name, _ in effects(trace)] == ["ask", "done"]


WORKING = """
    import threading
    def hang(path):
        programs.note(path, "hang")
        print("hanging", flush=True)
        threading.Event().wait()
    from troth.runtime.engine import Step
    def working(path):
        yield Step("hang", hang, path)
    with open_engine() as engine:
        engine.run(working, TRACE, run_id="r")
"""


def test_a_killed_run_is_not_shown_as_running(path, trace):
    """Interrupted at once, also for a process that does not know its decision and only looks."""
    with child(path, WORKING.replace("TRACE", repr(trace))) as owner:
        assert owner.stdout.readline() == "hanging\n"
        with EmbeddedEngine(path, recover=False) as engine:
            assert engine.find("r").state is RunState.RUNNING
            owner.send_signal(signal.SIGKILL)
            until(lambda: engine.find("r").state is RunState.INTERRUPTED)
            assert [run.id for run in engine.list(states=[RunState.INTERRUPTED])] == ["r"]


def test_a_stopped_owner_that_is_believed_dead_writes_nothing_more(path, trace, monkeypatch):
    """It wakes up, finds that another has the run, and its late answer is refused."""
    body = """
        from troth.runtime.store import LeaseLostError
        from troth.runtime.engine import Step
        def slow(path):
            print("in the step", flush=True)
            sys.stdin.readline()
            return "late"
        def sleepy(path):
            return (yield Step("slow", slow, path))
        engine = open_engine(recover=False)
        try:
            engine.run(sleepy, TRACE, run_id="r")
        except LeaseLostError:
            print("lost", flush=True)
    """
    with child(path, body.replace("TRACE", repr(trace)), stdin=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == "in the step\n"
        owner.send_signal(signal.SIGSTOP)

        def slow(path):
            return "in time"

        def sleepy(path):
            return (yield Step("slow", slow, path))

        monkeypatch.setattr("troth.runtime.store.identity.LIFETIME", 0.0)
        with EmbeddedEngine(path, decisions=[]) as engine:
            engine.register(sleepy, "sleepy")
            assert engine.result("r", 20) == "in time"
            owner.send_signal(signal.SIGCONT)
            owner.stdin.write("\n")
            owner.stdin.flush()
            assert owner.stdout.readline() == "lost\n"
            assert engine.find("r").result == "in time"


def test_threads_of_one_engine_share_a_run(path, trace):
    """Sixteen threads ask for the same run: it runs once, all get its result."""
    results = []
    with EmbeddedEngine(path, decisions=DECISIONS) as engine:
        barrier = threading.Barrier(16)

        def ask():
            barrier.wait()
            results.append(engine.run(programs.order, trace, run_id="r"))

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert results == [["one", "two", "three"]] * 16
    assert len(effects(trace)) == 3


def test_an_engine_after_fork(path, trace):
    """The child is another owner: it attaches to what the parent runs, and runs its own."""
    with EmbeddedEngine(path, decisions=DECISIONS) as engine:
        engine.run(programs.order, trace, run_id="before")
        handle = engine.start(programs.approval, trace, run_id="parents")
        until(lambda: engine.find("parents").state is RunState.WAITING)
        pid = os.fork()
        if pid == 0:
            try:
                assert engine.run(programs.order, trace, run_id="childs") == ["one", "two", "three"]
                assert engine.store.holder("run:parents").pid == os.getppid()
                engine.signal("parents", "answer", "from the child")
                assert engine.result("parents", 20) == "from the child"
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert handle.result(20) == "from the child"
        assert engine.run(programs.order, trace, run_id="after") == ["one", "two", "three"]


def test_closing_interrupts_and_lets_go(path, trace):
    """Bounded and idempotent; who waits is told; the next engine goes on at once."""
    engine = EmbeddedEngine(path, decisions=DECISIONS)
    engine.start(programs.waits_for_ever, trace, "async step", run_id="r")
    until(lambda: [name for name, _ in effects(trace)] == ["begin", "hang"])
    told = []

    def wait():
        try:
            engine.result("r")
        except EngineClosedError as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.05)
    engine.close()
    engine.close()
    waiting.join(10)
    assert len(told) == 1
    with pytest.raises(EngineClosedError):
        engine.run(programs.order, trace)
    with EmbeddedEngine(path, recover=False) as other:
        assert other.find("r").state is RunState.INTERRUPTED
        assert other.store.holder("run:r") is None


def test_waiting_at_a_closed_engine(path, trace):
    """Who begins to wait, or looks again, after the store was closed is told the same as who waited before."""
    engine = EmbeddedEngine(path, decisions=DECISIONS)
    engine.start(programs.waits_for_ever, trace, "async step", run_id="r")
    engine.close()
    with pytest.raises(EngineClosedError, match="The run is kept"):
        engine.result("r")
    with pytest.raises(EngineClosedError, match="The run is kept"):
        asyncio.run(engine.aresult("r"))


def test_runs_of_a_loop_that_ended_go_on_at_the_next(path, trace):
    """Two successive loops: what the first left behind is interrupted, not lost, and taken up by the second."""

    async def first():
        await engine.astart(programs.waits_for_ever, trace, "async step", run_id="r")
        while [name for name, _ in effects(trace)] != ["begin", "hang"]:
            await asyncio.sleep(0.005)

    async def second():
        await engine.acancel("r")
        return (await engine.afind("r")).state

    with EmbeddedEngine(path, decisions=DECISIONS, recover=False) as engine:
        asyncio.run(first())
        assert engine.find("r").state is RunState.INTERRUPTED
        assert asyncio.run(second()) is RunState.INTERRUPTED
    with EmbeddedEngine(path, decisions=DECISIONS) as engine:
        until(lambda: engine.find("r").state is RunState.CANCELLED)
    assert effects(trace)[0][0] == "begin"
    assert effects(trace)[-1][0] == "undo"


def test_a_cancellation_from_another_process_reaches_a_step_in_flight(path, trace):
    """Without the owner's help, within a tick."""
    body = """
        with open_engine(recover=False) as engine:
            print(engine.cancel("r"), flush=True)
    """
    with EmbeddedEngine(path, decisions=DECISIONS) as engine:
        handle = engine.start(programs.waits_for_ever, trace, "async step", run_id="r")
        until(lambda: [name for name, _ in effects(trace)] == ["begin", "hang"])
        with child(path, body) as other:
            assert other.stdout.readline() == "True\n"
        with pytest.raises(Exception, match="was cancelled"):
            handle.result(10)


def test_waiting_for_a_result_with_a_limit(path):
    """The waiting ends, the run does not."""

    def waits():
        return (yield Wait("go"))

    with EmbeddedEngine(path) as engine:
        handle = engine.start(waits, run_id="r")
        with pytest.raises(ResultTimeoutError, match="It is still running"):
            handle.result(0.05)
        with pytest.raises(ResultTimeoutError):
            asyncio.run(handle.aresult(0.05))
        engine.signal("r", "go", 1)
        assert asyncio.run(handle.aresult(10)) == 1
