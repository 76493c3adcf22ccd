"""A runtime whose engine is on Temporal: workflows, approvals, promises and the commands, unchanged."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime
from troth.runtime.engine.open import open_engine
from troth.runtime.engine.temporal.address import parse

pytestmark = [pytest.mark.xdist_group("temporal"), pytest.mark.timeout(300)]
PATIENCE = 120

SHOP = """
def charge(order):
    return {"payment": f"pay-{order}"}

def refund(order, result=None):
    with open("refunded", "a") as file:
        file.write(f"{order}\\n")

def ship(order):
    if order == "bad":
        raise LookupError("no such parcel")
    return {"parcel": order}
"""
FLOW = """
troth: 1
name: order
inputs:
  order: string
steps:
  - id: charge
    function: shop:charge
    inputs: {order: inputs.order}
    undo: shop:refund
  - id: agreed
    approval: Ship it?
  - id: ship
    function: shop:ship
    inputs: {order: inputs.order}
on_error: undo
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, temporal_server, postgres_server):
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "order.yaml").write_text(FLOW.lstrip(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_STORE", postgres_server.address())
    monkeypatch.setenv("TROTH_ENGINE", temporal_server.address(heartbeat=5, task=5))
    yield tmp_path
    sys.modules.pop("shop", None)


def opened():
    return Runtime(os.environ["TROTH_STORE"], engine=os.environ["TROTH_ENGINE"])


def troth(*words):
    done = subprocess.run(
        [sys.executable, "-m", "troth", *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stdout + done.stderr


def until(is_so, what):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.05)


def test_a_workflow_is_approved_by_a_command_and_shown_like_any_other(folder):
    """The command knows the engine from `TROTH_ENGINE`; the run belongs to the worker in this process."""
    with opened() as runtime:
        run = runtime.run("order.yaml", {"order": "A7"}, run_id="a7", wait=False, check=False)
        assert run.state.value == "waiting"
        code, text = troth("runs", "approve", "a7")
        assert code == 0, text
        assert runtime.attach("a7").output == {"parcel": "A7"}
    code, text = troth("runs", "list", "--json")
    assert code == 0, text
    (row,) = json.loads(text)
    assert (row["id"], row["state"]) == ("a7", "completed")
    code, text = troth("runs", "show", "a7")
    assert code == 0, text
    assert "charge" in text
    assert "ship" in text


def test_a_workflow_that_fails_is_undone(folder):
    """By whichever worker has the run."""
    with opened() as runtime:
        runtime.run("order.yaml", {"order": "bad"}, run_id="bad", wait=False, check=False)
        runtime.approve("bad", "agreed")
        run = runtime.attach("bad", check=False)
        assert run.state.value == "rolled back"
    assert (folder / "refunded").read_text() == "bad\n"


def test_a_promised_run_reports_back(folder):
    """The promise is written with the run, and kept by the outbox of this process."""
    (folder / "quick.yaml").write_text(
        FLOW.lstrip().replace("  - id: agreed\n    approval: Ship it?\n", "").replace("name: order", "name: quick")
    )
    with opened() as runtime:
        runtime.promises.start("quick.yaml", inputs={"order": "P1"}, promise_id="p1", detach="must")
        delivery = runtime.inbox.take(timeout=PATIENCE)
        assert delivery.promise == "p1"
        assert "P1" in json.dumps(delivery.data)


def test_a_worker_command_carries_out(folder):
    """`troth worker --app` is a worker; whoever began the run may be gone."""
    (folder / "fleet.py").write_text(
        "import os\n"
        "from troth.runtime import Runtime\n"
        "def open_runtime():\n"
        "    runtime = Runtime(os.environ['TROTH_STORE'], engine=os.environ['TROTH_ENGINE'])\n"
        "    runtime.load('order.yaml')\n"
        "    return runtime\n"
    )
    with opened() as runtime:
        runtime.run("order.yaml", {"order": "W1"}, run_id="w1", wait=False, check=False)
    command = [sys.executable, "-m", "troth", "worker", "--app", "fleet:open_runtime"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        try:
            code, text = troth("runs", "approve", "w1")
            assert code == 0, text
            with Runtime(os.environ["TROTH_STORE"], recover=False) as only_looks:
                until(lambda: only_looks.show("w1").state.value == "completed", "the worker has done it")
        finally:
            worker.terminate()
            worker.wait(PATIENCE)


ELSEWHERE = """
import os, sys, time
from troth.runtime import Runtime, Saga

def charge(order):
    return "charged"

def refund(order):
    with open("refunded", "a") as file:
        file.write(order + chr(10))

def wait():
    while not os.path.exists("go"):
        time.sleep(0.05)
    raise ValueError("no parcel")

saga = (
    Saga("an order")
    .step("charge it", do=charge, undo=refund, arguments={"order": "S1"})
    .step("ship it", do=wait, undo=None)
)

if __name__ == "__main__":
    import elsewhere

    runtime = Runtime(os.environ["TROTH_STORE"], engine=os.environ["TROTH_ENGINE"])
    runtime.start("order.yaml", {"order": "W2"}, run_id="w2")
    runtime.start("order.yaml", {"order": "W3"}, run_id="w3")
    runtime.start(elsewhere.saga, run_id="s1")
    while runtime.show("w3").state.value != "waiting" or not runtime.show("s1").done:
        time.sleep(0.05)
    print("begun", flush=True)
    time.sleep(600)
"""


def test_a_worker_comes_to_know_what_was_begun_elsewhere(folder):
    """It lives already, and knows neither the workflow nor the saga; the process that began them is killed."""
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    started = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    command = [sys.executable, "-m", "troth", "worker", "--json"]
    with (
        subprocess.Popen(command, **started) as worker,
        subprocess.Popen([sys.executable, "elsewhere.py"], **started) as begins,
    ):
        try:
            assert begins.stdout.readline() == "begun\n"
            begins.kill()
            (folder / "go").touch()
            for run_id in ("w2", "w3"):
                code, text = troth("runs", "approve", run_id)
                assert code == 0, text
            with Runtime(os.environ["TROTH_STORE"], recover=False) as only_looks:
                for run_id, state in (("w2", "completed"), ("w3", "completed"), ("s1", "rolled back")):
                    until(lambda: only_looks.show(run_id).state.value == state, f"the worker has done {run_id}")
            assert (folder / "refunded").read_text() == "S1\n"
        finally:
            begins.kill()
            worker.terminate()
            worker.wait(PATIENCE)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("temporal://", "names no host", id="no host"),
        pytest.param("temporal://user:secret@host", "a secret does not belong there", id="a secret"),
        pytest.param("temporal://host?lifetime=3", "an option 'lifetime'", id="an option of the store"),
        pytest.param("temporal://host?heartbeat=soon", "0.1 to 3600 seconds", id="no number"),
        pytest.param("temporal://host?queue=a/b", "a name without a slash", id="a slash"),
        pytest.param("temporal://host:port", "cannot be read", id="no port"),
    ],
)
def test_an_address_that_cannot_be_used(address, why):
    """It is told what is wrong with it; nothing is opened, and no secret is repeated."""
    with pytest.raises(MisuseError, match=why) as refused:
        parse(address)
    assert "secret@" not in str(refused.value)


def test_an_address():
    """What is left out has a default."""
    address = parse("temporal://host.example/orders?queue=shop&heartbeat=7&tls=1")
    assert (address.host, address.namespace, address.queue) == ("host.example:7233", "orders", "shop")
    assert (address.heartbeat, address.sticky, address.is_tls) == (7.0, 0.5, True)
    assert address.run_id(address.workflow_id("a/b")) == "a/b"


def test_an_engine_that_is_none_is_refused(tmp_path):
    """Before the store is left open."""
    with pytest.raises(MisuseError, match="There is no engine 'celery://'"):
        Runtime(Path(tmp_path) / "x.db", engine="celery://")
    with pytest.raises(MisuseError, match="There is no engine"):
        open_engine("postgresql://x", None)
