"""`troth init`: the first ten minutes, in one go."""

import json
import subprocess
import sys

import pytest

from troth.cli import app
from troth.runtime import Runtime


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    yield run
    sys.modules.pop("steps", None)


def test_what_it_writes_runs_and_can_be_looked_at(troth, tmp_path):
    """init, validate, run, show, replay, a failure that is undone, diff, a page: no key, no network, right exit codes."""
    code, out, _ = troth("init")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert troth("validate", "workflow.yaml")[0] == 0
    assert troth("run", "workflow.yaml", "-i", "order=A7")[0] == 0
    assert "✓ completed" in troth("runs", "show", "last")[1]
    assert troth("runs", "replay", "last")[0] == 0
    code, out, err = troth("run", "workflow.yaml", "-i", "order=A8", "-i", "weight=198")
    assert code == 1
    assert out == "refunded A8\n"
    assert "parcel too heavy: 198 kg" in err
    first = json.loads(troth("runs", "list", "--json")[1])[1]["id"]
    assert troth("runs", "diff", first, "last")[0] == 1
    assert troth("runs", "show", "last", "--html", "page.html")[0] == 0


def test_the_editor_finds_the_schema(troth, tmp_path):
    """The first line names a file that was written beside it."""
    troth("init", "flows")
    first = (tmp_path / "flows/workflow.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = tmp_path / "flows" / first.partition("$schema=")[2]
    assert json.loads(schema.read_text(encoding="utf-8"))["title"] == "Troth workflow, version 1"


def test_nothing_is_overwritten(troth, tmp_path):
    """Not even one of the files."""
    (tmp_path / "steps.py").write_text("mine", encoding="utf-8")
    code, _, err = troth("init")
    assert code == 2
    assert "steps.py would be overwritten. Nothing was written." in err
    assert [path.name for path in tmp_path.iterdir()] == ["steps.py"]


def test_git_is_not_shown_the_store(troth, tmp_path):
    """The runs are hidden, the schema is not; a clone that has the schema alone hides its own store, too."""

    def status():
        command = ["git", "status", "--porcelain", "--untracked-files=all"]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()[1::2]
        return [path for path in shown if not path.startswith("__pycache__/")]

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    troth("init")
    troth("run", "workflow.yaml", "-i", "order=A7")
    assert (tmp_path / ".troth/runs.db").exists()
    assert status() == [".troth/workflow-v1.json", "steps.py", "workflow.yaml"]
    for file in (".gitignore", "runs.db"):
        (tmp_path / ".troth" / file).unlink()
    troth("run", "workflow.yaml", "-i", "order=A7")
    assert status() == [".troth/workflow-v1.json", "steps.py", "workflow.yaml"]


def test_a_folder_of_yours_is_left_alone(tmp_path):
    """Only `.troth` is hidden, and a `.gitignore` that is there already stays as it is."""
    Runtime(tmp_path / "data/runs.db").close()
    assert not (tmp_path / "data/.gitignore").exists()
    (tmp_path / ".troth").mkdir()
    (tmp_path / ".troth/.gitignore").write_text("mine", encoding="utf-8")
    Runtime(tmp_path / ".troth/runs.db").close()
    assert (tmp_path / ".troth/.gitignore").read_text(encoding="utf-8") == "mine"
