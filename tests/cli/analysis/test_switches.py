"""The switches that users know from other linters."""

import json
import xml.etree.ElementTree as ET

import pytest

NEEDLESS = (
    "async def answer():\n    return 42\n\n\nasync def main():\n    return await answer()\n"  # TR301, off by default
)


def codes(done):
    return sorted(one["code"] for one in json.loads(done.out)["findings"])


@pytest.mark.parametrize("command", ["check", "fix"])
def test_exit_zero(command, buggy):
    """What is found is told, and does not fail the build; wrong use still does."""
    buggy.write({"service.py": "from store import Store\n\n\ndef main():\n    Store().save()\n"})  # no fix awaits here
    assert buggy.troth(command).code == 1
    done = buggy.troth(command, "--exit-zero")
    assert (done.code, "TR101" in done.out) == (0, True)
    assert buggy.troth(command, "--exit-zero", "missing.py").code == 2


def test_exit_zero_of_a_diff(buggy):
    assert buggy.troth("fix", "--diff").code == 1
    assert buggy.troth("fix", "--diff", "--exit-zero").code == 0


@pytest.mark.parametrize("switch", ["-q", "--quiet"])
def test_quiet(switch, buggy):
    """Findings and nothing else; where there are none, nothing."""
    loud = buggy.troth("check")
    quiet = buggy.troth("check", switch)
    assert quiet.code == 1
    assert loud.out.startswith(quiet.out)
    assert "Found 1 problem" in loud.out
    assert "Found" not in quiet.out
    assert buggy.troth("check", "store.py", switch).out == ""
    assert buggy.troth("check", "--write-baseline", switch).out == ""
    fixed = buggy.write({"troth-baseline.json": '{"version": 1, "findings": []}'}).troth("fix", switch)
    assert (fixed.code, fixed.out, fixed.err) == (0, "", "")


def test_quiet_says_what_is_wrong(buggy):
    """Errors are told."""
    assert "cannot be checked" in buggy.troth("check", "-q", "missing.py").err


@pytest.mark.parametrize(
    ("settings", "options", "found"),
    [
        pytest.param("", [], ["TR101"], id="the default"),
        pytest.param("", ["--extend-select", "TR301"], ["TR101", "TR301"], id="beside the default"),
        pytest.param("", ["--extend-select", "needless-async"], ["TR101", "TR301"], id="by name"),
        pytest.param("", ["--select", "TR2", "--extend-select", "TR3"], ["TR301"], id="beside those selected"),
        pytest.param("", ["--extend-select", "TR301", "--ignore", "TR3"], ["TR101", "TR301"], id="the exact one wins"),
        pytest.param("", ["--extend-select", "TR3", "--ignore", "TR301"], ["TR101"], id="less one"),
        pytest.param('extend-select = ["TR301"]', [], ["TR101", "TR301"], id="in the settings"),
        pytest.param(
            'select = ["TR2"]\nextend-select = ["TR1"]', ["--extend-select", "TR3"], ["TR101", "TR301"], id="both"
        ),
    ],
)
def test_extend_select(settings, options, found, buggy):
    """Rules are added to those that are on, also those that are off by default."""
    buggy.write({"pyproject.toml": f"[tool.troth]\n{settings}\n", "needless.py": NEEDLESS})
    assert codes(buggy.troth("check", "--output-format", "json", *options)) == found


@pytest.mark.parametrize("option", ["--extend-select"])
def test_a_rule_that_does_not_exist(option, buggy):
    done = buggy.troth("check", option, "TR999")
    assert (done.code, "`--extend-select`: there is no rule 'TR999'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "files"),
    [
        pytest.param([], ["app.py", "old/c.py"], id="the settings alone"),
        pytest.param(["--exclude", "old"], ["app.py", "gen/b.py"], id="instead of them"),
        pytest.param(["--exclude", "old,gen"], ["app.py"], id="several"),
        pytest.param(["--exclude", "old", "--exclude", "gen/"], ["app.py"], id="repeated"),
        pytest.param(["--extend-exclude", "old"], ["app.py"], id="beside them"),
        pytest.param(["--exclude", "old", "--extend-exclude", "a*.py"], ["gen/b.py"], id="both"),
        pytest.param(["--extend-exclude", "old", "old"], ["old/c.py"], id="a folder that is named is taken"),
        pytest.param(["--config", "exclude = []"], ["app.py", "gen/b.py", "old/c.py"], id="none, by a setting"),
    ],
)
def test_exclude(options, files, project):
    """Patterns as in `.gitignore`, from the working folder."""
    project.write({"pyproject.toml": '[tool.troth]\nexclude = ["gen"]\n'})
    project.write({"app.py": "", "gen/b.py": "", "old/c.py": ""})
    assert project.troth("check", "--show-files", *options).out.split() == files


def test_exclude_from_a_folder_below(project):
    project.write({"a.py": "", "sub/a.py": "", "sub/b.py": ""})
    assert project.troth("check", "--show-files", "--exclude", "a.py", "..", cwd="sub").out.split() == [
        "../a.py",
        "b.py",
    ]


def test_exclude_of_fix(buggy):
    """What is not read is not repaired."""
    assert buggy.troth("fix", "--exclude", "service.py").code == 0
    assert (buggy.root / "service.py").read_text() == buggy.service


@pytest.mark.parametrize(
    ("options", "environ", "is_colored"),
    [
        pytest.param("--color always", {}, True, id="always"),
        pytest.param("--color=always", {"NO_COLOR": "1"}, True, id="always, against the environment"),
        pytest.param("--color never", {"FORCE_COLOR": "1"}, False, id="never"),
        pytest.param("--color auto", {"FORCE_COLOR": "1"}, True, id="auto"),
        pytest.param("", {"TROTH_COLOR": "always"}, True, id="a variable"),
        pytest.param("--color never", {"TROTH_COLOR": "always"}, False, id="a variable, and the option"),
    ],
)
@pytest.mark.parametrize("command", ["check", "check --output-format concise", "fix"])
def test_color(command, options, environ, is_colored, buggy):
    """The option decides, then the variables, then the terminal."""
    buggy.write({"service.py": buggy.service + "\n\ndef lose():\n    Store().save()\n"})
    assert ("\x1b[" in buggy.shell(f"troth {command} {options}", **environ).out) is is_colored


@pytest.mark.parametrize(
    ("options", "found"),
    [
        pytest.param(["--config", "other.toml"], [], id="a file"),
        pytest.param(["--config", "sub/pyproject.toml"], ["TR101"], id="a pyproject"),
        pytest.param(["--config", 'ignore = ["TR3"]'], ["TR101"], id="a setting"),
        pytest.param(
            ["--config", 'ignore = ["TR3"]', "--config", 'confidence="certain"'], ["TR101"], id="two settings"
        ),
        pytest.param(["--config", "other.toml", "--config", "ignore = []"], ["TR101"], id="a file and a setting"),
        pytest.param(["--isolated"], ["TR101"], id="no file"),
        pytest.param(["--isolated", "--config", 'ignore = ["TR1"]'], [], id="no file, and a setting"),
    ],
)
def test_config(options, found, buggy):
    """A file stands in the place of all others; a setting wins over files."""
    buggy.write(
        {
            "pyproject.toml": '[tool.troth]\nextend-select = ["TR301"]\nignore = ["TR101"]\n',
            "other.toml": 'ignore = ["TR1"]\n',
            "sub/pyproject.toml": '[tool.troth]\nignore = ["TR3"]\n',
        }
    )
    assert codes(buggy.troth("check", "--output-format", "json")) == []
    assert codes(buggy.troth("check", "--output-format", "json", *options)) == found


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(["--config", "missing.toml"], "there is no such file", id="missing"),
        pytest.param(["--config", "selekt = 1"], "`--config selekt = 1`: There is no setting 'selekt'.", id="typo"),
        pytest.param(["--config", "select = TR1"], "neither a file nor TOML", id="not TOML"),
        pytest.param(
            ["--config", 'select = ["TR999"]'], "`--config`: `select`: there is no rule 'TR999'", id="no rule"
        ),
        pytest.param(["--config", "a.toml", "--config", "b.toml"], "Two settings files are named", id="two files"),
        pytest.param(["--config", "a.toml", "--isolated"], "`--isolated` reads none", id="a file, and none"),
    ],
)
def test_wrong_config(options, says, buggy):
    """It is refused, with its place."""
    buggy.write({"a.toml": "", "b.toml": ""})
    done = buggy.troth("check", *options)
    assert (done.code, says in done.err) == (2, True), done.err


def test_isolated_reads_no_baseline(buggy):
    """Only what is named."""
    buggy.troth("check", "--write-baseline")
    assert buggy.troth("check").code == 0
    assert buggy.troth("check", "--isolated").code == 1
    assert buggy.troth("check", "--isolated", "--baseline", "troth-baseline.json").code == 0


def test_show_settings(buggy):
    """What applies and where it stands, as TOML that can be read again."""
    buggy.write(
        {
            "pyproject.toml": '[tool.troth]\nselect = ["TR1"]\nignore = ["TR102"]\nexclude = ["gen"]\n'
            '[tool.troth.per-file-ignores]\n"tests/*" = ["TR101"]\n',
            "sub/troth.toml": 'confidence = "certain"\n',
        }
    )
    out = buggy.troth("check", "--show-settings", "--ignore", "TR2", "--extend-exclude", "old", cwd="sub").out
    lines = out.splitlines()
    assert 'confidence = "certain"  # troth.toml' in lines
    assert f'select = ["TR1"]  # {buggy.root}/pyproject.toml' in lines
    assert 'ignore = ["TR102", "TR2"]  # command line' in lines
    assert f'per-file-ignores = {{ "tests/*" = ["TR101"] }}  # {buggy.root}/pyproject.toml' in lines
    assert '# also excluded: ["old"]  (command line)' in lines
    assert "# extend-select: none" in lines
    buggy.write({"again.toml": out})
    again = buggy.troth("check", "--show-settings", "--config", "again.toml").out
    assert 'ignore = ["TR102", "TR2"]  # again.toml' in again.splitlines()


ODD = """from store import Store


async def main(store: Store, key):
    store.save()  # noqa: E501
    store.save()  # troth: allow TR002, stored-coroutine my reason
    store.save(
    )
    x = [
        store.load()["a"],
    ]
    text = f\"\"\"
    {store.load()}
    \"\"\"
    if key and \\
            store.save():
        pass
    store.save(); store.load()
    return x, text
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_add_allow(ends, mark, buggy):
    """Each finding gets its comment where one can stand, and nothing else changes; afterwards all is silent."""
    odd = (mark + ODD.replace("\n", ends)).encode()
    buggy.write({"odd.py": odd, "service.py": buggy.service})
    count = len(json.loads(buggy.troth("check", "--output-format", "json", "--ignore", "TR002").out)["findings"])
    assert count == 9
    done = buggy.troth("check", "--add-allow", "--ignore", "TR002")
    assert (done.code, done.out) == (0, "Added 8 comments in 2 files; `troth fix --undo` removes them\n")
    after = (buggy.root / "odd.py").read_bytes().decode()
    assert after.startswith(mark)
    assert f"store.save()  # noqa: E501  # troth: allow unawaited-coroutine{ends}" in after
    assert f"# troth: allow TR002, stored-coroutine, unawaited-coroutine my reason{ends}" in after
    done = buggy.troth("check", "--ignore", "TR002")
    assert (done.code, done.out) == (0, "All clear: 3 files checked (9 silenced by `# troth: allow`)\n")
    assert buggy.troth("fix", "--undo").code == 0
    assert (buggy.root / "odd.py").read_bytes() == odd


def test_add_allow_where_no_comment_can_stand(buggy):
    """A notebook and a file that is not Python are told, and are the exit code."""
    cells = [{"cell_type": "code", "source": ["async def f(): ...\n", "f()\n"], "metadata": {}, "outputs": []}]
    buggy.write({"n.ipynb": json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}), "broken.py": "def (:\n"})
    done = buggy.troth("check", "--add-allow")
    assert done.code == 1
    assert done.out.startswith("Added 1 comment in 1 file; ")
    assert "broken.py:1:" in done.out
    assert "n.ipynb#1:2:1: TR101" in done.out
    assert buggy.shell("cat service.py | troth check - --add-allow").code == 2


@pytest.mark.parametrize("option", ["--write-baseline", "--statistics", "-o concise:report"])
def test_add_allow_beside_what_asks_for_findings(option, buggy):
    """Nothing that was asked for is left undone in silence."""
    done = buggy.troth("check", "--add-allow", *option.split())
    assert (done.code, f"`{option.split()[0]}` is about" in done.err) == (2, True), done.err
    assert (buggy.root / "service.py").read_text() == buggy.service


def test_comments_of_other_tools_in_a_project(buggy):
    """`ignore[…]` and a comment for a whole file count, and are counted."""
    buggy.write({"service.py": buggy.service.replace("save()", "save()  # troth: ignore[TR101]")})
    buggy.write({"other.py": "# troth: allow-file unawaited-coroutine\n" + buggy.service})
    done = buggy.troth("check")
    assert (done.code, done.out) == (0, "All clear: 3 files checked (2 silenced by `# troth: allow`)\n")


def test_concise(buggy):
    """One line per finding, as compilers print it."""
    done = buggy.troth("check", "--output-format", "concise")
    first, last = done.out.splitlines()
    assert (
        first == "service.py:6:5: TR101 [*] `store.save()` makes a coroutine and drops it, so `Store.save` never runs"
    )
    assert last.startswith("Found 1 problem")
    assert buggy.troth("check", "--output-format", "concise", "-q").out == first + "\n"
    assert buggy.troth("check", "--output-format", "concise", "-q", "store.py").out == ""


def test_gitlab(buggy):
    """A code quality report: unique fingerprints, paths from the root."""
    buggy.write({"sub/service.py": buggy.service + "    store.save()\n"})
    rows = json.loads(buggy.troth("check", "--output-format", "gitlab", cwd="sub").out)
    assert [(row["location"]["path"], row["location"]["positions"]["begin"]) for row in rows] == [
        ("sub/service.py", {"line": 6, "column": 5}),
        ("sub/service.py", {"line": 7, "column": 5}),
    ]
    rows = json.loads(buggy.troth("check", "--output-format", "gitlab").out)
    assert len({row["fingerprint"] for row in rows}) == len(rows) == 3
    assert {(row["check_name"], row["severity"]) for row in rows} == {("unawaited-coroutine", "major")}
    assert buggy.troth("check", "--output-format", "gitlab", "store.py").out == "[]\n"


def test_junit(buggy):
    """A failed test per finding, a passed one where there is none; every letter that XML knows."""
    buggy.write({"sub/odd & <name>.py": buggy.service.replace("store.save()", "'\x07' and store.save()")})
    root = ET.fromstring(buggy.troth("check", "--output-format", "junit").out)
    assert (root.get("tests"), root.get("failures")) == ("2", "2")
    assert [suite.get("name") for suite in root] == ["service.py", "sub/odd & <name>.py"]
    case = root[0][0]
    assert (case.get("name"), case.get("line")) == ("TR101 unawaited-coroutine (line 6)", "6")
    assert "because" in case[0].text
    root = ET.fromstring(buggy.troth("check", "--output-format", "junit", "store.py").out)
    assert (root.get("tests"), root.get("failures"), len(root[0][0])) == ("1", "0", 0)


@pytest.mark.parametrize("format_", ["concise", "gitlab", "junit"])
def test_formats_to_files(format_, buggy):
    """Each can be written beside the text."""
    done = buggy.troth("check", "-o", f"{format_}:report")
    assert "Found 1 problem" in done.out
    assert "TR101" in (buggy.root / "report").read_text()


@pytest.mark.parametrize(
    ("environ", "line", "check"),
    [
        pytest.param({"TROTH_OUTPUT_FORMAT": "json"}, "check", lambda out: out.startswith("{"), id="a value"),
        pytest.param({"TROTH_OUTPUT_FORMAT": "json"}, "check --output-format concise", lambda out: ": TR101 [*]" in out, id="the option wins"),
        pytest.param({"TROTH_OUTPUT_FORMAT": "json"}, "check -o concise:-", lambda out: ": TR101 [*]" in out, id="so does its brother"),
        pytest.param({"TROTH_QUIET": "1"}, "check", lambda out: "TR101" in out and "Found" not in out, id="a switch"),
        pytest.param({"TROTH_QUIET": "no"}, "check", lambda out: "Found" in out, id="a switch that is off"),
        pytest.param({"TROTH_SELECT": "TR2,TR3"}, "check", lambda out: out.startswith("All clear"), id="a list"),
        pytest.param({"TROTH_SELECT": "TR2"}, "check --select TR1", lambda out: "TR101" in out, id="a list that is not added to"),
        pytest.param({"TROTH_SELECT": ""}, "check", lambda out: "TR101" in out, id="an empty one"),
        pytest.param({"TROTH_CONFIG": 'ignore = ["TR1"]'}, "check", lambda out: out.startswith("All clear"), id="a setting"),
        pytest.param({"TROTH_EXCLUDE": "service.py"}, "fix", lambda out: out.startswith("All clear"), id="of fix"),
        pytest.param({"TROTH_ALL": "1", "TROTH_DIFF": "1"}, "check", lambda out: "TR101" in out, id="what is no variable"),
    ],
)  # fmt: skip
def test_variables(environ, line, check, buggy):
    """The environment stands in for options that the command line does not have."""
    out = buggy.shell(f"troth {line}", **environ).out
    assert check(out), out


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        pytest.param("TROTH_JOBS", "many", "`TROTH_JOBS` is 'many'.", id="no number"),
        pytest.param("TROTH_OUTPUT_FORMAT", "xml", "`TROTH_OUTPUT_FORMAT` is 'xml'.", id="no format"),
        pytest.param("TROTH_QUIET", "maybe", "`TROTH_QUIET` is 'maybe'", id="no switch"),
    ],
)
def test_wrong_variables(name, value, says, buggy):
    """They are refused by their name."""
    done = buggy.shell("troth check", **{name: value})
    assert (done.code, says in done.err) == (2, True), done.err


def test_agent_format(buggy):
    """Each edit is a diff that `git apply` takes at the root; where there is none, the command that helps is named."""
    buggy.write({"plain.py": "from store import Store\n\n\ndef a():\n    Store().save()\n\n\ndef b():\n    a()\n"})
    buggy.commit()
    done = buggy.troth("check", "--output-format", "agent", cwd=".")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(f"Project: {buggy.root} (all paths are relative to it)\n\n1. TR101 ")
    paragraphs = done.out.split("\n\n")
    assert len(paragraphs) == 4
    assert "\nCommand: troth recolor plain:a --to async --cascade all (makes `a` and 1 caller" in paragraphs[1]
    patch = paragraphs[2][paragraphs[2].index("--- a/") :]
    (buggy.root / "fix.patch").write_text(f"{patch}\n")
    buggy.git("apply", "fix.patch")
    assert (buggy.root / "service.py").read_text() == buggy.clean
    assert buggy.troth("check", "service.py", "--output-format", "agent").out.endswith("\nNo findings in 1 file.\n")


@pytest.mark.parametrize(
    ("command", "environ", "line"),
    [
        ("fix --diff", {"FORCE_COLOR": "1"}, "\x1b[32m+    await store.save()\x1b[0m"),
        ("fix --diff", {}, "+    await store.save()\r"),
        ("fix --diff --color always", {}, "\x1b[1m--- a/service.py\x1b[0m"),
        ("fix --diff", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, "-    store.save()\r"),
        ("recolor store:Store.load --to sync --diff --color always", {}, "\x1b[36m@@ -1,3 +1,3 @@\x1b[0m"),
    ],
)
def test_a_diff_in_color(buggy, command, environ, line):
    """A terminal shows what goes in red and what comes in green; a pipe gets the bytes, carriage returns too."""
    buggy.write({"service.py": buggy.service.replace("\n", "\r\n")})
    done = buggy.shell(f"troth {command} | od -An -v -tx1", **environ)
    assert line in bytes.fromhex(done.out).decode().split("\n")
