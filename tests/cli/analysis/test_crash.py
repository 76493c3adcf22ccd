"""What a user sees where Troth itself fails: a line that tells what is missing, everything else, and exit code 4."""

import json
import re
import shlex
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.cli.analysis.test_watch import Watching

# A rule, under the name of another so that it can be selected, that fails where a file asks for it.
FAILING = """\
import sys
from troth.analysis.rules.registry import rule
from troth.cli.app import run

@rule("TR107", "coroutine-as-text", cases=())
def check(program):
    for path in program.asked:
        text = program.text(path).value
        if "FAIL" in text and ("FAIL LATER" not in text or "await save()" in text or "    def add" in text):
            raise ValueError("on purpose")
    yield from ()

sys.exit(run(sys.argv[1:]))
"""
LOST = "async def save(): ...\nasync def main():\n    save()\n"
SCHEMA = json.loads((Path(__file__).parents[2] / "data/sarif-2.1.0.json").read_text())


@pytest.fixture
def failing(project, tmp_path):
    """A project with a lost call in each of two files, in the second of which a rule fails."""
    (tmp_path / "failing.py").write_text(FAILING)
    project.write({"app.py": LOST, "bad.py": f"{LOST}# FAIL\n"})

    def troth(line, **environ):
        python, script = shlex.quote(sys.executable), shlex.quote(str(tmp_path / "failing.py"))
        return project.shell(f"{python} {script} {line}", TMPDIR=str(tmp_path), **environ)

    return troth


def test_one_line_and_all_the_rest(failing):
    """Which file, which rule, which exception and where, and what to do; the traceback lies in a file."""
    done = failing("check")
    assert done.code == 4
    assert "app.py:3:5  TR101" in done.out
    assert "bad.py:3:5  TR101" in done.out
    told = [line for line in done.out.splitlines() if "internal-error" in line]
    assert len(told) == 1
    assert re.fullmatch(
        r"bad\.py:1  TR000 internal-error  TR107 was skipped in this file \(ValueError at failing\.py:10: on purpose\); "
        r"this is a bug in Troth, and `troth explain TR000` explains how to report it",
        told[0],
    )
    assert "Found 2 problems (certain) in 2 of 2 files, and the check is not complete (1 internal error)" in done.out
    file = re.search(r"The whole traceback is in (\S+);", done.err)
    assert 'raise ValueError("on purpose")' in Path(file[1]).read_text()
    assert "Traceback" not in done.out + done.err
    assert "report it" in failing("explain TR000").out


def test_nothing_is_called_clean(failing, project):
    """Where nothing else is found either, that is not the end of it."""
    project.write({"app.py": "x = 1\n", "bad.py": "# FAIL\n"})
    done = failing("check")
    assert done.code == 4
    assert "Nothing was found, but the check is not complete: 1 internal error, 2 files checked" in done.out
    assert "internal-error" in failing("check --statistics").out


def test_the_formats_of_machines(failing, tmp_path):
    """Each has a place for it; a person reads it on stderr."""
    report = json.loads(failing("check --output-format json").out)
    assert [row["code"] for row in report["findings"]] == ["TR101", "TR101"]
    (error,) = report["errors"]
    assert (error["code"], error["path"]) == ("TR000", "bad.py")
    assert error.keys() >= report["findings"][0].keys()
    assert error["error"] == {
        "rule": "TR107",
        "type": "ValueError",
        "message": "on purpose",
        "place": "failing.py:10",
        "others": 0,
    }
    done = failing("check -o sarif:-")
    assert done.code == 4
    assert "bad.py:1  TR000 internal-error" in done.err
    assert str(tmp_path) not in done.out
    log = json.loads(done.out)
    jsonschema.validate(log, SCHEMA)
    (run,) = log["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    (note,) = invocation["toolExecutionNotifications"]
    assert note["exception"] == {"kind": "ValueError", "message": "on purpose"}
    assert note["associatedRule"] == {"id": "TR107"}
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "bad.py"
    assert len(run["results"]) == 2
    annotations = failing("check --output-format github").out.splitlines()
    assert annotations[-1].startswith("::error file=bad.py,line=1,title=TR000 internal-error::TR107 was skipped")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param("--ignore TR107", 1, id="the rule is not wanted"),
        pytest.param("--select TR101", 1, id="other rules are wanted"),
        pytest.param("app.py", 1, id="the file is not reported"),
        pytest.param("--select TR107", 4, id="the rule is wanted"),
        pytest.param("bad.py", 4, id="the file is reported"),
        pytest.param("--ignore TR000", 4, id="that it failed cannot be ignored"),
    ],
)
def test_what_nobody_asked_for_is_not_missing(failing, options, code):
    """So a rule that fails can be left out until it is repaired."""
    done = failing(f"check {options}")
    assert (done.code, "internal-error" in done.out) == (code, code == 4)


def test_the_settings_leave_a_rule_out_of_one_file(failing, project):
    """As for any other finding."""
    project.write({"troth.toml": '[per-file-ignores]\n"bad.py" = ["TR107"]\n'})
    assert failing("check").code == 1


def test_nothing_of_it_is_kept(failing, project):
    """The next run says the same, with the cache as without; and all is well after the repair."""
    kept = {"TROTH_NO_CACHE": "0"}
    assert [failing("check", **kept).code for _ in range(2)] == [4, 4]
    project.write({"bad.py": LOST})
    assert [failing("check", **kept).code for _ in range(2)] == [1, 1]
    project.write({"bad.py": f"{LOST}# FAIL\n"})
    assert [failing("check", **kept).code for _ in range(2)] == [4, 4]


def test_the_baseline_forgets_nothing(failing, project):
    """What may only be missing today is neither called repaired nor taken out."""
    project.write({"bad.py": f'{LOST}def show():\n    print(f"{{save()}}")\n'})
    assert failing("check --write-baseline").code == 0
    baseline = (project.root / "troth-baseline.json").read_text()
    assert "TR107" in baseline
    project.write({"bad.py": "# FAIL\n"})
    done = failing("check --baseline troth-baseline.json")
    assert done.code == 4
    assert "stale" not in done.out
    done = failing("check --write-baseline")
    assert done.code == 4
    assert "The baseline was not written" in done.err
    assert (project.root / "troth-baseline.json").read_text() == baseline


def test_a_comment_for_the_rule_that_failed_is_not_idle(failing, project):
    """Nobody knows what it silences today."""
    project.write({"bad.py": "x = 1  # troth: allow TR107 FAIL\n"})
    assert "TR002" not in failing("check").out


def test_fix_repairs_the_rest(failing, project):
    """What the other rules found is repaired, and the exit code says that something may be missing."""
    done = failing("fix --diff")
    assert done.code == 4
    assert done.out.count("+    await save()") == 2
    assert "TR000 internal-error" in done.err
    done = failing("fix")
    assert done.code == 4
    assert "TR000 internal-error" in done.out
    assert "await save()" in (project.root / "bad.py").read_text()
    assert "await save()" in (project.root / "app.py").read_text()


def test_fix_writes_nothing_that_could_not_be_checked(failing, project):
    """A rule that fails after the repair cannot say that the repair is right."""
    project.write({"bad.py": f"{LOST}# FAIL LATER\n"})
    done = failing("fix")
    assert done.code == 4
    assert "Nothing was repaired" in done.err
    assert "await save()" not in (project.root / "app.py").read_text()


@pytest.mark.parametrize(("mark", "code"), [("FAIL", 0), ("FAIL LATER", 4)])
def test_recolor(failing, project, mark, code):
    """A rule that fails as it did before says nothing about the change; one that fails because of it stops it."""
    text = "class Total:\n    async def add(self, n):\n        self.n += n\nasync def main(t: Total, r):\n    await t.add(1)\n    await r.go()\n"
    project.write({"bad.py": f"{text}# {mark}\n"})
    done = failing("recolor bad.py:Total.add --to sync")
    assert done.code == code, done.err
    assert ("    def add" in (project.root / "bad.py").read_text()) == (code == 0)
    if code:
        assert "Nothing was changed" in done.err


def test_explain_finds_the_calls_all_the_same(failing, project):
    """A log is traced to its call, and the rest is said."""
    project.write({"app.log": "RuntimeWarning: coroutine 'save' was never awaited\n"})
    done = failing("explain --log app.log")
    assert done.code == 4
    assert "lost at" in done.out
    assert "TR000 internal-error" in done.err


def test_debugging_stops_at_the_bug(failing):
    """With its traceback, for whoever looks for it."""
    done = failing("check", TROTH_DEBUG="1")
    assert done.code == 3
    assert "Traceback (most recent call last)" in done.err


def test_watching_goes_on(project, tmp_path):
    """Each answer says what is missing in it; the one after the repair is whole."""
    (tmp_path / "failing.py").write_text(FAILING)
    project.write({"app.py": LOST, "bad.py": f"{LOST}# FAIL\n"})
    watching = Watching(project.root, "--output-format", "json", program=[str(tmp_path / "failing.py")])
    try:
        answer = watching.answer()
        assert [row["code"] for row in answer["findings"]] == ["TR101", "TR101"]
        assert [row["path"] for row in answer["errors"]] == ["bad.py"]
        project.write({"app.py": "x = 1\n"})
        answer = watching.answer()
        assert [row["path"] for row in (*answer["findings"], *answer["errors"])] == ["bad.py", "bad.py"]
        project.write({"bad.py": LOST})
        answer = watching.answer()
        assert ([row["code"] for row in answer["findings"]], answer["errors"]) == (["TR101"], [])
    finally:
        assert watching.end()[0] == 0
