"""How the guard gets into a program nobody edits: `python -m troth.guard` and `TROTH_GUARD=1`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from troth import guard

LOSING = "import sys\nasync def work(): ...\nwork()\nprint(sys.argv[1:], __name__)\n"
BLOCKING = """
import asyncio, time
async def main():
    time.sleep(0.5)
asyncio.run(main())
"""


def python(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("TROTH", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=inherited | environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "losing.py").write_text(LOSING)
    (tmp_path / "blocking.py").write_text(BLOCKING)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text("from . import __name__ as name\nprint(name)\n" + LOSING)
    # The start file as the wheel installs it beside the packages; here in a folder of its own.
    start = Path(__file__).parents[2] / "src" / "troth" / "guard" / "troth_guard.pth"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "troth_guard.pth").write_text(start.read_text())
    (tmp_path / "site" / "read.py").write_text(
        "import site, runpy, sys\nsite.addsitedir(sys.argv.pop(1))\n"
        "del sys.argv[0]\nexec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))\n"
    )
    return tmp_path


def test_a_script_with_its_arguments(folder):
    """Options end at the script: what follows is the script's own."""
    done = python("-m", "troth.guard", "--log", "log", "losing.py", "--log", "x", "-m", cwd=folder)
    assert done.stdout == "['--log', 'x', '-m'] __main__\n"
    assert done.returncode == 120
    assert json.loads((folder / "log").read_text())["line"] == 3


@pytest.mark.parametrize("name", ["losing", "package", "package.__main__"])
def test_a_module(name, folder):
    """As `python -m` runs it: packages through their `__main__`, relative imports and all."""
    done = python("-m", "troth.guard", "-m", name, "x", cwd=folder)
    assert done.stdout.endswith("['x'] __main__\n")
    assert done.returncode == 120
    assert ".py:3" in done.stderr or ".py:5" in done.stderr


def test_mode_report_leaves_the_exit_code_alone(folder):
    """The loss is told all the same."""
    done = python("-m", "troth.guard", "--mode", "report", "losing.py", cwd=folder)
    assert done.returncode == 0
    assert "losing.py:3" in done.stderr


def test_a_program_that_raises(folder):
    """Its traceback is its own, without a frame of ours."""
    (folder / "raising.py").write_text("def f():\n    raise ValueError('mine')\nf()\n")
    done = python("-m", "troth.guard", "raising.py", cwd=folder)
    assert done.returncode == 1
    assert "ValueError: mine" in done.stderr
    assert str(Path(guard.__file__).parent) not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["missing.py"], "cannot be read", id="no such file"),
        pytest.param(["-m", "missing"], "There is no module 'missing'", id="no such module"),
        pytest.param(["-m", "no.such"], "cannot be run", id="no such package"),
        pytest.param([], "no program was given", id="nothing"),
        pytest.param(["--frobnicate", "losing.py"], "--frobnicate", id="unknown option"),
        pytest.param(["--blocked", "-1", "losing.py"], "cannot be blocked", id="threshold"),
        pytest.param(["--log", "no/such/log", "losing.py"], "cannot be opened", id="log"),
    ],
)
def test_wrong_use(arguments, says, folder):
    """Exit code 2, one message, nothing run."""
    done = python("-m", "troth.guard", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_blocked_loops_are_told_and_do_not_fail_the_program(folder):
    """Late is not lost."""
    done = python("-m", "troth.guard", "--blocked", "0.1", "--log", "log", "blocking.py", cwd=folder)
    assert done.returncode == 0
    assert "blocking.py:4" in done.stderr
    entry = json.loads((folder / "log").read_text())
    assert (entry["kind"], entry["line"], entry["task"]) == ("blocked", 4, "Task-1")


@pytest.mark.parametrize("value", ["1", "yes", "True"])
def test_the_environment_switches_it_on(value, folder):
    """The start file beside the packages is all it takes."""
    done = python("site/read.py", "site", "losing.py", cwd=folder, TROTH_GUARD=value, TROTH_GUARD_LOG="log")
    assert done.returncode == 120, done.stderr
    assert json.loads((folder / "log").read_text())["line"] == 3


@pytest.mark.parametrize("environment", [{}, {"TROTH_GUARD": "0"}, {"TROTH_GUARD": ""}, {"TROTH_GUARD": "no"}])
def test_the_environment_leaves_it_off(environment, folder):
    """Python's own warning is all there is."""
    done = python("site/read.py", "site", "losing.py", cwd=folder, **environment)
    assert done.returncode == 0
    assert "RuntimeWarning" in done.stderr


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        pytest.param({"TROTH_GUARD": "perhaps"}, "neither 1 nor 0", id="switch"),
        pytest.param({"TROTH_GUARD": "1", "TROTH_GUARD_MODE": "x"}, "TROTH_GUARD_MODE is 'x'", id="mode"),
        pytest.param({"TROTH_GUARD": "1", "TROTH_GUARD_BLOCKED": "x"}, "not a number of seconds", id="threshold"),
        pytest.param({"TROTH_GUARD": "1", "TROTH_GUARD_LOG": "no/such/log"}, "cannot be opened", id="log"),
    ],
)
def test_a_wrong_environment_is_said_and_the_program_runs(environment, says, folder):
    """A misspelt variable must not stop every Python program of the user."""
    done = python("site/read.py", "site", "losing.py", cwd=folder, **environment)
    assert done.returncode == 0
    assert "__main__" in done.stdout
    assert says in done.stderr


def test_settings_of_the_environment(folder):
    """Mode and threshold can be set as well."""
    done = python(
        "site/read.py", "site", "blocking.py", cwd=folder, TROTH_GUARD="1", TROTH_GUARD_BLOCKED="0.1",
        TROTH_GUARD_MODE="report",
    )  # fmt: skip
    assert done.returncode == 0
    assert "event loop blocked" in done.stderr
    done = python("site/read.py", "site", "losing.py", cwd=folder, TROTH_GUARD="1", TROTH_GUARD_MODE="report")
    assert done.returncode == 0
    assert "losing.py:3" in done.stderr


def test_unset_it_imports_nothing(folder):
    """The price of the start file, while it is not asked for, is one look at the environment."""
    (folder / "look.py").write_text("import sys\nprint([name for name in sys.modules if name.startswith('troth')])\n")
    done = python("site/read.py", "site", "look.py", cwd=folder)
    assert done.stdout == "[]\n"
