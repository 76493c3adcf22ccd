"""The GitHub Action, the GitLab component and the pre-commit hooks, each run as its service would run it.

Installing from an index, pre-commit itself and `uvx` are the business of `python -m tools.integrations`.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CLEAN = "async def save(): ...\n\n\nasync def main():\n    await save()\n"
LOST = CLEAN.replace("await ", "")
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}  # `check` needs none of the dependencies

pytestmark = pytest.mark.xdist_group("wheel")  # built and installed once


def run_step(step, inputs, folder, **environ):
    """Run a step of a composite action with bash, as the runner does."""
    assert step["shell"] == "bash"
    env = {name: _filled(text, inputs) for name, text in step.get("env", {}).items()}
    where = folder / _filled(step.get("working-directory", "."), inputs)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=where,
        env=os.environ | env | environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def _filled(text, inputs):
    for name, value in inputs.items():
        text = text.replace("${{ inputs." + name + " }}", value)
    assert "${{" not in text
    return text


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runner(action, wheel, tmp_path_factory):
    """The runner's temporary folder, after the step that installs Troth."""
    temp = tmp_path_factory.mktemp("runner")
    inputs = _inputs(action, package=str(wheel), python=sys.executable)
    done = run_step(action["runs"]["steps"][0], inputs, temp, RUNNER_TEMP=str(temp), **NO_INDEX)
    assert done.returncode == 0, done.stderr
    return temp


def _inputs(action, **others):
    return {name: one["default"] for name, one in action["inputs"].items()} | others


@pytest.fixture
def project(tmp_path):
    """A repository with a lost call in the last of its two commits."""
    folder = tmp_path / "project"
    (folder / "sub dir").mkdir(parents=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]

    def commit() -> None:
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        subprocess.run(["git", *identity, "commit", "-qm", "x"], cwd=folder, check=True)

    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "old.py").write_text(LOST)
    (folder / "new.py").write_text(CLEAN)
    commit()
    (folder / "new.py").write_text(LOST)
    commit()
    return folder


@pytest.mark.parametrize(
    ("inputs", "code", "annotated"),
    [
        pytest.param({}, 1, ["new.py", "old.py"], id="all"),
        pytest.param({"since": "HEAD~1"}, 1, ["new.py"], id="since a revision"),
        pytest.param({"paths": "old.py new.py"}, 1, ["new.py", "old.py"], id="two paths"),
        pytest.param({"args": "--select TR3 --isolated"}, 0, [], id="options"),
        pytest.param({"args": "--exit-zero", "paths": "old.py"}, 0, ["old.py"], id="a switch and a path"),
        pytest.param({"working-directory": "sub dir"}, 2, [], id="a folder without Python"),
        pytest.param({"paths": "$(touch pwned)"}, 2, [], id="nothing in an input is run"),
    ],
)
def test_the_github_action(inputs, code, annotated, action, runner, project):
    """Its second step annotates what is found, and fails the job."""
    step = action["runs"]["steps"][1]
    done = run_step(step, _inputs(action, **inputs), project, RUNNER_TEMP=str(runner))
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert [line.partition("file=")[2].partition(",")[0] for line in lines] == annotated
    assert not (project / "pwned").exists()


def test_the_github_action_writes_sarif(action, runner, project):
    done = run_step(action["runs"]["steps"][1], _inputs(action, sarif="t.sarif"), project, RUNNER_TEMP=str(runner))
    assert (done.returncode, done.stdout.count("::error ")) == (1, 2)
    assert len(json.loads((project / "t.sarif").read_text())["runs"][0]["results"]) == 2


def test_the_gitlab_component(wheel, runner, project):
    """A merge request gets a code quality report of what it brings."""
    spec, jobs = yaml.safe_load_all((ROOT / "templates/troth.yml").read_text(encoding="utf-8"))
    inputs = {name: one["default"] for name, one in spec["spec"]["inputs"].items()} | {"package": str(wheel)}
    lines = jobs["troth"]["script"]
    for name, value in inputs.items():
        lines = [line.replace(f"$[[ inputs.{name} ]]", value) for line in lines]
    assert "[[" not in "".join(lines)
    base = subprocess.run(
        ["git", "rev-parse", "HEAD~1"], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    path = f"{runner / 'troth/bin'}{os.pathsep}{os.environ['PATH']}"
    environ = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base.strip(), "PATH": path, **NO_INDEX}
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        cwd=project,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    report = project / jobs["troth"]["artifacts"]["reports"]["codequality"]
    assert [row["location"]["path"] for row in json.loads(report.read_text())] == ["new.py"]


@pytest.mark.parametrize(("hook", "after"), [("troth-check", LOST), ("troth-fix", CLEAN)])
def test_the_hooks_of_pre_commit(hook, after, runner, project):
    """The entry, with the files behind it as pre-commit names them, fails where it finds or repairs something."""
    hooks = {one["id"]: one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    (project / "pyproject.toml").write_text('[tool.troth]\nexclude = ["old.py"]\n')
    entry, *options = shlex.split(hooks[hook]["entry"])
    command = [runner / "troth/bin" / entry, *options, "new.py", "old.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == (1 if hook == "troth-check" else 0), done.stderr
    assert ((project / "new.py").read_text(), (project / "old.py").read_text()) == (after, LOST)
