"""The codes that rules had at first: understood everywhere, with one hint per run."""

import json

import pytest

from troth.analysis.findings import Finding, Span
from troth.analysis.old_codes import OldCode, current, hint
from troth.analysis.report.fingerprint import fingerprints

HINT = "Codes of rules start with `TR` now: "
BASELINE = {
    "version": 1,
    "findings": [
        {"path": "service.py", "symbol": "main", "code": "T101", "subject": "store.save", "text": "store.save()"},
    ],
}


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("T101", "TR101"),
        ("T1", "TR1"),
        ("T", "TR"),
        ("TR101", "TR101"),
        ("T1x", "T1x"),
        ("T²", "T²"),
        ("", ""),
        ("unawaited-coroutine", "unawaited-coroutine"),
    ],
)
def test_what_a_word_means_now(word, meant):
    assert current(word) == meant


@pytest.mark.parametrize(
    ("old", "told"),
    [
        pytest.param([], "", id="none"),
        pytest.param([OldCode("T101", "a.py:3")] * 2, "`T101` (a.py:3) means `TR101`. Old", id="the same twice"),
        pytest.param([OldCode("T1", "`--select`"), OldCode("T101", "a.py:3")], "; 1 more place uses an old", id="two"),
        pytest.param([OldCode("T1", f"a.py:{n}") for n in range(3)], "; 2 more places use an old", id="three"),
    ],
)
def test_the_hint_is_one_line(old, told):
    assert told in hint(old)
    assert hint(old).count("\n") == bool(old)


@pytest.mark.parametrize(
    ("files", "options", "place", "code"),
    [
        pytest.param({}, ["--select", "T101"], "`--select`", 1, id="a code"),
        pytest.param({}, ["--select", "t101"], "`--select`", 1, id="a small letter"),
        pytest.param({}, ["--select", "T3"], "`--select`", 0, id="a family"),
        pytest.param({}, ["--ignore", "T"], "`--ignore`", 0, id="all"),
        pytest.param(
            {}, ["--select", "TR3", "--extend-select", "T1"], "`--extend-select`", 1, id="rules that are added"
        ),
        pytest.param({}, ["--config", 'ignore = ["T1"]'], "`--config`", 0, id="a setting in the command line"),
        pytest.param({"troth.toml": '\nignore = ["T1"]\n'}, [], "troth.toml:2", 0, id="a setting"),
        pytest.param({"troth.toml": 'select = ["T3"]\n'}, [], "troth.toml:1", 0, id="rules that are selected"),
        pytest.param(
            {"pyproject.toml": '[tool.troth.per-file-ignores]\n"*.py" = ["T101"]\n'},
            [],
            "pyproject.toml:2",
            0,
            id="files",
        ),
        pytest.param({"troth-baseline.json": json.dumps(BASELINE)}, [], "troth-baseline.json", 0, id="a baseline"),
    ],
)
def test_old_codes_in_options_and_settings(files, options, place, code, buggy):
    """They mean what they meant, and stderr says once what they are called now."""
    done = buggy.write(files).troth("check", *options)
    assert done.code == code
    assert done.err.count(HINT) == 1
    assert f"{place}) means `TR" in done.err
    assert HINT not in buggy.troth("check", "-q", *options).err


@pytest.mark.parametrize("comment", ["allow T101", "ignore[T101]", "allow T102, T101", "ignore-file[T101]"])
def test_old_codes_in_comments(comment, buggy):
    """They silence what they silenced; and one that silences nothing is told as it is written."""
    buggy.write({"service.py": buggy.service.rstrip("\n") + f"  # troth: {comment}\n"})
    done = buggy.troth("check", "--ignore", "TR002")
    assert (done.code, done.out) == (0, "All clear: 2 files checked (1 silenced by `# troth: allow`)\n")
    assert done.err.count(HINT) == 1
    assert "service.py:6) means `TR10" in done.err
    buggy.write({"service.py": buggy.clean.rstrip("\n") + f"  # troth: {comment}\n"})
    idle = buggy.troth("check")
    assert "TR002 unused-allow" in idle.out
    assert "T101" in idle.out
    assert "no such rule" not in idle.out


def test_comments_with_old_codes_get_no_second_name(buggy):
    """`--add-allow` knows that the rule is named already."""
    service = buggy.service.rstrip("\n") + "  # troth: allow T101\n"
    buggy.write({"service.py": service})
    assert buggy.troth("check", "--add-allow").code == 0
    assert (buggy.root / "service.py").read_text() == service


def test_a_baseline_is_written_with_the_codes_of_today(buggy):
    file = buggy.root / "troth-baseline.json"
    file.write_text(json.dumps(BASELINE))
    assert buggy.troth("check", "--write-baseline").code == 0
    assert '"TR101"' in file.read_text()
    done = buggy.troth("check")
    assert (done.code, done.err) == (0, "")


def test_fix_says_it_once(buggy):
    done = buggy.troth("fix", "--select", "T101")
    assert (done.code, done.err.count(HINT)) == (0, 1)


def test_explain(buggy):
    done = buggy.troth("explain", "T101")
    assert (done.code, done.err.count(HINT)) == (0, 1)
    assert done.out.startswith("TR101 unawaited-coroutine")


def test_codes_of_no_rule_are_refused_as_they_are_written(buggy):
    done = buggy.troth("check", "--select", "T999")
    assert done.code == 2
    assert "there is no rule 'T999'" in done.err


def test_fingerprints_did_not_change_with_the_prefix():
    """Services that keep them would take every finding for a new one."""
    finding = Finding(
        "TR101", "unawaited-coroutine", Span("a.py", 1, 1, 1, 9), "m", "certain", symbol="f", subject="save"
    )
    assert fingerprints([finding]) == ["9941cbcdc54ee806158a98f605e338da"]
