"""What is said of findings, in each format."""

import json
from importlib import resources
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from troth.analysis.findings import Confidence, Edit, Finding, Fix, Reason, Safety, Span
from troth.analysis.findings.same_cause import once_per_cause
from troth.analysis.report import agent, concise, github, gitlab, junit, sarif, statistics, text
from troth.analysis.report import json as as_json
from troth.analysis.report.advice import advice
from troth.analysis.report.content import CheckReport
from troth.analysis.report.fingerprint import Mark
from troth.analysis.report.place import shown_from
from troth.analysis.report.rulebook import page_of
from troth.analysis.source.lines import Lines

SOURCE = "async def save(): ...\n\nasync def main():\n\tsave()  # é\n"
PAGE = page_of(
    "TR101",
    "unawaited-coroutine",
    "Unawaited coroutine.\n\nWhat it finds: a call\nthat is lost.\nWhy it matters: it never runs.\n"
    "How to repair: await it.\n",
)
LOST = Finding(
    code="TR101",
    rule="unawaited-coroutine",
    span=Span("app/a b.py", 4, 2, 4, 8),
    message="`save()` makes a coroutine and drops it, so `save` never runs",
    confidence="certain",
    reasons=(Reason("save is `async def`", "app/a b.py", 1),),
    fix=Fix("await the call", "sure", (Edit("app/a b.py", 42, 42, "await "),)),
    symbol="main",
    subject="save",
)
CHECK_SCHEMA = json.loads(
    resources.files("troth.analysis.report").joinpath("schemas/check-v1.json").read_text(encoding="utf-8")
)
UNSURE = LOST._replace(fix=Fix("await the call", "likely", ()))
MAYBE = Finding("TR101", "unawaited-coroutine", Span("n.ipynb", 2, 1, 2, 7, 3), "50% lost,\nreally: so", "likely")


def blocking(count: int, files: int = 1) -> list[Finding]:
    return [
        Finding(
            "TR602", "blocking-call", Span(f"f{n % files}.py", n + 1, 1, n + 1, 9), f"m{n}", "likely", subject="get"
        )
        for n in range(count)
    ]


@pytest.fixture
def report(tmp_path: Path) -> CheckReport:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/a b.py").write_text(SOURCE)
    cells = [{"cell_type": "code", "source": "x\nlost()\n"}] * 3
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    return CheckReport((LOST, MAYBE), 7, Lines(tmp_path), {"TR101": PAGE})


def changed(report: CheckReport, **fields: object) -> CheckReport:
    return report._replace(**fields)


def test_text_has_four_parts_and_two_places(report):
    """What is lost, why we know with a second place, how to repair, where to read on; then what it comes to."""
    assert list(text.render(report)) == [
        "app/a b.py:4:2  TR101 unawaited-coroutine",
        "  `save()` makes a coroutine and drops it, so `save` never runs",
        "  because  save is `async def` (app/a b.py:1)",
        "  fix  await the call",
        f"  see  {PAGE.url}",
        "",
        "n.ipynb#3:2:1  TR101 unawaited-coroutine  (likely)",
        "  50% lost,\nreally: so",
        "  repair  await it",
        f"  see  {PAGE.url}",
        "",
        "Found 2 problems (1 certain, 1 likely) in 2 of 7 files; `troth fix` repairs 1, `--diff` shows how",
    ]


def test_many_reasons_are_told_in_short(report):
    """Of fourteen reasons people read the first ones and the last; JSON has all."""
    reasons = tuple(Reason(f"reason {number}") for number in range(14))
    lines = list(text.render(changed(report, findings=(LOST._replace(reasons=reasons),))))
    told = [line for line in lines if line.startswith(("  because", "      and"))]
    assert told == [
        "  because  reason 0",
        *(f"      and  reason {number}" for number in range(1, 4)),
        "      and  9 more, which `--output-format json` lists",
        "      and  reason 13",
    ]
    assert len(as_json.as_object(LOST._replace(reasons=reasons))["reason"]) == 14


@pytest.mark.parametrize(
    ("documentation", "symbol", "cell", "says"),
    [
        pytest.param("How to repair: loop over it.", "main", None, "loop over it", id="the rule's own words"),
        pytest.param(
            "How sure the fix is: none is offered; keep the task.", "main", None, "keep the task", id="stated"
        ),
        pytest.param("", "plain", None, "`plain` is a plain `def`", id="in a sync function"),
        pytest.param("", "Box.plain", None, "`plain` is a plain `def`", id="in a sync method"),
        pytest.param("", "Box.__init__", None, "Python itself calls `__init__`", id="in a constructor"),
        pytest.param("", "Box.size", None, "`size` is a property", id="in a property"),
        pytest.param("", "", None, "module level", id="at module level"),
        pytest.param("", "main", 3, "await the call; cells", id="in a notebook"),
        pytest.param("", "main", None, "await the call", id="in async code"),
    ],
)
def test_advice_where_there_is_no_fix(documentation, symbol, cell, says, report, tmp_path):
    """Every finding says how to repair it, and no advice is a way to hide it."""
    more = "def plain():\n    save()\nclass Box:\n    def plain(self):\n        save()\n"
    more += "    def __init__(self):\n        save()\n    @property\n    def size(self):\n        save()\n"
    (tmp_path / "app/a b.py").write_text(SOURCE + more)
    page = page_of("TR101", "unawaited-coroutine", f"Title.\n\n{documentation}")
    finding = Finding("TR101", "r", Span("app/a b.py", 4, 2, 4, 8, cell), "m", "certain", symbol=symbol)
    told = advice(finding, changed(report, rules={"TR101": page}))
    assert says in told
    assert "_ =" not in told


def test_a_finding_may_say_itself_how_it_is_repaired(report):
    """What a framework accepts at this place comes before what the rule says of all places."""
    assert advice(MAYBE, report) == "await it"
    assert advice(MAYBE._replace(repair="make it a plain `def`"), report) == "make it a plain `def`"


@pytest.mark.parametrize(
    ("findings", "told_in_full"),
    [
        pytest.param([LOST, *blocking(60, files=3)], 1 + 3, id="one rule drowns the others"),
        pytest.param(blocking(60), 60, id="there are no others"),
        pytest.param([LOST, *blocking(40)], 41, id="not so many"),
        pytest.param([*[LOST._replace(message=str(n)) for n in range(70)], *blocking(60)], 1 + 60, id="the other one"),
        pytest.param([*[LOST._replace(message=str(n)) for n in range(60)], *blocking(60)], 120, id="both are as many"),
    ],
)
def test_a_rule_that_drowns_the_others_is_told_in_short(findings, told_in_full, report):
    """Each has its place at the start of a line and its message; the reasons and the advice once in each file."""
    lines = list(text.render(changed(report, findings=tuple(findings))))
    assert sum(line.startswith(("  fix  ", "  repair  ")) for line in lines) == told_in_full
    assert sum("  TR602 " in line or "  TR101 " in line for line in lines) == len(findings)
    short = [line for line in lines if line.startswith("f0.py:") and line.endswith("  m3")]
    assert len(short) == (told_in_full == 4)
    assert ("shown in full once in each file" in "\n".join(lines)) == (told_in_full < len(findings))


def test_a_flood_is_summed_up(report):
    """What it is about, and how to be rid of it or to see it alone."""
    lines = list(text.render(changed(report, findings=(LOST, *blocking(60, files=2)))))
    assert lines[-4:-1] == [
        "",
        "TR602 blocking-call is 60 of these, in 2 files, most often about `get` (60); shown in full once in each file",
        "`--select TR602` shows all in full, `--ignore TR602` leaves 1 other",
    ]


def test_frames_on_a_terminal(report):
    """The code is shown with the place marked, tabs and all, and the second place below it."""
    lines = list(text.render(report, frames=True))
    at = lines.index("    4 |     save()  # é")
    assert lines[at + 1] == "      |     ^^^^^^"
    assert "    1 | async def save(): ..." in lines
    assert "    2 | lost()" in lines


@pytest.mark.parametrize(
    ("fields", "last"),
    [
        pytest.param({"findings": ()}, "All clear: 7 files checked", id="clean"),
        pytest.param({"findings": (), "checked": 1}, "All clear: 1 file checked", id="one file"),
        pytest.param(
            {"findings": (), "known": 3, "baseline": "b.json"},
            "Nothing new: 7 files checked (3 known to the baseline)",
            id="baseline",
        ),
        pytest.param({"findings": (), "since": "main"}, "Nothing new since main: 7 files checked", id="since"),
        pytest.param(
            {"findings": (MAYBE,), "silenced": 1},
            "Found 1 problem (likely) in 1 of 7 files (1 silenced by `# troth: allow`); `troth explain TR101` explains the rule",
            id="nothing to fix",
        ),
        pytest.param(
            {"findings": (LOST, UNSURE)},
            "Found 2 problems (certain) in 1 of 7 files; `troth fix` repairs 1, `troth fix --all` 1 more; `--diff` shows how",
            id="one fix is sure, another is not",
        ),
        pytest.param(
            {"findings": (UNSURE,)},
            "Found 1 problem (certain) in 1 of 7 files; `troth fix --all` repairs 1, `--diff` shows how",
            id="a fix that is not sure",
        ),
    ],
)
def test_the_last_line(report, fields, last):
    """How many, in how many files, what a fix repairs, what was left out and why."""
    assert list(text.render(changed(report, **fields)))[-1] == last


def test_stale_entries_and_newer_syntax_are_told(report):
    """They stand before the last line, with what to do."""
    stale = Mark("app/a b.py", "main", "TR101", "save", "save()")
    told = "\n".join(
        text.render(changed(report, findings=(), repaired=(stale,), baseline="b.json", newer_syntax=("x.py", "y.py")))
    )
    assert "app/a b.py  TR101 save in main: repaired, but still in the baseline" in told
    assert "1 entry is stale in b.json: `troth check --write-baseline`" in told
    assert "2 files in syntax newer than Python 3." in told
    assert "x.py and 1 other" in told


def test_json_is_as_documented(report):
    """Findings are objects with these keys and no others; `cell` only in a notebook."""
    document = json.loads(as_json.render(report._replace(root="/work")))
    jsonschema.validate(document, CHECK_SCHEMA)
    assert {key: document[key] for key in ("version", "root", "checked")} == {
        "version": 1,
        "root": "/work",
        "checked": 7,
    }
    lost, maybe = document["findings"]
    assert lost == {
        "code": "TR101",
        "rule": "unawaited-coroutine",
        "path": "app/a b.py",
        "line": 4,
        "column": 2,
        "end_line": 4,
        "end_column": 8,
        "message": LOST.message,
        "confidence": "certain",
        "reason": [{"text": "save is `async def`", "path": "app/a b.py", "line": 1}],
        "fix": {
            "title": "await the call",
            "safety": "sure",
            "edits": [{"path": "app/a b.py", "start": 42, "end": 42, "text": "await "}],
        },
    }
    assert maybe["cell"] == 3
    assert maybe["fix"] is None
    clean = json.loads(as_json.render(changed(report, findings=())))
    jsonschema.validate(clean, CHECK_SCHEMA)
    assert (clean["findings"], clean["errors"]) == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"version": 2}, id="another version"),
        pytest.param({"root": None}, id="no root"),
        pytest.param({"findings": [{"code": "T101"}]}, id="half a finding"),
    ],
)
def test_the_schema_refuses_what_is_something_else(change, report):
    document = json.loads(as_json.render(report)) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, CHECK_SCHEMA)


def test_github_annotations(report):
    """One command per finding, escaped, with a level that agrees with the confidence."""
    lost, maybe = github.render(report)
    assert lost.startswith(
        "::error file=app/a b.py,line=4,col=2,endLine=4,endColumn=8,title=TR101 unawaited-coroutine::`save()` makes"
    )
    assert "%0Abecause save is `async def` (app/a b.py:1)%0Afix: await the call" in lost
    assert maybe.startswith("::warning file=n.ipynb,title=TR101 unawaited-coroutine::50%25 lost,%0Areally: so (cell 3")
    assert "\n" not in lost + maybe


def test_statistics(report):
    """Counted by rule."""
    assert next(statistics.render(report)) == "2  TR101 unawaited-coroutine  in 2 files, 1 with a fix"


SCHEMA = json.loads((Path(__file__).parents[1] / "data/sarif-2.1.0.json").read_text())


def test_sarif_is_valid_and_complete(report):
    """It validates, and has relative paths, rules with help, fingerprints, fixes and a code flow."""
    log = json.loads(sarif.render(report))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "TR101"
    assert rule["help"]["markdown"].startswith("**What it finds.** a call")
    assert rule["helpUri"] == PAGE.url
    lost, maybe = run["results"]
    assert (lost["level"], maybe["level"]) == ("error", "warning")
    physical = lost["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "app/a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert physical["region"] == {"startLine": 4, "startColumn": 2, "endLine": 4, "endColumn": 8}
    assert lost["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    flow = lost["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [one["location"]["physicalLocation"]["region"]["startLine"] for one in flow] == [1, 4]
    assert lost["partialFingerprints"]["primaryLocationLineHash"]
    (replacement,) = lost["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["deletedRegion"] == {"startLine": 4, "startColumn": 2, "endLine": 4, "endColumn": 2}
    assert "region" not in maybe["locations"][0]["physicalLocation"]


def test_sarif_without_findings_is_valid(report):
    """A clean run closes the alerts of the one before, so it has to be readable too."""
    log = json.loads(sarif.render(changed(report, findings=())))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert log["runs"][0]["results"] == []


def test_the_schema_can_refuse(report):
    """The validation above is able to fail."""
    log = json.loads(sarif.render(report))
    log["runs"][0]["results"][0]["level"] = "certain"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(log)


def test_no_absolute_path_gets_out(report, tmp_path):
    """A report means the same in another checkout, and tells nobody where it was made."""
    reason = Reason("sleep is `async def`", "/usr/lib/python3/asyncio/tasks.py", 5)
    abroad = changed(report, findings=(LOST._replace(reasons=(reason,)),))
    assert str(tmp_path) not in sarif.render(report) + as_json.render(report) + "".join(github.render(report))
    assert "/usr/lib" not in sarif.render(abroad)


@pytest.mark.parametrize(
    ("cwd", "path", "shown"),
    [
        pytest.param("/p", "s/a.py", "s/a.py", id="in the root"),
        pytest.param("/p/s", "s/a.py", "a.py", id="inside"),
        pytest.param("/p/s", "t/a.py", "../t/a.py", id="beside"),
        pytest.param("/", "s/a.py", "p/s/a.py", id="above"),
        pytest.param("/q", "s/a.py", "/p/s/a.py", id="elsewhere"),
        pytest.param("/p", "/lib/x.py", "/lib/x.py", id="a package"),
    ],
)
def test_paths_can_be_clicked_from_the_working_folder(cwd, path, shown):
    """Text is read where it is printed."""
    assert shown_from(Path(cwd), Path("/p"))(path) == shown


def test_agent_format_has_a_paragraph_per_finding(report):
    """Place, problem, reason, and the edit as a diff; or what to do where there is none."""
    assert list(agent.render(report._replace(root="/work"))) == [
        "Project: /work (all paths are relative to it)",
        "",
        "1. TR101 unawaited-coroutine (certain): app/a b.py, line 4, column 2",
        "Problem: `save()` makes a coroutine and drops it, so `save` never runs.",
        "Because: save is `async def` (app/a b.py:1).",
        "Edit (safe to apply): await the call",
        "--- a/app/a b.py",
        "+++ b/app/a b.py",
        "@@ -1,4 +1,4 @@",
        " async def save(): ...",
        " ",
        " async def main():",
        "-\tsave()  # é",
        "+\tawait save()  # é",
        "",
        "2. TR101 unawaited-coroutine (likely): n.ipynb, cell 3, line 2, column 1",
        "Problem: 50% lost, really: so.",
        "Repair: await it.",
        "",
        "2 findings, 7 files checked. `troth fix` applies every edit that is safe to apply; `troth check` afterwards shows what is left.",
    ]
    assert list(agent.render(changed(report, findings=())))[-1] == "No findings in 7 files."


@pytest.mark.parametrize("safety", get_args(Safety))
@pytest.mark.parametrize("confidence", get_args(Confidence))
def test_every_format_has_words_for_every_scale(confidence, safety, report):
    """However sure a finding and its fix are, each format can be written, and JSON is as its schema says."""
    finding = LOST._replace(confidence=confidence, fix=LOST.fix._replace(safety=safety))
    single = changed(report, findings=(finding,), root="/project")
    for format_ in (text, agent, concise, github, gitlab, junit, sarif):
        assert "makes a coroutine" in "".join(format_.render(single))
    document = json.loads(as_json.render(single))
    jsonschema.validate(document, CHECK_SCHEMA)
    assert document["findings"][0]["fix"]["safety"] == safety


@pytest.mark.parametrize("format_", [text, agent, concise, github])
def test_the_name_of_a_file_begins_no_line(format_, report):
    """A file may be called so that its name would be read as a line of its own, or as an order to a CI."""
    hostile = LOST._replace(
        span=LOST.span._replace(path="a\n::error file=x.py::no\t.py"),
        reasons=(Reason("`save` is `async def`", "b\n::error::no.py", 1),),
        fix=None,
    )
    lines = "\n".join(format_.render(changed(report, findings=(hostile,), root="/project"))).splitlines()
    mine = [line for line in lines if line.startswith("::error")]
    assert len(mine) == (1 if format_ is github else 0)
    assert not any(line.startswith("::error file=x.py") for line in lines)


def of(code: str, path: str, line: int, **fields: object) -> Finding:
    """A finding of a rule at a place."""
    return Finding(code, f"rule-{code}", Span(path, line, 1, line, 9), f"m{line}", "likely")._replace(**fields)


def test_lost_calls_come_first(report):
    """By family, each with a heading and its number; what only slows a program down is last."""
    findings = (of("TR602", "a.py", 1), of("TR401", "a.py", 2), of("TR101", "b.py", 1), of("TR602", "b.py", 2))
    lines = list(text.render(changed(report, findings=findings)))
    shown = [line for line in lines if line.endswith(("problem", "problems")) or "  rule-" in line or ":1  TR" in line]
    assert shown == [
        "Lost calls: 1 problem",
        "b.py:1:1  TR101 rule-TR101  (likely)",
        "Wrong color: 1 problem",
        "a.py:2:1  TR401 rule-TR401  (likely)",
        "Loop misuse: 2 problems",
        "a.py:1:1  TR602 rule-TR602  (likely)",
        "b.py:2:1  TR602 rule-TR602  (likely)",
    ]
    assert [line.split()[1] for line in agent.render(changed(report, findings=findings)) if line[:1].isdigit()][
        :-1
    ] == [
        "TR101",
        "TR401",
        "TR602",
        "TR602",
    ]


@pytest.mark.parametrize(
    ("more", "fields", "is_short"),
    [
        pytest.param([of("TR101", "a.py", 1)], {}, True, id="beside others"),
        pytest.param([of("TR602", "a.py", 1)], {}, True, id="beside the same, in a program"),
        pytest.param([], {}, False, id="nothing else"),
        pytest.param([of("TR101", "a.py", 1)], {"is_selected": True}, False, id="asked for"),
    ],
)
def test_what_tests_do_to_their_loop_is_one_line(more, fields, is_short, report):
    """Dropped tasks and blocking calls in tests: how often, where, about what."""
    minor = [of("TR602", "tests/test_a.py", n, subject="time.sleep") for n in (1, 2)]
    minor.append(of("TR112", "tests/test_b.py", 1, subject="asyncio.create_task"))
    lines = list(text.render(changed(report, findings=(*more, *minor), **fields)))
    assert ("tests/test_a.py:1:1  TR602 rule-TR602  (likely)" in lines) is not is_short
    summary = [
        "In tests: TR112 rule-TR112 once in 1 file, most often about `asyncio.create_task` (1); `--select TR112` shows each",
        "In tests: TR602 rule-TR602 2 times in 1 file, most often about `time.sleep` (2); `--select TR602` shows each",
    ]
    assert [line for line in lines if line.startswith("In tests")] == (summary if is_short else [])
    assert f"Found {len(more) + 3} problems" in lines[-1]


def test_a_function_that_blocks_is_told_once(report):
    """At the first of the calls that lead there, with the others counted; what has no cause stays as it is."""
    calls = [
        of("TR602", f"{name}.py", 3, cause="h.py:2:4", symbol=name, subject="wait", reasons=(Reason("r"),))
        for name in "abcdef"
    ]
    other = of("TR602", "a.py", 9)
    once = once_per_cause((calls[0], other, *calls[1:]))
    assert [finding.message for finding in once] == ["m3; 6 calls in async code lead there", "m9"]
    assert [reason.text for reason in once[0].reasons] == [
        "r",
        *(f"`{name}` calls `wait` as well" for name in "bcd"),
        "2 further calls in async code",
    ]
    assert once_per_cause((calls[0], other)) == (calls[0], other)
