"""An approval's answer counts until its timeout, and not after it, whoever is there to look; the deadline is shown."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine.embedded import drivers
from troth.runtime.store import SqliteStore
from troth.runtime.workflows.record.report_json import as_json
from troth.runtime.workflows.render.html import page
from troth.runtime.workflows.render.summary import explain
from troth.runtime.workflows.render.text import draw

MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


class Clock:
    """A clock that a test can set."""

    def __init__(self):
        self.stands_at = None

    def __call__(self):
        return time.time() if self.stands_at is None else self.stands_at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def runtime(tmp_path, clock):
    with SqliteStore(tmp_path / "runs.db", clock=clock) as store, Runtime(store) as opened:
        yield opened


def asking(**more):
    return Workflow("w", step("ok", approval="Go?", timeout="100s", **more), step("z", function=lambda: "went"))


def until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- real processes


def troth(folder, *words):
    command = [sys.executable, "-m", "troth", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def ask(folder, timeout):
    (folder / "shop.py").write_text("def ship():\n    open('shipped', 'w').close()\n")
    (folder / "ap.yaml").write_text(
        textwrap.dedent(f"""
        troth: 1
        name: ap
        steps:
          - {{id: ok, approval: "Go?", timeout: {timeout}}}
          - {{id: ship, function: "shop:ship"}}
        """)
    )
    asked = troth(folder, "run", "ap.yaml", "--id", "q", "--store", "runs.db", "--json")
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


def test_a_late_yes_from_the_command_line(tmp_path):
    """Nobody carries the run out when its time is over; the yes after that is refused, and the run goes on with a no."""
    run = ask(tmp_path, "2s")
    deadline = run["steps"][0]["deadline"]
    until(lambda: time.time() > deadline)
    shown = troth(tmp_path, "runs", "show", "q", "--store", "runs.db").stdout
    assert re.search(r"could be answered until .*, .* ago; no answer counts as a refusal", shown), shown
    assert "troth runs resume q" in shown
    assert "approve" not in shown
    late = troth(tmp_path, "runs", "approve", "q", "--store", "runs.db")
    assert late.returncode == 2
    assert "the question of 'ok' could be answered until" in late.stderr
    assert MOMENT.search(late.stderr)
    assert "troth runs resume q --store runs.db" in late.stderr
    went_on = troth(tmp_path, "runs", "resume", "q", "--store", "runs.db")
    assert (went_on.returncode, "no answer came within 2s" in went_on.stderr) == (1, True), went_on.stderr
    again = troth(tmp_path, "runs", "approve", "q", "--store", "runs.db")
    assert (again.returncode, "could be answered until" in again.stderr) == (2, True), again.stderr
    assert "The run is failed." in again.stderr
    assert not (tmp_path / "shipped").exists()


PROGRAM = """
from troth.runtime import Runtime, Workflow, step
flow = Workflow("w", step("ok", approval="Go?", timeout="6s"), step("z", function=print))
with Runtime("runs.db") as runtime:
    runtime.run(flow, run_id="q")
"""


def test_a_yes_in_time_to_a_killed_process(tmp_path):
    """It counts although nobody looks before the time is up."""
    flow = Workflow("w", step("ok", approval="Go?", timeout="6s"), step("z", function=print))
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        until((tmp_path / "runs.db").exists)
        with Runtime(tmp_path / "runs.db", recover=False) as runtime:
            until(lambda: (run := runtime.engine.find("q")) is not None and run.state == "waiting")
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
            runtime.approve("q", by="ann")
            deadline = runtime.show("q").step("ok").deadline
            until(lambda: time.time() > deadline)
            assert runtime.resume("q", flow).succeeded
            assert runtime.show("q").step("ok").detail == "approved by ann"


# ---- in this process, by a clock that is set


@pytest.mark.parametrize(
    ("moment", "state"),
    [
        pytest.param(-1, "completed", id="in time"),
        pytest.param(-0.001, "completed", id="just in time"),
        pytest.param(0, "failed", id="at the deadline"),
        pytest.param(1, "failed", id="too late"),
    ],
)
def test_the_time_of_the_answer_decides(runtime, clock, moment, state):
    """The run goes on long after; only when the answer was given matters."""
    flow = asking()
    run = runtime.run(flow, wait=False)
    runtime.close()  # nobody is there
    clock.stands_at = run.step("ok").deadline + moment
    with Runtime(runtime.store, recover=False) as other:
        if state == "completed":
            assert other.approve(run.id) == "ok"
        else:
            with pytest.raises(
                MisuseError, match=r"could be answered until .* No answer until then counts as a refusal"
            ):
                other.approve(run.id)
        clock.stands_at = run.step("ok").deadline + 1000
        assert str(other.resume(run.id, flow, check=False).state) == state


def test_answers_at_the_deadline_from_many_threads(tmp_path):
    """While the run is alive: every yes that was not refused is the run's answer, and every other is not."""
    flow = Workflow("w", step("ok", approval="Go?", timeout="300ms", on_deny="continue"))
    answers = {}
    with Runtime(tmp_path / "runs.db") as runtime:
        linked = runtime.load(flow)
        runs = [runtime.start(linked, run_id=f"r{number}") for number in range(30)]

        def answer(run_id, offset):
            until(lambda: runtime.show(run_id).step("ok").deadline is not None)
            deadline = runtime.show(run_id).step("ok").deadline
            while time.time() < deadline + offset:
                time.sleep(0.0005)
            try:
                runtime.approve(run_id)
            except MisuseError:
                answers[run_id] = False
            else:
                answers[run_id] = True

        threads = [
            threading.Thread(target=answer, args=(run_id, (number - 15) * 0.001)) for number, run_id in enumerate(runs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        approved = {run_id: runtime.attach(run_id).output["approved"] for run_id in runs}
    assert approved == answers


def test_a_second_answer_is_refused(runtime):
    """The first one counts, also while nobody has taken it: the second would answer a question not asked yet."""
    flow = asking(on_deny="continue")
    run = runtime.run(flow, wait=False)
    runtime.close()
    with Runtime(runtime.store, recover=False) as other:
        other.approve(run.id, deny=True)
        with pytest.raises(MisuseError, match="had just been answered"):
            other.approve(run.id)
        assert other.resume(run.id, flow).step("ok").detail == "denied"


def test_the_deadline_is_shown(runtime, clock, monkeypatch):
    """In the report, as JSON, in the terminal and on the page; and what can be done changes with it."""
    monkeypatch.setattr(drivers, "_SLICE", 0.05)
    run = runtime.run(asking(), wait=False)
    deadline = run.step("ok").deadline
    assert 90 < deadline - time.time() <= 100
    assert as_json(run)["steps"][0]["deadline"] == deadline
    for shown in (draw(run), page(run), explain(run)):
        assert re.search(r"can be answered until .*from now; no answer counts as a refusal", shown)
    assert [command for command, _ in run.commands()] == [
        f"troth runs approve {run.id}",
        f"troth runs approve {run.id} --deny",
    ]
    clock.stands_at = deadline + 1
    ended = runtime.attach(run.id, check=False)
    assert (ended.step("ok").timed_out, ended.step("ok").deadline) == (True, pytest.approx(deadline, abs=0.1))
    asked = ended.step("ok")
    assert asked.ended_at - asked.started_at == pytest.approx(asked.waited)
    assert asked.waited >= 100, "for so long nobody answered"
    with pytest.raises(MisuseError, match=r"could be answered until .* ago.* The run is failed"):
        runtime.approve(run.id)


def test_a_question_without_a_timeout_has_no_deadline(runtime):
    """It waits as long as it takes."""
    run = runtime.run(Workflow("w", step("ok", approval="Go?")), wait=False)
    assert (run.step("ok").deadline, run.step("ok").timed_out) == (None, False)
    assert "answered until" not in draw(run)
