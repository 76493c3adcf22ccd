"""Two workers on two machines: one dies or is stopped, the other goes on, and nothing is written twice."""

import contextlib
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter

import pytest
from tests.runtime.store.postgres.proxy import Proxy

from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.store import RunState, open_store
from troth.runtime.store.postgres.address import parse

WORKER = """
import os, signal, sys, time
from pathlib import Path
from troth.runtime.engine import EmbeddedEngine, Step, current_step
from troth.runtime.store import LeaseLostError, identity
identity._machine = lambda: "another machine"  # nothing can be looked up there: only its heartbeat tells
address, folder = sys.argv[1], Path(sys.argv[2])

def note(name):
    with (folder / "effects").open("a") as file:
        file.write(f"{current_step().key}\\n")
    return name

def held(name):
    note(name)
    print("in the step", flush=True)
    while not (folder / "go").exists():
        time.sleep(0.01)
    return name

def travel():
    a = yield Step("book", note, "book")
    b = yield Step("pay", held, "pay")
    c = yield Step("send", note, "send")
    return [a, b, c]

if __name__ == "__main__":
    engine = EmbeddedEngine(address, recover=False)
    try:
        print(engine.run(travel, run_id="r"), flush=True)
    except LeaseLostError as lost:
        print("lost", flush=True)
"""


@pytest.fixture
def address(postgres_server):
    return postgres_server.address(heartbeat=0.3, lifetime=1.5)


@contextlib.contextmanager
def worker(address, folder, **environ):
    program = folder / "worker.py"
    program.write_text(WORKER)
    with subprocess.Popen(
        [sys.executable, str(program), address, str(folder)], stdout=subprocess.PIPE, text=True, env=environ or None
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def effects(folder):
    return Counter((folder / "effects").read_text().split())


@pytest.fixture
def other(address, tmp_path):
    """A second engine, here, which knows the same decision and does each step at once."""

    def note(name):
        with (tmp_path / "effects").open("a") as file:
            file.write(f"here:{name}\n")
        return f"{name} here"

    def travel():
        a = yield Step("book", note, "book")
        b = yield Step("pay", note, "pay")
        c = yield Step("send", note, "send")
        return [a, b, c]

    @contextlib.contextmanager
    def opened():
        with EmbeddedEngine(address, decisions=[]) as engine:
            engine.register(travel, "travel")
            yield engine

    return opened


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_another_worker_goes_on(address, tmp_path, other, death):
    """With the step that was in flight, under the same key; the steps before it are not done again."""
    with worker(address, tmp_path) as process:
        assert process.stdout.readline() == "in the step\n"
        process.send_signal(death)
        with other() as engine:
            assert engine.result("r", 60) == ["book", "pay here", "send here"]
            record = engine.steps("r")
            if death == signal.SIGSTOP:
                (tmp_path / "go").touch()
                process.send_signal(signal.SIGCONT)
                assert process.stdout.readline() == "lost\n"
            assert engine.steps("r") == record
            assert engine.find("r").result == ["book", "pay here", "send here"]
    assert effects(tmp_path) == Counter({"r:1:book": 1, "r:2:pay": 1, "here:pay": 1, "here:send": 1})


WAITING = """
import sys, time
from troth.runtime.engine import EmbeddedEngine, Wait
from troth.runtime.store import identity
identity._machine = lambda: "another machine"
def patient():
    return (yield Wait("go"))
engine = EmbeddedEngine(sys.argv[1], decisions=[patient])
engine.start(patient, run_id="r")
while engine.find("r").state != "waiting":
    time.sleep(0.01)
print("it waits", flush=True)
time.sleep(600)
"""


def test_whoever_wants_the_result_of_a_run_that_waits_goes_on_with_it(address):
    """Also an engine that looks after nothing by itself, as a runtime's does: the worker that had the run is dead."""

    def patient():
        return (yield Wait("go"))

    with subprocess.Popen([sys.executable, "-c", WAITING, address], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "it waits\n"
        finally:
            process.kill()
        with EmbeddedEngine(address, recover=False) as engine:
            engine.register(patient, "patient")
            engine.signal("r", "go", 7)
            assert engine.result("r", 60) == 7


def test_nobody_takes_over_from_the_living(address, tmp_path, other):
    """A step that takes longer than a lifetime is no death: heartbeats go on beside it."""
    with worker(address, tmp_path) as process, other() as engine:
        assert process.stdout.readline() == "in the step\n"
        time.sleep(3.0)  # twice the lifetime; this is what is on trial, not a wait for something
        assert engine.find("r").state is RunState.RUNNING
        (tmp_path / "go").touch()
        assert process.stdout.readline() == "['book', 'pay', 'send']\n"
    assert not [name for name in effects(tmp_path) if name.startswith("here")]


@pytest.mark.parametrize("place", ["step.begin.written#2", "step.begin.after#2", "run.finish.written#1"])
def test_stopped_in_the_middle_of_a_commit(address, tmp_path, other, place):
    """What it has locked is free when it is taken for dead; awake again, it is refused, or had been kept."""
    (tmp_path / "go").touch()
    name, _, nth = place.partition("#")
    program = WORKER.replace(
        'if __name__ == "__main__":',
        'if __name__ == "__main__":\n    from troth.runtime.store.failpoints import arm\n'
        f'    arm({name!r}, lambda _: (print("stopping", flush=True), os.kill(os.getpid(), signal.SIGSTOP)), nth={nth})',
    )
    (tmp_path / "worker.py").write_text(program)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "worker.py"), address, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = iter(process.stdout.readline, "")
            assert any(line == "stopping\n" for line in lines)
            with other() as engine:
                result = engine.result("r", 60)
                assert result[0] in ("book", "book here")
                record = engine.steps("r")
                process.send_signal(signal.SIGCONT)
                said = [line for line in lines if line != "in the step\n"]
                assert said in (["lost\n"], [f"{result}\n"])
                assert engine.steps("r") == record
        finally:
            process.kill()
    assert max(effects(tmp_path).values()) == 1
    done = Counter(name.rpartition(":")[2] for name in effects(tmp_path).elements())
    assert sum(done.values()) <= 4, "more than the step in flight was done twice"


def test_half_open_connections(address, postgres_server, tmp_path, other):
    """A worker that hears nothing, and is not told so, is taken for dead; what it sends later is refused."""
    schema, options = parse(address).schema, "heartbeat=0.3&lifetime=1.5&sslmode=disable"
    with contextlib.closing(Proxy(postgres_server)) as proxy:
        through = f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?schema={schema}&{options}"
        with worker(through, tmp_path) as process:
            assert process.stdout.readline() == "in the step\n"
            proxy.freeze()
            with other() as engine:
                assert engine.result("r", 60) == ["book", "pay here", "send here"]
                record = engine.steps("r")
                (tmp_path / "go").touch()
                proxy.drop()
                assert process.stdout.readline() == "lost\n"
                assert engine.steps("r") == record
    assert effects(tmp_path) == Counter({"r:1:book": 1, "r:2:pay": 1, "here:pay": 1, "here:send": 1})


def test_a_clock_that_is_an_hour_off(address, tmp_path, other):
    """Neither does its worker seem dead to others, nor do others to it."""
    body = WORKER.replace(
        "import os, signal", "import time as t\nreal = t.time\nt.time = lambda: real() + 3600\nimport os, signal"
    )
    (tmp_path / "worker.py").write_text(body)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "worker.py"), address, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "in the step\n"
            with other() as engine:
                run = engine.find("r")
                assert run.state is RunState.RUNNING
                assert abs(run.created_at - time.time()) < 600
                assert engine.store.orphans(["travel"]) == []
                (tmp_path / "go").touch()
                assert process.stdout.readline() == "['book', 'pay', 'send']\n"
        finally:
            process.kill()


def test_a_worker_takes_only_what_it_knows(address, tmp_path):
    """Runs of other decisions are left to those who know them."""
    with worker(address, tmp_path) as process:
        assert process.stdout.readline() == "in the step\n"
        process.kill()
        process.wait()

        def something_else():
            return (yield Step("x", str, 1))

        with EmbeddedEngine(address, decisions=[]) as engine:
            engine.register(something_else, "something else")
            deadline = time.monotonic() + 60
            while engine.find("r").state is not RunState.INTERRUPTED:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert engine.run("something else") == "1"
            assert engine.find("r").state is RunState.INTERRUPTED


FLEET = """
import sys
from pathlib import Path
from troth.runtime.engine import EmbeddedEngine, Step, current_step
from troth.runtime.store import identity
identity._machine = lambda: sys.argv[3]

def note(number):
    with (Path(sys.argv[2]) / f"effects-{sys.argv[3]}").open("a") as file:
        file.write(f"{current_step().key}\\n")
    return number

def travel(number):
    total = 0
    for step in range(3):
        total += yield Step(f"s{step}", note, number)
    return total

engine = EmbeddedEngine(sys.argv[1], decisions=[travel])
engine.__enter__()
handles = [engine.start(travel, number, run_id=f"{sys.argv[3]}-{number}") for number in range(int(sys.argv[4]))]
print("begun", flush=True)
for handle in handles:
    handle.result(100)
print("done", flush=True)
sys.stdin.readline()
"""


def run_fleet(address, folder, workers, runs):
    """Start `workers`, kill the first in the middle; answers how often each step was done, and the states of runs."""
    (folder / "fleet.py").write_text(textwrap.dedent(FLEET))
    with contextlib.ExitStack() as stack:
        fleet = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(folder / "fleet.py"), address, str(folder), f"m{number}", str(runs)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(workers)
        ]
        try:
            for process in fleet:
                assert process.stdout.readline() == "begun\n"
            fleet[0].kill()
            for process in fleet[1:]:
                assert process.stdout.readline() == "done\n"
            with open_store(address) as store:
                deadline = time.monotonic() + 100
                while True:
                    states = Counter(run.state for run in store.runs(limit=10_000))
                    if states == Counter({RunState.COMPLETED: workers * runs}):
                        break
                    assert time.monotonic() < deadline, states
                    time.sleep(0.1)
        finally:
            for process in fleet:
                process.kill()
    done = Counter()
    for file in folder.glob("effects-*"):
        done += Counter(file.read_text().split())
    return done


def test_a_fleet_loses_nothing(address, tmp_path):
    """None of its runs is lost, and none of their steps done twice, but for those that the dead worker had in flight."""
    done = run_fleet(address, tmp_path, workers=3, runs=10)
    assert len(done) == 3 * 10 * 3
    twice = [key for key, count in done.items() if count > 1]
    assert all(key.startswith("m0-") for key in twice)
    assert all(count <= 2 for count in done.values())


@pytest.mark.soak
def test_a_large_fleet_loses_nothing(postgres_server, tmp_path):
    """Eight workers with two hundred runs each."""
    done = run_fleet(postgres_server.address(), tmp_path, workers=8, runs=200)
    assert len(done) == 8 * 200 * 3
    assert all(key.startswith("m0-") for key, count in done.items() if count > 1)
