"""`troth mutate` as a user meets it: exit codes, the record, Ctrl-C, the report."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.analysis.mutate.operators import all_operators

SOURCE = """\
async def save(item):
    return item


async def order(item):
    await save(item)


async def count(item):
    total = await save(item)
    return total


async def ask(item):
    if await save(item):
        return 1
    return await save(2)
"""

# Objects to every bare call of `save`; given a number, it waits that long on every run but the first.
CHECKER = """\
import pathlib, re, sys, time
stamp = pathlib.Path(sys.argv[2])
if len(sys.argv) > 3 and stamp.exists():
    time.sleep(float(sys.argv[3]))
stamp.touch()
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"    save\\(", line):
            print(f"{path}:{number}:5: lost")
"""


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (root / "app.py").write_text(SOURCE)
    (tmp_path / "checker.py").write_text(CHECKER)
    return root


def checker(project, *more):
    script = project.parent / "checker.py"
    return " ".join([sys.executable, str(script), "{root}", str(project.parent / "stamp"), *map(str, more)])


def mutate(project, *args, **options):
    return subprocess.run(
        [sys.executable, "-m", "troth", "mutate", *map(str, args)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        **options,
    )


def test_a_run_reports_survivors_and_ends_with_0(project):
    """Exit 0 because it ran; every survivor with its place, its change and what would catch it; 80 columns."""
    done = mutate(project, "--checker", checker(project))
    assert (done.returncode, done.stderr) == (0, "")
    assert "caught on the line              1    33 %" in done.stdout
    assert "app.py:10  drop-await, assigned, in count" in done.stdout
    assert "-    10 |     total = await save(item)" in done.stdout
    assert "+    10 |     total = save(item)" in done.stdout
    assert done.stdout.count("would catch it: ") == 2
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("source", "number", "is_said"),
    [
        pytest.param("async def a():\n    await s(1)\n    await s(2)\n", 2, True, id="two places in one function"),
        pytest.param("async def a():\n    await s(1)\n    await s(2)\n", 1, False, id="as many as were asked for"),
        pytest.param("async def a():\n    await s(1)\n", 2, False, id="all there are"),
    ],
)
def test_why_fewer_are_planted_than_were_asked_for(project, source, number, is_said):
    """A function gets one mutant, so a small project may have places that none of them takes."""
    (project / "few.py").write_text(f"async def s(x): ...\n{source}")
    done = mutate(project, "few.py", "--list", "--n", str(number))
    assert done.stdout.startswith("1 mutant in 1 of 1 file")
    assert ("at most one mutant is planted in each outermost function" in done.stdout) == is_said


@pytest.mark.parametrize(("percent", "code"), [pytest.param(30, 0, id="reached"), pytest.param(34, 1, id="missed")])
def test_fail_under(project, percent, code):
    """A third is caught: that is enough for 30 percent and not for 34."""
    done = mutate(project, "--checker", checker(project), "--fail-under", percent)
    assert done.returncode == code
    assert ("under 34 %" in done.stderr) == (code == 1)


def test_tests_are_asked(project):
    """A command that passes and fails on a mutant catches it; lines it never runs are told apart."""
    (project / "verify.py").write_text(
        "import asyncio, app\nassert asyncio.run(app.count(3)) == 3\nasyncio.run(app.order(1))\n"
    )
    done = mutate(project, "app.py", "--tests", f"{sys.executable} verify.py", "--jobs", 2, "--json", "run.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((project / "run.json").read_text(encoding="utf-8"))["mutants"]
    assert {row["function"]: row["verdict"] for row in rows} == {
        "count": "caught",
        "order": "survived",
        "ask": "unreached",
    }
    assert "pytest -W error" in done.stdout


def test_coverage_data_that_is_older_than_the_code_is_not_used(project):
    """It may speak of other lines; the reader is told."""
    (project / ".coverage").write_text("old")
    os.utime(project / ".coverage", (1, 1))
    done = mutate(project, "--tests", f"{sys.executable} -c pass")
    assert done.returncode == 0
    assert "older than the code" in done.stderr


def test_nothing_to_plant(project):
    """A project without an await is no failure, except for one who asked for a share."""
    (project / "app.py").write_text("x = 1\n")
    assert mutate(project, "--checker", checker(project)).returncode == 0
    assert mutate(project, "--checker", checker(project), "--fail-under", 1).returncode == 1


def test_files_that_cannot_be_read_are_listed(project):
    """One that does not parse and one that does not decode, each with its reason; the rest is measured."""
    (project / "broken.py").write_text("async def f(:\n")
    (project / "bytes.py").write_bytes(b"async = '\xff'\n")
    done = mutate(project, "--checker", checker(project) + "; true")
    assert done.returncode == 0
    assert "left out, because they cannot be read: 2" in done.stdout
    assert "  broken.py: SyntaxError" in done.stdout
    assert "  bytes.py: " in done.stdout


def test_list_shows_and_runs_nothing(project):
    """The mutants with their changes, without a copy or a command."""
    done = mutate(project, "--list", "--operator", "all")
    assert done.returncode == 0
    assert "save(item)" in done.stdout
    assert not (project.parent / "stamp").exists()


def test_the_record_can_be_read(project):
    """Totals and every mutant with its verdict, for others to use."""
    mutate(project, "--checker", checker(project), "--json", "run.json")
    record = json.loads((project / "run.json").read_text(encoding="utf-8"))
    assert record["complete"] is True
    assert (record["totals"]["n"], record["totals"]["caught"], record["totals"]["survived"]) == (3, 1, 2)
    assert {row["function"]: row["verdict"] for row in record["mutants"]} == {
        "order": "caught",
        "count": "survived",
        "ask": "survived",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_ctrl_c_keeps_what_was_measured_and_resume_goes_on(project):
    """Exit 130 with a report and a record of what is known; the next run measures only the rest."""
    args = ["--checker", checker(project, 2), "--json", "run.json", "--batch-size", "1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "troth", "mutate", *args],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 40
    while not _measured(project) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "interrupted:" in out
    assert "Interrupted." in err
    first = _measured(project)
    assert 1 <= len(first) < 3
    begun = time.monotonic()
    done = mutate(project, *args, "--resume")
    assert done.returncode == 0
    assert len(_measured(project)) == 3
    assert first.items() <= _measured(project).items()
    assert time.monotonic() - begun < 30


def _measured(project):
    try:
        record = json.loads((project / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {row["key"]: row["verdict"] for row in record["mutants"] if row["verdict"]}


def test_resume_refuses_the_record_of_another_run(project):
    """Another seed or a changed file would mix two runs; the message says what differs."""
    mutate(project, "--checker", checker(project), "--json", "run.json")
    other = mutate(project, "--checker", checker(project), "--json", "run.json", "--resume", "--seed", 8)
    assert other.returncode == 2
    assert "seed was 7 and is 8" in other.stderr
    (project / "app.py").write_text(SOURCE + "\n# more\n")
    changed = mutate(project, "--checker", checker(project), "--json", "run.json", "--resume")
    assert changed.returncode == 2
    assert "tree was" in changed.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param([], "No checker or test command was given", id="nobody to notice"),
        pytest.param(["--list", "--operator", "drop-dead"], "no operator 'drop-dead'", id="unknown operator"),
        pytest.param(["nowhere", "--list"], "There is no 'nowhere'", id="no such path"),
        pytest.param(["--list", "--n", "0"], "at least 1", id="no mutants"),
        pytest.param(["--tool", "ruff", "--resume"], "--json", id="resume without a record"),
        pytest.param(["--tool", "ruff", "--json", "no/where/x.json"], "no directory", id="no place for the record"),
        pytest.param(["--tool", "ruff", "--kind", "x"], "--checker", id="a kind for a known tool"),
        pytest.param(["--tool", "ruff", "--coverage", "x"], "--tests", id="coverage for a checker"),
        pytest.param(["--tool", "ruff", "--fail-under", "101"], "percent", id="more than everything"),
        pytest.param(["--tool", "ruff", "--checker", "x"], "not allowed", id="two at once"),
        pytest.param(["..", "--root", ".", "--list"], "not inside", id="a path outside the project"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_to_do(project, args, words):
    """Nothing is copied or run."""
    done = mutate(project, *args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_checker_that_cannot_run_ends_with_1(project):
    """The world failed: nothing was measured, and the message shows what the command said."""
    done = mutate(project, "--checker", "no-such-command-anywhere")
    assert done.returncode == 1
    assert "untouched copy" in done.stderr


def test_ignored_and_test_files_are_left_alone(project):
    """What git ignores, environments and tests are not mutated, unless tests are asked for."""
    (project / ".gitignore").write_text("made/\n")
    for name in ("made/m.py", ".venv/v.py", "tests/test_a.py", "conftest.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(SOURCE)
    (project / ".venv/pyvenv.cfg").touch()
    paths = {line.split(":")[0].split()[-1] for line in mutate(project, "--list").stdout.splitlines() if ".py:" in line}
    assert paths == {"app.py"}
    assert "tests/test_a.py:" in mutate(project, "--list", "--include-tests").stdout
    assert "tests/test_a.py:" in mutate(project, "tests", "--list").stdout


def test_help_names_every_operator_in_the_reference():
    """The reference page lists the operators with their summaries as they are in the code."""
    page = (Path(__file__).parents[3] / "docs/reference/mutate.md").read_text(encoding="utf-8")
    for operator in all_operators().values():
        assert f"| `{operator.name}` | {operator.summary} |" in page
