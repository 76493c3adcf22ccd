"""The page that shows Troth beside other tools is true: its options, its programs, and what Troth finds in them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.beside.__main__ import END, OPTIONS, PAGE, START, THREAD_TABLE
from bench.beside.options import RUFF, TY, options_table
from bench.beside.programs import PROGRAMS
from bench.beside.threads import THREADS

from troth.cli.analysis.foreign_options import HINTS
from troth.cli.app import load, parser_of, run

OURS = {option for action in parser_of("check", load("check"))._actions for option in action.option_strings}


def part(start):
    return PAGE.read_text(encoding="utf-8").partition(f"{start}\n")[2].partition(END)[0]


def test_the_table_of_options_is_that_of_the_page():
    """`python -m bench.beside --write` makes both tables anew."""
    assert part(OPTIONS) == options_table()


def test_the_options_are_those_of_ruff():
    """As the ruff says that the project itself uses."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    assert ruff is not None
    said = subprocess.run([ruff, "check", "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", said, re.MULTILINE)) == set(RUFF)


@pytest.mark.parametrize("option", sorted({*RUFF, *TY}))
def test_each_option_is_there_or_refused_with_a_hint(option, capsys, tmp_path, monkeypatch):
    """No option of theirs ends in a bare “unrecognized arguments”."""
    monkeypatch.chdir(tmp_path)
    if option in OURS:
        assert option not in HINTS
        return
    assert run(["check", f"{option}=x"]) == 2
    assert HINTS[option] in capsys.readouterr().err


def test_a_hint_is_given_for_short_options_and_for_fix(capsys):
    for argv, hint in ((["check", "-w"], "Write `--watch`."), (["fix", "--unsafe-fixes"], "`troth fix --all`")):
        assert run(argv) == 2
        assert hint in capsys.readouterr().err


def test_options_that_nobody_knows_get_the_usual_advice(capsys):
    for argv in (["check", "--nonsense"], ["explain", "--fix"]):
        assert run(argv) == 2
        assert f"`troth {argv[0]} --help` shows its usage." in capsys.readouterr().err


@pytest.mark.parametrize("hint", sorted(set(HINTS.values())))
def test_hints_name_options_that_exist(hint):
    """What a hint tells to write can be written."""
    fix = {option for action in parser_of("fix", load("fix"))._actions for option in action.option_strings}
    for code in re.findall(r"`([^`]+)`", hint):
        ours = fix if code.startswith("troth fix") else OURS
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", code)) <= ours


@pytest.mark.parametrize(
    ("start", "programs"),
    [pytest.param(START, PROGRAMS, id="our programs"), pytest.param(THREAD_TABLE, THREADS, id="after public threads")],
)
def test_what_troth_finds_of_the_programs_is_what_the_page_says(start, programs, tmp_path, capsys, monkeypatch):
    """The first column of the table, without the other tools."""
    marked = {}
    for number, (name, text) in enumerate(programs.items()):
        (tmp_path / f"program_{number:02}.py").write_text(text)
        line = next(at for at, row in enumerate(text.splitlines(), 1) if row.endswith("# lost"))
        marked[f"program_{number:02}.py", line] = name
    monkeypatch.chdir(tmp_path)
    run(["check", "--isolated", "--no-cache", "--output-format", "json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = {marked.get((one["path"], one["line"])): one["code"] for one in findings}
    rows = re.findall(r"^\| ([^|]+) \| (?:`(TR\d+)`|–) \|", part(start), re.MULTILINE)
    assert {name: code for name, code in rows if code} == found
    assert [name for name, _ in rows] == list(programs)
