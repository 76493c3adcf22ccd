"""A failure without any of the user's code has the line of its step in the workflow, wherever it is shown."""

import sys
import time

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.workflows.record.report_json import as_json
from troth.runtime.workflows.render.html import page
from troth.runtime.workflows.render.text import draw


def wait():
    time.sleep(60)


def work():
    return 1


TIMES_OUT = "  - {id: slow, function: 'written_steps:wait', timeout: 0.05s}\n"
ENDLESS = "import time\n\n\ndef wait():\n    time.sleep(5)\n\n\ndef work():\n    return [1, 2]\n"


@pytest.fixture
def runtime(tmp_path):
    (tmp_path / "written_steps.py").write_text(ENDLESS, encoding="utf-8")
    with Runtime(tmp_path / "troth.db") as runtime:
        yield runtime
    sys.modules.pop("written_steps", None)


def write(folder, text, name="flow"):
    path = folder / f"{name}.yaml"
    path.write_text(f"troth: 1\nname: {name}\n{text}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        pytest.param(f"steps:\n{TIMES_OUT}", "slow", 4, id="a timeout"),
        pytest.param("steps:\n  # why\n  - {id: sure, approval: Go?, timeout: 0.05s}\n", "sure", 5, id="no answer"),
        pytest.param(
            "budget: {steps: 1}\nsteps:\n"
            "  - {id: one, function: 'written_steps:work'}\n  - {id: two, function: 'written_steps:work'}\n",
            "two",
            6,
            id="a budget",
        ),
        pytest.param(
            "steps:\n  - {id: list, function: 'written_steps:work'}\n  - id: all\n    each: steps.list\n    steps:\n"
            f"    {TIMES_OUT}",
            "all[0].slow",
            8,
            id="in a block, of its first item",
        ),
    ],
)
def test_the_line_is_told(tmp_path, monkeypatch, runtime, text, place, line):
    """As text, as a page and as JSON, also by a process that has only the store; with the file as it was then."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, text)
    report = runtime.run(path, run_id="run-1", check=False)
    failure = report.step(place)
    written = path.read_text(encoding="utf-8").splitlines()[line - 1].strip()
    assert (failure.error.place, failure.error.line) == (f"{path}:{line}", written)
    path.unlink()
    with Runtime(tmp_path / "troth.db", in_process=False) as other:
        assert as_json(other.show("run-1")) == as_json(runtime.show("run-1"))
        assert f"flow.yaml:{line}  {written}"[:60] in draw(other.show("run-1"))
        assert f"flow.yaml:{line}" in page(other.show("run-1"))
        assert next(step for step in as_json(other.show("run-1"))["steps"] if step["place"] == place)["error"][
            "place"
        ].endswith(f"flow.yaml:{line}")


def test_a_line_inside_of_another_workflow(tmp_path, runtime):
    """It is that of the file in which the step is written."""
    inner = write(tmp_path, f"steps:\n{TIMES_OUT}", "inner")
    outer = write(tmp_path, "steps:\n  - {id: in, workflow: inner.yaml}\n", "outer")
    report = runtime.run(outer, check=False)
    assert report.step("in.slow").error.place == f"{inner}:4"


def test_a_line_of_a_workflow_that_is_built_in_python(runtime):
    """It is the line of the program that makes the step."""
    flow = Workflow("flow", step("slow", function=wait, timeout="0.05s"))
    error = runtime.run(flow, check=False).step("slow").error
    assert error.line == 'flow = Workflow("flow", step("slow", function=wait, timeout="0.05s"))'


def test_the_users_own_line_comes_first(tmp_path, runtime):
    """Where code of the user's failed, its line is told and not that of the workflow."""
    (tmp_path / "written_steps.py").write_text("def work():\n    raise ValueError('no')\n", encoding="utf-8")
    path = write(tmp_path, "steps:\n  - {id: one, function: 'written_steps:work'}\n")
    error = runtime.run(path, check=False).step("one").error
    assert error.place.endswith("written_steps.py:2")


def test_a_workflow_that_moved_has_its_new_lines(tmp_path, runtime):
    """Comments change no workflow, and its runs are shown with the lines as another process read them last."""
    path = write(tmp_path, f"steps:\n{TIMES_OUT}")
    runtime.run(path, run_id="run-1", check=False)
    path.write_text(f"# why\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    with Runtime(tmp_path / "troth.db") as later:
        later.run(path, run_id="run-2", check=False)
        later.run(path, run_id="run-3", check=False)
        lines = [later.show(run_id).step("slow").error.place for run_id in ("run-1", "run-2", "run-3")]
    assert lines == [f"{path}:5"] * 3
