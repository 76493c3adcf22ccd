"""`troth worker`: real processes that carry on what others left, and end when they are asked to."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.cli import app
from troth.runtime import Runtime, arun_workflow, run_workflow
from troth.runtime.engine import EmbeddedEngine

PATIENCE = 60  # seconds on a busy machine, after which a test that hangs fails
STEPS = """
import os, time
from pathlib import Path

HERE = Path(__file__).parent

def note(word):
    with (HERE / "done").open("a") as file:
        file.write(f"{word}\\n")
    return word

def stall():
    note("stall")
    deadline = time.monotonic() + 60
    while not (HERE / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return "stalled"

async def astall():
    import asyncio
    note("stall")
    deadline = time.monotonic() + 60
    while not (HERE / "go").exists() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return "stalled"
"""
HEAD = "troth: 1\nname: {name}\nsteps:\n"
FLOWS = {
    "stall": '  - {id: a, function: "steps:note", inputs: {word: {value: a}}}\n  - {id: b, function: "steps:astall"}\n',
    "sync": '  - {id: b, function: "steps:stall"}\n',
    "nap": '  - {id: z, sleep: 300ms}\n  - {id: b, function: "steps:note", inputs: {word: {value: woke}}}\n',
    "long": "  - {id: z, sleep: 1h}\n",
    "ask": '  - {id: ok, approval: "Go?"}\n  - {id: b, function: "steps:note", inputs: {word: {value: asked}}}\n',
    "agent": "  - {id: a, agent: nobody, inputs: {prompt: {value: x}}}\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    for name, steps in FLOWS.items():
        (tmp_path / f"{name}.yaml").write_text(HEAD.format(name=name) + steps, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TROTH_STORE", raising=False)
    yield tmp_path
    sys.modules.pop("steps", None)


@pytest.fixture
def troth(folder, capsys):
    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def begin(folder):
    """Starts `troth …` as a process of its own; whatever is left of it is killed in the end."""
    begun = []

    def start(*argv):
        process = subprocess.Popen(
            [sys.executable, "-m", "troth", *argv],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def until(is_so, what):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s"
        time.sleep(0.02)


def done(folder):
    file = folder / "done"
    return file.read_text().split() if file.exists() else []


def state(troth, run_id):
    return json.loads(troth("runs", "show", run_id, "--json")[1])["state"]


def test_a_worker_carries_on_what_a_killed_process_left(folder, troth, begin):
    """What was done is not repeated, what was in flight is done again."""
    running = begin("run", "stall.yaml", "--id", "r1")
    until(lambda: "stall" in done(folder), "the step is at work")
    running.kill()
    running.wait(PATIENCE)
    assert state(troth, "r1") == "interrupted"
    (folder / "go").touch()
    assert begin("worker", "--once").wait(PATIENCE) == 0
    assert state(troth, "r1") == "completed"
    assert done(folder) == ["a", "stall", "stall"]


@pytest.mark.parametrize(
    ("flow", "number"),
    [
        pytest.param("stall", signal.SIGTERM, id="SIGTERM in an async step"),
        pytest.param("sync", signal.SIGTERM, id="SIGTERM in a sync step"),
        pytest.param("stall", signal.SIGINT, id="Ctrl-C"),
    ],
)
def test_a_worker_ends_when_it_is_asked_to(folder, troth, begin, flow, number):
    """At once, whatever it is at; the next one continues from there."""
    with Runtime(folder / ".troth/runs.db", recover=False) as runtime:
        runtime.start(folder / f"{flow}.yaml", run_id="r1")
        until(lambda: "stall" in done(folder), "the step is at work")
    worker = begin("worker")
    until(lambda: done(folder).count("stall") == 2, "the worker is at work")
    worker.send_signal(number)
    assert worker.wait(PATIENCE) == (0 if number == signal.SIGTERM else 130)
    assert "the next worker resumes them" in worker.stderr.read()
    assert state(troth, "r1") == "interrupted"
    (folder / "go").touch()
    assert begin("worker", "--idle", "0.3").wait(PATIENCE) == 0
    assert state(troth, "r1") == "completed"


def test_what_sleeps_is_overdue_until_a_worker_comes(folder, troth):
    """`runs show` and `runs list` say so, and how to go on; the worker does."""
    with Runtime(folder / ".troth/runs.db") as runtime:
        runtime.start(folder / "nap.yaml", run_id="r1")
        until(lambda: runtime.show("r1").state == "waiting", "it sleeps")
    until(lambda: "overdue: it can continue since" in troth("runs", "show", "r1")[1], "it is overdue")
    out = troth("runs", "show", "r1")[1]
    assert "no process is running it" in " ".join(out.split())
    assert "troth runs resume r1\n    continue; its wait is over" in out
    assert "troth worker\n" in out
    assert "overdue by" in troth("runs", "list")[1]
    assert "overdue" in troth("runs", "show", "r1", "--html", "-")[1]
    commands = [one["command"] for one in json.loads(troth("runs", "show", "r1", "--json")[1])["commands"]]
    assert commands == ["troth runs resume r1", "troth worker"]
    code, out, _ = troth("worker", "--once")
    assert (code, out) == (0, "▶ resumed   r1\n✓ completed  r1\n")
    assert done(folder) == ["woke"]


def test_what_still_has_to_wait_is_left_to_wait(folder, troth):
    """`--once` does not stay for it, and `runs show` says when it goes on and who does it."""
    with Runtime(folder / ".troth/runs.db") as runtime:
        for flow in ("long", "ask"):
            runtime.start(folder / f"{flow}.yaml", run_id=flow)
            until(lambda flow=flow: runtime.show(flow).state == "waiting", "it waits")
    assert troth("worker", "--once")[0] == 0
    out = troth("runs", "show", "long")[1]
    assert "continues at" in out
    assert "overdue" not in out
    assert "troth worker\n    continue it when it is due" in out
    assert "troth runs approve ask" in troth("runs", "show", "ask")[1]


def test_an_answer_wakes_a_run_that_a_worker_has(folder, troth, begin):
    """Whoever approves need not go on; an answer that nobody has taken yet is shown as one."""
    with Runtime(folder / ".troth/runs.db") as runtime:
        runtime.start(folder / "ask.yaml", run_id="r1")
        until(lambda: runtime.show("r1").state == "waiting", "it asks")
    assert troth("runs", "approve", "r1", "--no-resume")[0] == 0
    out = troth("runs", "show", "r1")[1]
    assert "was answered at" in out
    assert "continue; its question is answered" in out
    worker = begin("worker", "--json")
    until(lambda: done(folder) == ["asked"], "the worker goes on")
    until(lambda: state(troth, "r1") == "completed", "it is completed")
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate(timeout=PATIENCE)
    assert (worker.returncode, err) == (0, "")
    assert json.loads(out.splitlines()[0]) == {"run": "r1", "what": "resumed", "state": None, "why": ""}


SHOP = """
from troth.runtime import Runtime
from troth.runtime.engine import Step, Wait

def charge(order):
    return f"charged {order}"

def fulfil(order):
    paid = yield Step("charge", charge, order)
    return [paid, (yield Wait("agreed"))]

def open_runtime():
    runtime = Runtime(".troth/runs.db")
    runtime.register(fulfil)
    return runtime
"""


def test_a_run_of_a_decision_is_for_workers_that_know_it(folder, troth, begin):
    """A worker without the runtime leaves it alone; one with it carries it on, and tells of it."""
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    namespace = {}
    exec(SHOP, namespace)
    (folder / ".troth").mkdir()
    with namespace["open_runtime"]() as runtime:
        runtime.engine.start(namespace["fulfil"], "A-7", run_id="order")
        until(lambda: runtime.engine.find("order").state == "waiting", "it waits")
    with EmbeddedEngine(folder / ".troth/runs.db", recover=False) as engine:
        engine.signal("order", "agreed", True)
        assert troth("worker", "--once")[:2] == (0, "")
        assert engine.find("order").state == "waiting"
        worker = begin("worker", "--app", "shop:open_runtime", "--once", "--json")
        out, err = worker.communicate(timeout=PATIENCE)
        assert (worker.returncode, err) == (0, "")
        assert [(line["what"], line["state"]) for line in map(json.loads, out.splitlines())] == [
            ("resumed", None),
            ("over", "completed"),
        ]
        assert engine.result("order") == ["charged A-7", True]
    code, _, err = troth("runs", "show", "order")
    assert (code, "`fulfil`, which is not a workflow" in err) == (2, True)


def test_one_that_cannot_go_on_here_stops_nobody_else(folder, troth):
    """It is told once, with what is missing, and left as it is."""
    with Runtime(folder / ".troth/runs.db", agents={"nobody": lambda prompt: prompt}, recover=False) as runtime:
        (folder / "agent.yaml").write_text(HEAD.format(name="agent") + FLOWS["ask"] + FLOWS["agent"], encoding="utf-8")
        runtime.run(folder / "agent.yaml", run_id="r1", wait=False)
        runtime.approve("r1")
    with Runtime(folder / ".troth/runs.db") as runtime:
        runtime.start(folder / "nap.yaml", run_id="r2")
    code, out, err = troth("worker", "--idle", "0.6")
    assert (code, "✓ completed  r2" in out) == (0, True)
    assert err.count("r1 cannot be resumed here") == 1
    assert "there is no agent 'nobody' in this runtime" in err
    assert state(troth, "r1") == "waiting"


def test_two_workers_share_the_runs(folder, troth, begin):
    """Each run is carried out by one of them."""
    with Runtime(folder / ".troth/runs.db") as runtime:
        for number in range(20):
            runtime.start(folder / "ask.yaml", run_id=f"r{number}")
        until(lambda: all(one.state == "waiting" for one in runtime.runs(limit=20)), "they ask")
    for number in range(20):
        troth("runs", "approve", f"r{number}", "--no-resume")
    workers = [begin("worker", "--idle", "0.3") for _ in range(2)]
    assert [worker.wait(PATIENCE) for worker in workers] == [0, 0]
    assert done(folder) == ["asked"] * 20


@pytest.mark.parametrize("how", ["killed", "let go"])
def test_the_time_without_a_process_is_a_gap(folder, troth, begin, how):
    """In the terminal, on the page and for a machine; not work, and not waiting either."""
    running = begin("run", "stall.yaml", "--id", "r1")
    until(lambda: "stall" in done(folder), "the step is at work")
    running.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
    running.wait(PATIENCE)
    gone = time.time()
    assert state(troth, "r1") == "interrupted"
    (folder / "go").touch()
    back = time.time()
    assert troth("runs", "resume", "r1")[0] == 0
    with Runtime(folder / ".troth/runs.db", recover=False) as runtime:
        step = runtime.show("r1").step("b")
    assert [what for _, _, what in step.spans()] == ["work", "gone", "work"]
    assert step.unattended >= back - gone
    assert (step.waited, step.worked) == (0, pytest.approx(step.took - step.unattended))
    out = troth("runs", "show", "r1")[1]
    assert "without a process" in out
    assert "█ working  ░ waiting  · no process" in out
    html = troth("runs", "show", "r1", "--html", "-")[1]
    assert '<line class="gone"' in html
    assert "b: no process for" in html


def test_a_killed_run_is_left_to_whoever_is_asked_to_go_on_with_it(folder, troth, begin):
    """`run_workflow`, `arun_workflow` and `troth run` do the one run they are asked for; the worker does the others."""
    running = begin("run", "sync.yaml", "--id", "old")
    until(lambda: done(folder) == ["stall"], "the step is at work")
    running.kill()
    running.wait(PATIENCE)
    (folder / "go").touch()
    assert run_workflow("sync.yaml", run_id="one").succeeded
    assert asyncio.run(arun_workflow("sync.yaml", run_id="two")).succeeded
    assert troth("run", "sync.yaml", "--id", "three")[0] == 0
    assert (state(troth, "old"), done(folder)) == ("interrupted", ["stall"] * 4)
    assert run_workflow("sync.yaml", run_id="four", recover=True).succeeded
    assert (state(troth, "old"), done(folder)) == ("completed", ["stall"] * 6)


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
def test_a_span_that_is_none(troth, seconds):
    """A sentence, and nothing is done."""
    code, _, err = troth("worker", f"--idle={seconds}")
    assert (code, "not a duration" in err) == (2, True)
    assert not Path(".troth").exists()
