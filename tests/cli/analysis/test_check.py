"""`troth check` from end to end: what is reported, in which form, with which exit code."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest


def test_a_lost_call_is_found(buggy):
    """The finding stands first, with its place; the exit code says that there is one."""
    done = buggy.troth("check")
    assert done.code == 1
    first, *_, last = done.out.splitlines()
    assert re.match(r"service\.py:6:5  TR1\d\d unawaited-coroutine$", first)
    assert "store.save" in done.out
    assert "store.py:2" in done.out
    assert last.startswith("Found 1 problem (certain) in 1 of 2 files; `troth fix` repairs 1")


def test_a_clean_project(buggy):
    """All clear is said with a number."""
    buggy.write({"service.py": buggy.clean})
    done = buggy.troth("check")
    assert (done.code, done.out) == (0, "All clear: 2 files checked\n")


@pytest.mark.parametrize(
    ("paths", "cwd", "first"),
    [
        pytest.param(["service.py"], ".", "service.py:6:5", id="a file, understood with the others"),
        pytest.param(["store.py"], ".", "All clear: 1 file", id="another file"),
        pytest.param([".."], "sub", "../service.py:6:5", id="the folder above"),
        pytest.param([], "sub", "more.py:6:5", id="the working folder, understood with what is above"),
    ],
)
def test_paths_say_what_is_reported(paths, cwd, first, buggy):
    """The program is the whole project, whatever is named."""
    buggy.write({"sub/more.py": buggy.service})
    assert buggy.troth("check", *paths, cwd=cwd).out.startswith(first)


def test_a_mistake_in_the_settings_of_one_package(project):
    """It stops a check of that package, and no other."""
    project.write(
        {
            "api/pyproject.toml": '[tool.troth]\nselekt = ["TR1"]\n',
            "api/api.py": project.store,
            "work/pyproject.toml": "",
            "work/work.py": "from api import Store\n\n\nasync def main():\n    Store().save()\n",
        }
    )
    project.commit()
    assert project.troth("check", "work").out.startswith("work/work.py:5:5  ")
    for path in ("api", "api/api.py", "."):
        done = project.troth("check", path)
        assert (done.code, "api/pyproject.toml:2: There is no setting 'selekt'" in done.err) == (2, True)


def test_a_monorepo_is_one_program(project):
    """A package that uses its neighbour is understood with it, also when it is checked alone."""
    project.write(
        {
            "pk/store/pyproject.toml": "",
            "pk/store/src/store/__init__.py": project.store,
            "pk/app/pyproject.toml": "",
            "pk/app/src/app/service.py": project.service,
            "pk/app/src/app/__init__.py": "",
        }
    )
    project.commit()
    for paths, cwd in (([], "."), (["pk/app"], "."), ([], "pk/app"), (["pk/app/src/app/service.py"], ".")):
        done = project.troth("check", "--output-format", "json", *paths, cwd=cwd)
        assert [(one["path"], one["line"]) for one in json.loads(done.out)["findings"]] == [
            ("pk/app/src/app/service.py", 6)
        ]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        pytest.param(["--select", "TR1"], 1, id="its family"),
        pytest.param(["--select", "TR0"], 0, id="another family"),
        pytest.param(["--select", "unawaited-coroutine"], 1, id="its name"),
        pytest.param(["--ignore", "unawaited-coroutine"], 0, id="ignored"),
        pytest.param(["--ignore", "TR", "--select", "TR101"], 1, id="the exact one wins"),
        pytest.param(["--confidence", "certain"], 1, id="certain"),
    ],
)
def test_selecting(arguments, count, buggy):
    """By code, by beginning of a code, by name, by confidence."""
    done = buggy.troth("check", "--output-format", "json", *arguments)
    assert len(json.loads(done.out)["findings"]) == count
    assert done.code == bool(count)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--select", "TR99"], "there is no rule 'TR99'", id="no such rule"),
        pytest.param(["--ignore", "unawaited-corutine"], "Did you mean 'unawaited-coroutine'?", id="a near one"),
        pytest.param(["--output-format", "xml"], "invalid choice", id="no such format"),
        pytest.param(["-o", "jsn:x"], "Did you mean 'json'?", id="a near format"),
        pytest.param(["-o", "json:no/where.json"], "not a path", id="no such folder"),
        pytest.param(["-o", "json:-", "-o", "sarif:-"], "would be mixed", id="two on stdout"),
        pytest.param(["missing.py"], "`missing.py` cannot be checked", id="missing file"),
        pytest.param(["empty"], "No Python file was found in `empty`", id="empty folder"),
        pytest.param(["notes.md"], "not Python source", id="no source"),
        pytest.param(["--jobs", "-1"], "--jobs", id="less than no processes"),
        pytest.param(["--python", "nowhere"], "no such interpreter", id="no such environment"),
        pytest.param(["--since", "HEAD"], "not in a git repository", id="since without git"),
        pytest.param(["--baseline", "none.json"], "does not exist", id="no such baseline"),
        pytest.param(["--stdin-filename", "a.py"], "stdin is not checked", id="a name for nothing"),
        pytest.param(["-", "a.py"], "cannot be combined with other paths", id="stdin and more"),
        pytest.param(["--nosuch"], "--help", id="no such option"),
    ],
)
def test_wrong_use(arguments, says, buggy):
    """Exit 2, nothing on stdout, and a message that says what to do; never a word of clean."""
    (buggy.root / "empty").mkdir()
    buggy.write({"notes.md": "# Notes"})
    done = buggy.troth("check", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_settings_are_used(buggy):
    """From the nearest file, for the files they speak about."""
    buggy.write({"pyproject.toml": '[tool.troth.per-file-ignores]\n"serv*.py" = ["TR1"]\n'})
    assert buggy.troth("check").code == 0
    buggy.write({"pyproject.toml": '[tool.troth]\nexclude = ["service.py"]\n'})
    assert buggy.troth("check").out == "All clear: 1 file checked\n"
    assert buggy.troth("check", "service.py").code == 1
    done = buggy.troth("check", "service.py", "--force-exclude")
    assert (done.code, done.out) == (0, "")
    assert "excluded" in done.err
    buggy.write({"pyproject.toml": '[tool.troth]\nexclude = ["service.py"]\nforce-exclude = true\n'})
    assert buggy.troth("check", "service.py").code == 0
    buggy.write({"pyproject.toml": '[tool.troth]\nselect = ["TR0"]\n'})
    assert buggy.troth("check").code == 0
    buggy.write({"pyproject.toml": "[tool.troth]\n\nselct = []\n"})
    done = buggy.troth("check")
    assert (done.code, done.err.splitlines()[0].endswith("pyproject.toml:3: There is no setting 'selct'.")) == (2, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            'ignore = [\n  "TR101",\n  "unawaited-corutine",\n]\n', "4: `ignore`: there is no rule", id="ignore"
        ),
        pytest.param('\nselect = ["TR99"]\n', "3: `select`: there is no rule 'TR99'", id="select"),
        pytest.param('[tool.troth.per-file-ignores]\n"a.py" = ["TR1", "TT"]\n', "3: `per-file-ignores`", id="in files"),
        pytest.param("confidence = 'likely'\npython = 'no/where'\n", "3: `python = 'no/where'`: there is", id="python"),
    ],
)
@pytest.mark.parametrize("folder", ["", "part/"], ids=["of the project", "of a package in it"])
def test_settings_that_name_what_is_not_there(folder, text, says, buggy):
    """Refused with the file and the line that name it, also where a wider or a narrower file has other settings."""
    other = "pyproject.toml" if folder else "part/pyproject.toml"
    own = f"[tool.troth]\n{text}[tool.other]\nx = ['TR99', 'TT']\n"
    buggy.write({f"{folder}pyproject.toml": own, other: "[tool.other]\nx = ['TR99']\n[tool.troth]\nexclude = []\n"})
    buggy.write({"part/module.py": "async def f(): ...\n\n\nasync def g():\n    f()\n"})
    done = buggy.troth("check", "part")
    assert (done.code, done.out) == (2, "")
    assert f"{folder}pyproject.toml:{says}" in done.err.splitlines()[0]


def test_settings_of_a_package_count_for_its_files_however_it_is_checked(buggy):
    """Naming a part of a project gives the same answer about it as checking the whole."""
    buggy.write(
        {
            "pk/troth.toml": 'ignore = ["TR101"]\nexclude = ["gen"]\n',
            "pk/store.py": buggy.store,
            "pk/service.py": buggy.service,
            "pk/gen/service.py": buggy.service,
        }
    )
    for paths in ([], ["pk"], ["pk/service.py", "service.py"]):
        done = buggy.troth("check", "--output-format", "json", *paths)
        assert [one["path"] for one in json.loads(done.out)["findings"]] == (["service.py"] if paths != ["pk"] else [])


BLOCKING = "import asyncio, requests, subprocess, time\nfrom pathlib import Path\n\n\nasync def main(name: Path):\n"


@pytest.mark.parametrize(
    ("line", "code", "others"),
    [
        pytest.param("asyncio.create_task(work())", "RUF006", "RUF029", id="a dropped task"),
        pytest.param("asyncio.create_task(work())", "ASYNC300", "ASYNC251", id="a dropped task, flake8-async"),
        pytest.param("time.sleep(1)", "ASYNC251", "ASYNC210", id="sleep"),
        pytest.param("requests.get('http://example.org')", "ASYNC210", "ASYNC251, RUF006", id="network"),
        pytest.param("subprocess.run(['ls'])", "ASYNC221", "ASYNC210", id="a program"),
        pytest.param("subprocess.Popen(['ls'])", "ASYNC220", "ASYNC230", id="a program that starts"),
        pytest.param("name.read_text()", "ASYNC240", "ASYNC222", id="a file"),
        pytest.param("helper()", None, "ASYNC251", id="down a chain, which no other linter sees"),
        pytest.param("work()", None, "RUF006, ASYNC105", id="a lost call"),
    ],
)
def test_what_is_acknowledged_to_another_linter_is_not_told_again(line, code, others, project):
    """A code that says the same silences the finding and is counted; another code or a bare `# noqa` does not."""
    more = "\n\nasync def work():\n    await asyncio.sleep(1)\n\n\ndef helper():\n    time.sleep(1)\n"

    def check(comment: str) -> tuple[int, str]:
        project.write({"app.py": f"{BLOCKING}    {line}  {comment}{more}"})
        done = project.troth("check", "app.py", "--no-cache", "--extend-select", "TR606")
        return done.code, done.out.splitlines()[-1]

    for comment in ("", "# noqa", f"# noqa: {others}", "# noqa: E501", f"# ruff: noqa: {code}", "# type: ignore"):
        assert check(comment)[0] == 1, comment
    said = "All clear: 1 file checked (1 silenced by comments for other linters)"
    for comment in (f"# noqa: {code}", f"# noqa:E501,{code}", f"#NOQA : S101 {code} why", f"# ruff: ignore[{code}]"):
        assert code is None or check(comment) == (0, said), comment


@pytest.mark.parametrize(
    ("line", "comment", "is_silenced"),
    [
        pytest.param("work()", "# pyright: ignore[reportUnusedCoroutine]", True, id="pyright"),
        pytest.param("work()", "# type: ignore[unused-coroutine]", True, id="mypy"),
        pytest.param("work()", "# type: ignore[misc, unused-coroutine]  # why", True, id="mypy, with others"),
        pytest.param("work()", "# ty: ignore[unused-awaitable]", True, id="ty"),
        pytest.param("work()", "# pyrefly: ignore[unused-coroutine]", True, id="pyrefly"),
        pytest.param("asyncio.create_task(work())", "# type: ignore[unused-awaitable]", True, id="a task"),
        pytest.param(
            "asyncio.create_task(work())", "# type: ignore[unused-coroutine]", False, id="a task is no coroutine"
        ),
        pytest.param("if work(): pass", "# type: ignore[unused-coroutine]", False, id="a condition is not dropped"),
        pytest.param("work()", "# pyright: ignore", False, id="without a code"),
        pytest.param("work()", "# pyright: ignore[reportUnusedExpression]", False, id="another code"),
        pytest.param("work()", "# noqa: unused-coroutine", False, id="not behind noqa"),
        pytest.param("print('# type: ignore[unused-coroutine]'), work()", "", False, id="in a string"),
    ],
)
def test_what_is_acknowledged_to_a_type_checker_is_not_told_again(line, comment, is_silenced, project):
    """A code that says that a coroutine is dropped silences the finding that says so; `--no-foreign-comments` does not."""
    project.write(
        {"app.py": f"import asyncio\n\n\nasync def work(): ...\n\n\nasync def main():\n    {line}  {comment}\n"}
    )
    assert project.troth("check", "--no-cache").code == (0 if is_silenced else 1)
    assert project.troth("check", "--no-cache", "--no-foreign-comments").code == 1


def test_comments_for_other_linters_are_switched_off_by_folder(project):
    """By a setting, which counts for the folder it stands in, or for the run."""
    text = "async def work(): ...\n\n\nasync def main():\n    work()  # type: ignore[unused-coroutine]\n"
    project.write(
        {"a/app.py": text, "b/app.py": text, "b/troth.toml": "foreign-comments = false\n", "pyproject.toml": ""}
    )
    done = project.troth("check", "--output-format", "json")
    assert [one["path"] for one in json.loads(done.out)["findings"]] == ["b/app.py"]
    assert (
        "foreign-comments = false  # command line"
        in project.troth("check", "--show-settings", "--no-foreign-comments").out
    )
    assert project.shell("troth check", TROTH_NO_FOREIGN_COMMENTS="1").out.count("TR101") == 2
    assert project.troth("fix").code == 0
    assert "await" not in (project.root / "a/app.py").read_text()


def test_needless_async_that_is_acknowledged(project):
    """The comment stands on the line of the `def`."""
    text = "async def load():  # noqa: RUF029\n    return 1\n\n\nasync def main():\n"
    project.write({"app.py": f"{text}    return await load()\n"})
    done = project.troth("check", "--select", "TR301", "--no-cache")
    assert (done.code, "for other linters" in done.out) == (0, True)
    project.write({"app.py": f"{text.replace('RUF029', 'RUF006')}    return await load()\n"})
    assert project.troth("check", "--select", "TR301", "--no-cache").code == 1


def test_comments_silence_and_idle_ones_are_reported(buggy):
    """`# troth: allow` counts; `# noqa` and `# type: ignore` do not; one that silences nothing is a finding."""
    buggy.write({"service.py": buggy.service.replace("save()", "save()  # troth: allow unawaited-coroutine")})
    done = buggy.troth("check")
    assert (done.code, done.out) == (0, "All clear: 2 files checked (1 silenced by `# troth: allow`)\n")
    buggy.write({"service.py": buggy.service.replace("save()", "save()  # noqa  # type: ignore")})
    assert buggy.troth("check").code == 1
    buggy.write({"service.py": buggy.clean.replace("save()", "save()  # troth: allow unawaited-coroutine")})
    done = buggy.troth("check", "--output-format", "json")
    assert [one["rule"] for one in json.loads(done.out)["findings"]] == ["unused-allow"]
    assert json.loads(buggy.troth("check", "--select", "TR002", "--output-format", "json").out)["findings"] == []


def test_several_outputs_in_one_run(buggy):
    """Each format goes where it is sent; text is on stdout unless another takes its place."""
    done = buggy.troth("check", "-o", "sarif:x.sarif", "-o", "github:-", "-o", "json:x.json", "-o", "text:x.txt")
    assert done.out.startswith("::error file=service.py,line=6,")
    (result,) = json.loads((buggy.root / "x.sarif").read_text())["runs"][0]["results"]
    (found,) = json.loads((buggy.root / "x.json").read_text())["findings"]
    assert result["ruleId"] == found["code"]
    assert (buggy.root / "x.txt").read_text().startswith("service.py:6:5  ")
    assert buggy.troth("check", "-o", "sarif:x.sarif").out.startswith("service.py:6:5")


def test_names_that_are_no_text(project):
    """A file's name may hold any byte; every format still says something that can be read."""
    name = os.fsdecode(b"sub dir/\xff\xc3\xbc.py")
    project.write({name: "async def f(): ...\nasync def g():\n    f()\n"})
    for name in ("text", "github", "json", "sarif"):
        done = project.shell(f"troth check --output-format {name}", PYTHONIOENCODING="ascii")
        assert (done.code, done.err) == (1, "")
        if name in ("json", "sarif"):
            json.loads(done.out)
    assert project.shell("troth check --write-baseline && troth check --baseline troth-baseline.json").code == 0


def test_the_output_is_not_read_as_source(buggy):
    """Reports in the project do not disturb the next run, and no stray file is left."""
    before = buggy.troth("check").out
    buggy.troth("check", "-o", "json:report.json")
    assert buggy.troth("check").out == before
    assert sorted(path.name for path in buggy.root.iterdir()) == [
        "pyproject.toml",
        "report.json",
        "service.py",
        "store.py",
    ]


def test_statistics(buggy):
    """Counts instead of findings, with the same exit code."""
    done = buggy.troth("check", "--statistics")
    assert (done.code, done.out.splitlines()[0]) == (1, "1  TR101 unawaited-coroutine  in 1 file, 1 with a fix")


def test_show_files(buggy):
    """The files that would be checked, from the working folder; no analysis."""
    buggy.write({".gitignore": "gen\n", "gen/a.py": "", "n.ipynb": "{}"})
    assert buggy.troth("check", "--show-files").out.split() == ["n.ipynb", "service.py", "store.py"]


def test_baseline(buggy):
    """Known findings are quiet, new ones are loud, repaired ones are told."""
    done = buggy.troth("check", "--write-baseline")
    assert (done.code, done.out) == (
        0,
        "Wrote 1 finding to troth-baseline.json; from now on, only new findings are reported\n",
    )
    for settings in ("", '[tool.troth]\nbaseline = "troth-baseline.json"\n'):
        buggy.write({"pyproject.toml": settings})
        done = buggy.troth("check")
        assert (done.code, done.out) == (0, "Nothing new: 2 files checked (1 known to the baseline)\n")
    (buggy.root / "service.py").rename(buggy.root / "moved.py")
    assert buggy.troth("check").code == 0
    buggy.write({"moved.py": "# shifted\n" * 10 + buggy.service + "    store.save()\n"})
    done = buggy.troth("check", "--output-format", "json")
    assert [(one["path"], one["line"]) for one in json.loads(done.out)["findings"]] == [("moved.py", 17)]
    buggy.write({"moved.py": buggy.clean})
    done = buggy.troth("check")
    assert done.code == 0
    assert "TR101" in done.out
    assert "1 entry is stale in troth-baseline.json" in done.out
    done = buggy.troth("check", "--output-format", "json")
    assert (json.loads(done.out)["findings"], "stale" in done.err) == ([], True)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param(
            "", "Wrote 1 finding to b.json; `troth check --baseline b.json` reports only new findings\n", id="not"
        ),
        pytest.param(
            '[tool.troth]\nbaseline = "b.json"\n',
            "Wrote 1 finding to b.json; from now on, only new findings are reported\n",
            id="in the settings",
        ),
    ],
)
def test_a_baseline_of_another_name(settings, says, buggy):
    """What is said of the next run is true."""
    buggy.write({"pyproject.toml": settings})
    assert buggy.troth("check", "--write-baseline", "--baseline", "b.json").out == says
    assert buggy.troth("check").code == ("from now on" not in says)
    assert buggy.troth("check", "--baseline", "b.json").code == 0


def test_a_blocking_helper_is_one_problem_everywhere(project):
    """Counts of the baseline and of each format agree; a caller that is new is news, and a comment goes to each call."""
    helper = "import subprocess\ndef build():\n    subprocess.run(['make'])\n"
    callers = "".join(f"async def {name}():\n    build()\n" for name in "abc")
    project.write({"app.py": helper + callers})
    text, found = project.troth("check"), json.loads(project.troth("check", "--output-format", "json").out)["findings"]
    assert "Found 1 problem" in text.out
    assert [finding["message"].rpartition("; ")[2] for finding in found] == ["3 calls in async code lead there"]
    assert project.troth("check", "--write-baseline").out.startswith("Wrote 1 finding ")
    assert project.troth("check").out == "Nothing new: 1 file checked (1 known to the baseline)\n"
    project.write({"app.py": helper + callers + "async def d():\n    build()\n"})
    done = project.troth("check", "--output-format", "concise")
    assert (done.code, done.out.count("app.py:"), done.out.count("lead there")) == (1, 1, 0)
    (project.root / "troth-baseline.json").unlink()
    assert project.troth("check", "--add-allow").out.startswith("Added 4 comments ")


def test_a_baseline_knows_what_is_not_asked_for(buggy):
    """Asking for other rules, or other files, makes nothing stale, and taking stock of them forgets nothing."""
    buggy.write(
        {"other.py": buggy.service.replace("save()", "load()"), "pyproject.toml": '[tool.troth]\nbaseline = "b"\n'}
    )
    buggy.troth("check", "--write-baseline")
    for arguments in (["--select", "TR0"], ["service.py"], ["store.py"], ["--confidence", "certain"]):
        done = buggy.troth("check", *arguments)
        assert (done.code, "stale" in done.out) == (0, False)
    before = (buggy.root / "b").read_text()
    assert before.count("TR101") == 2
    for arguments in (["--select", "TR0"], ["service.py"]):
        buggy.troth("check", "--write-baseline", *arguments)
        assert (buggy.root / "b").read_text() == before


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_source_on_stdin(name, buggy):
    """It stands for its file, and is understood with the project around it."""
    buggy.write({"service.py": buggy.clean, "unsaved": buggy.service})
    done = buggy.shell(f"troth check {name} --stdin-filename service.py < unsaved")
    assert (done.code, done.out.split("  ")[0]) == (1, "service.py:6:5")
    done = buggy.shell(f"cat unsaved | troth check {name} --stdin-filename new.py")
    assert (done.code, done.out.split("  ")[0]) == (1, "new.py:6:5")


def test_source_in_a_pipe(buggy):
    """Bash makes a pipe of `<(…)` and names it by a path that leads nowhere else."""
    done = buggy.shell("troth check <(cat service.py) --stdin-filename service.py")
    assert (done.code, done.out.split("  ")[0]) == (1, "service.py:6:5")
    done = buggy.shell("troth check <(cat service.py)")
    assert (done.code, done.out.split("  ")[0]) == (1, "stdin.py:6:5")
    assert "cannot be combined with other paths" in buggy.shell("troth check <(cat service.py) store.py").err


def test_a_snippet_on_stdin(tmp_path, buggy):
    """Without a name it is a file of its own in the working folder."""
    done = buggy.shell("printf 'async def f(): ...\\nasync def g():\\n    f()\\n' | troth check -")
    assert (done.code, done.out.split("  ")[0]) == (1, "stdin.py:3:5")


def test_a_file_that_does_not_parse_is_one_finding(buggy):
    """The rest is still checked, and the exit code is that of findings."""
    buggy.write({"broken.py": "def (:\n", "bytes.py": b"\xff\xfe\x00x = 1\n"})
    done = buggy.troth("check", "--output-format", "json")
    found = json.loads(done.out)["findings"]
    assert [one["path"] for one in found] == ["broken.py", "bytes.py", "service.py"]
    assert done.code == 1


@pytest.mark.parametrize("count", [1, 400])
def test_a_reader_who_leaves_does_not_change_the_exit_code(count, project):
    """`| head` gets its line, no traceback appears, and the code is that of the findings, also of many."""
    calls = "    store.save()\n" * count
    project.write({"store.py": project.store, "service.py": project.service + calls})
    done = project.shell("troth check | head -1; echo ${PIPESTATUS[0]}")
    assert done.out.splitlines()[-1] == "1"
    assert done.err == ""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(["check"], id="check"),
        pytest.param(["check", "--output-format", "json"], id="check, as JSON"),
        pytest.param(["check", "missing.py"], id="wrong use"),
        pytest.param(["check", "empty"], id="nothing to check"),
        pytest.param(["fix", "--diff"], id="fix"),
        pytest.param(["fix", "store.py"], id="nothing to fix"),
        pytest.param(["recolor", "store:Store.save", "--to", "sync"], id="recolor"),
        pytest.param(["mutate", "--list", "service.py"], id="mutate"),
        pytest.param(["nosuch"], id="no command"),
        pytest.param([], id="nothing"),
    ],
)
def test_nobody_reads_stdout_and_stderr(line, buggy):
    """`2>&1 | head`: the exit code is the same as with a reader, whatever is written to whichever stream."""
    (buggy.root / "empty").mkdir()
    buggy.write({"other.py": "def f(thing):\n    thing.save()\n"})  # which of them is meant cannot be told
    with_reader = buggy.troth(*line).code
    for file in ("store.py", "service.py"):
        buggy.write({file: getattr(buggy, file.removesuffix(".py"))})
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "troth", *line]
    done = subprocess.run(command, cwd=buggy.root, stdout=writer, stderr=writer, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == with_reader


def test_results_that_cannot_be_written(buggy):
    """A full disk is told, without a traceback."""
    done = buggy.shell("troth check > /dev/full")
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "The results could not be written to stdout: No space left on device.",
    )


def test_no_escape_byte_where_nobody_can_see_color(buggy):
    """In a pipe, with NO_COLOR, and on a dumb terminal."""
    assert "\x1b" not in buggy.shell("troth check").out
    assert "\x1b" in buggy.shell("troth check", FORCE_COLOR="1").out
    assert "\x1b" not in buggy.shell("troth check", FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b" not in on_terminal(buggy.root, TERM="dumb")
    assert "\x1b" not in on_terminal(buggy.root, NO_COLOR="1", TERM="xterm").replace("\r\x1b[2K", "").replace(
        "reading", ""
    )


def test_frames_on_a_terminal(buggy):
    """The code of both places is shown there, and only there."""
    shown = on_terminal(buggy.root, NO_COLOR="1", TERM="xterm")
    assert "6 |     store.save()" in shown
    assert "^^^^^^^^^^^^" in shown
    assert "2 |     async def save(self): ..." in shown
    assert " | " not in buggy.shell("troth check").out


@pytest.mark.parametrize("words", [["check"], ["fix"], ["explain", "TR101"]], ids=" ".join)
@pytest.mark.parametrize("width", [40, 62])
def test_long_lines_on_a_terminal(words, width, buggy):
    """They are broken between words; what stays longer is a place, a page or code."""
    buggy.write({"service.py": "from store import Store\n\n\ndef main():\n    store = Store()\n    store.save()\n"})
    shown = on_terminal(buggy.root, *words, width=width, NO_COLOR="1", TERM="xterm")
    long = [line for line in shown.splitlines() if len(line) > width]
    assert [line for line in long if not re.match(r"\S+:\d+:\d+  T|(  see  )?\S+$|    ", line)] == []
    text = " ".join(buggy.troth(*words).out.split())
    assert " ".join(shown.split()) == text or " | " in shown
    assert max(map(len, buggy.troth(*words).out.splitlines())) > 80


def test_phases_on_a_terminal(buggy):
    """Reading comes first, then checking; nothing of it is left on the screen, and `--quiet` shows neither."""
    shown = on_terminal(buggy.root, TERM="xterm")
    assert shown.index("reading 0/2  s") < shown.index("checking  2 files") < shown.index("TR101")
    assert "reading" not in on_terminal(buggy.root, "check", "--quiet", TERM="xterm")


def on_terminal(cwd, *words, width=0, **environ):
    """What `troth check`, or another command, shows on a terminal of its own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "troth", *(words or ["check"])]
    with subprocess.Popen(command, cwd=cwd, env=env | environ, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 30)[0]:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how Linux tells that the other side is closed
                break
            if not part:
                break
            shown += part
        process.wait(timeout=30)
    os.close(ours)
    return shown.decode()


def test_interrupt(project):
    """Ctrl-C ends it with 130 and no traceback."""
    project.write({"a.py": "x = 1\n"})
    reader, writer = os.pipe()
    os.write(writer, b"x = 1\n")
    command = [sys.executable, "-m", "troth", "check", "-"]
    with subprocess.Popen(command, cwd=project.root, stdin=reader, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while fcntl.ioctl(writer, termios.FIONREAD, b"\0" * 4) != b"\0" * 4:  # until it has read, and waits for more
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    os.close(reader)
    os.close(writer)
    assert (process.returncode, err.strip()) == (130, b"Interrupted.")


def test_the_cache_hides_itself(buggy, monkeypatch):
    """It lies in the project, and version control does not see it; switches turn it off."""
    buggy.commit()
    buggy.troth("check")
    assert not (buggy.root / ".troth_cache").exists()
    monkeypatch.setenv("TROTH_NO_CACHE", "0")
    buggy.troth("check", "--no-cache")
    assert not (buggy.root / ".troth_cache").exists()
    first = buggy.troth("check")
    assert (buggy.root / ".troth_cache").is_dir()
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=buggy.root, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""
    assert buggy.troth("check").out == first.out
    buggy.troth("check", "--cache-dir", "elsewhere")
    assert (buggy.root / "elsewhere/.gitignore").read_text() == "*\n"


def test_a_switch_that_is_neither_on_nor_off(buggy, monkeypatch):
    """Is refused by name."""
    monkeypatch.setenv("TROTH_NO_CACHE", "maybe")
    done = buggy.troth("check")
    assert (done.code, "TROTH_NO_CACHE" in done.err) == (2, True)


@pytest.mark.parametrize("module", ["troth.analysis.report.json", "troth.analysis.report.sarif", "asyncio", "shtab"])
def test_only_what_is_used_is_imported(module, buggy):
    """A check that prints text does not pay for other outputs."""
    buggy.write({"service.py": buggy.clean})
    script = (
        "import sys; from troth.cli.app import run; code = run(['check', '--jobs', '1']); "
        f"sys.exit(code or {module!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=buggy.root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
