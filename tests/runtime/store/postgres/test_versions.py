"""Two versions of a program share a store: each worker takes what it can go on with, leaves the rest, and says why."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine
from troth.runtime.store import RunState, open_store

PROGRAM = """
import os
from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine import Step, Wait

def pack(order):
    return f"{VERSION} packed {order}"

def fulfil(order):
    packed = yield Step("pack", pack, order)
    return [packed, (yield Wait("agreed"))]

def only_new(order):
    yield Wait("agreed")
    return (yield Step("pack", pack, order))

def hold(path):
    import time
    while not os.path.exists(path):
        time.sleep(0.01)
    return "held"

def open_runtime():
    runtime = Runtime(os.environ["TROTH_STORE"])
    runtime.register(fulfil)
    if NEW:
        runtime.register(only_new)
    return runtime

def order(path):
    return Workflow("order", step("pack", function=pack, inputs={"order": {"value": "A-7"}}),
                    step("hold", function=hold, inputs={"path": {"value": path}}))
"""


@pytest.fixture
def address(postgres_server):
    return postgres_server.address(heartbeat=0.3, lifetime=1.5)


@pytest.fixture
def begin(address, tmp_path):
    """Start a program in the folder of a version, with the lines that it prints; it is killed in the end."""
    processes = []
    for name, constants in {"old": 'VERSION, NEW = "old", False', "new": 'VERSION, NEW = "new", True'}.items():
        (tmp_path / name).mkdir()
        # The constant stands in the function, whose code is what is compared.
        text = PROGRAM.replace("{VERSION}", name)
        (tmp_path / name / "shop.py").write_text(f"{constants}\n{text}")

    def start(version, *command):
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path / version,
            env={**os.environ, "TROTH_STORE": address, "PYTHONPATH": "."},
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = []
        reading = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True)
        reading.start()
        processes.append((process, reading))
        return process, lines

    yield start
    for process, reading in processes:
        process.kill()
        process.wait()
        reading.join(30)
        process.stdout.close()


def until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


WORKER = ("-m", "troth", "worker", "--app", "shop:open_runtime", "--json")


BEGIN = """
import shop
with shop.open_runtime() as runtime:
    for decision, run_id in ((shop.fulfil, "both"), (shop.only_new, "new")):
        runtime.engine.start(decision, "A-7", run_id=run_id)
"""


def test_a_decision_that_only_the_new_version_has(begin, address):
    """The old worker takes up what it knows, and leaves the rest alone, though nobody else is there."""
    assert begin("new", "-c", BEGIN)[0].wait(60) == 0
    with EmbeddedEngine(address, recover=False) as engine:
        for run_id in ("both", "new"):
            engine.signal(run_id, "agreed", True)
        old, told = begin("old", *WORKER)
        until(lambda: engine.find("both").state is RunState.COMPLETED)
        until(lambda: len(told) == 2)  # that it was taken up, and that it is over
        assert engine.store.holder("run:new") is None
        old.terminate()
        assert old.wait(60) == 0
        assert {json.loads(line)["run"] for line in told} == {"both"}
        begin("new", *WORKER)
        until(lambda: engine.find("new").state is RunState.COMPLETED)
        assert engine.result("new") == "new packed A-7"


def test_a_step_that_is_done_was_done_by_other_code(begin, address, tmp_path):
    """The new worker leaves the run, and says why; the old one goes on with it."""
    go = tmp_path / "go"
    program = f"import shop; r = shop.open_runtime(); r.run(shop.order({str(go)!r}), run_id='r')"
    with open_store(address) as store:
        first, _ = begin("old", "-c", program)
        until(lambda: store.run("r") is not None and len(store.steps("r")) == 2)
        first.kill()
        first.wait()
        _, told = begin("new", *WORKER)
        until(lambda: told)
        news = json.loads(told[0])
        assert (news["run"], news["what"]) == ("r", "cannot continue")
        assert "pack" in news["why"]
        go.touch()
        assert store.run("r").state is RunState.INTERRUPTED
        begin("old", *WORKER)
        until(lambda: store.run("r").state is RunState.COMPLETED)
        assert [step.result for step in store.steps("r")] == ["old packed A-7", "held"]
