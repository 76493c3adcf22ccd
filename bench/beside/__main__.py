"""The scoreboard: what each tool finds of the same programs: `python -m bench.beside [--bin FOLDER] [--write]`.

Three tables: small programs that show kinds of losses, programs after public threads, and the samples of the tests.

`--bin` is the folder of programs of an environment with `requirements/bench.lock` and pytest-asyncio in it; without it
they are looked for beside the running Python and on PATH. `--write` puts the table into the page of the documentation.
A tool finds a program's loss if it says something about the marked line, whatever it says; what it says about missing
annotations does not count. pytest finds it if the test that runs the program fails.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bench.beside.options import options_table
from bench.beside.programs import PROGRAMS
from bench.beside.samples import KEPT, LOST, Place, lay_out
from bench.beside.threads import THREADS

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/beside-other-tools.md"
START, END = "<!-- programs: made by `python -m bench.beside --write` -->", "<!-- end -->"
THREAD_TABLE = "<!-- threads: made by `python -m bench.beside --write` -->"
SAMPLES = "<!-- samples: made by `python -m bench.beside --write` -->"
OPTIONS = "<!-- options: made by `python -m bench.beside --write` -->"
RUFF = ("check", "--isolated", "--no-cache", "--preview", "--select", "ASYNC,RUF006,RUF029", "--output-format", "json")
MYPY_CODES = ("unused-awaitable", "truthy-bool", "truthy-iterable", "redundant-expr", "possibly-undefined")
_NOISE = re.compile(r"no-untyped|no-any|reportUnknown|reportMissing|reportUntyped")

# What each tool calls a promise that is lost, or used as what it is not.
_ASYNC = re.compile(
    r"TR[12]|ASYNC|RUF006|[Cc]oroutine|awaitable|redundant-condition|truthy|UnnecessaryComparison|context-manager",
    re.ASCII,
)

Found = dict[Place, list[str]]
Tool = Callable[[Path], Found]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.beside")
    parser.add_argument("--bin", type=Path, help="the folder of the tools' programs")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    tools = _tools(options.bin)
    pytest = _program("pytest", options.bin)
    tables = {
        START: _table(PROGRAMS, "program", tools, pytest),
        THREAD_TABLE: _table(THREADS, "thread", tools, pytest),
        SAMPLES: _sample_table(tools),
    }
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        for start, rows in {**tables, OPTIONS: options_table()}.items():
            before, _, rest = page.partition(start)
            page = f"{before}{start}\n{rows}{END}{rest.partition(END)[2]}"
        PAGE.write_text(page, encoding="utf-8")
    sys.stdout.write("\n".join(tables.values()))


def _tools(programs: Path | None) -> dict[str, Tool]:
    """The static tools by their names with versions, ours first."""
    runs: dict[str, Callable[[str, Path], Found]] = {
        "ruff": _ruff,
        "ty": _ty,
        "pyrefly": _pyrefly,
        "zuban": _zuban,
        "pyright": _pyright,
        "basedpyright": _pyright,
        "mypy": _mypy,
    }
    tools: dict[str, Tool] = {f"Troth {_version([sys.executable, '-m', 'troth'])}": _troth}
    for name, run in runs.items():
        program = _program(name, programs)
        tools[f"{name} {_version([program])}"] = partial(run, program)
    return tools


def _table(programs: Mapping[str, str], what: str, tools: Mapping[str, Tool], pytest: str) -> str:
    """A row for each program, a column for each tool, and how many each has found."""
    with tempfile.TemporaryDirectory(prefix="troth-beside-") as temporary:
        folder = Path(temporary)
        marked: dict[str, Place] = {}
        for number, (name, text) in enumerate(programs.items()):
            file = folder / f"program_{number:02}.py"
            file.write_text(text, encoding="utf-8")
            line = next(at for at, row in enumerate(text.splitlines(), 1) if row.endswith("# lost"))
            marked[name] = file.name, line
        columns = {name: run(folder) for name, run in tools.items()}
        failing = _pytest(pytest, folder, marked)
    rows = [f"| {what} | {' | '.join(columns)} | pytest-asyncio, `-W error` |", "|---" * (len(columns) + 2) + "|"]
    for name, place in marked.items():
        codes = [dict.fromkeys(places.get(place, ())) for places in columns.values()]
        cells = [", ".join(f"`{code}`" for code in of_tool) or "–" for of_tool in codes]
        rows.append(f"| {name} | {' | '.join(cells)} | {'the test fails' if failing[name] else '–'} |")
    counts = [str(sum(place in places for place in marked.values())) for places in columns.values()]
    rows.append(f"| **found, of {len(marked)}** | {' | '.join(counts)} | {sum(failing.values())} |")
    return "\n".join(rows) + "\n"


def _sample_table(tools: Mapping[str, Tool]) -> str:
    """How many of the marked lines of the samples each tool has something to say about, and of lines without a loss."""
    rows = [f"| lines | {' | '.join(tools)} |", "|---" * (len(tools) + 1) + "|"]
    with tempfile.TemporaryDirectory(prefix="troth-beside-") as temporary:
        marked, count = lay_out(Path(temporary), LOST)
        columns = [run(Path(temporary)) for run in tools.values()]
    found = [sum(place in places for place in marked) for places in columns]
    ours = {place for place in marked if place in columns[0]}
    alone = ["–", *(str(sum(place in places and place not in ours for place in marked)) for places in columns[1:])]
    rows.append(f"| found, of {len(marked)} in {count} samples | {' | '.join(map(str, found))} |")
    rows.append(f"| of these, missed by Troth | {' | '.join(alone)} |")
    with tempfile.TemporaryDirectory(prefix="troth-beside-") as temporary:
        _, count = lay_out(Path(temporary), KEPT)
        wrong = [
            sum(any(map(_ASYNC.search, codes)) for codes in run(Path(temporary)).values()) for run in tools.values()
        ]
    rows.append(f"| said about {count} samples without a loss | {' | '.join(map(str, wrong))} |")
    return "\n".join(rows) + "\n"


def _program(name: str, programs: Path | None) -> str:
    beside = programs or Path(sys.executable).parent
    found = shutil.which(name, path=str(beside)) or (None if programs else shutil.which(name))
    if found is None:
        sys.exit(f"`{name}` is not installed; `--bin` names the environment of `requirements/bench.lock`.")
    return found


def _version(command: list[str]) -> str:
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\d+(?:\.\d+)+", said)
    return match[0] if match else said.strip()


def _output(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False).stdout


def _gathered(rows: list[tuple[str, int, str]]) -> Found:
    found: Found = {}
    for path, line, code in rows:
        if not _NOISE.search(code):
            found.setdefault((Path(path).name, line), []).append(code)
    return found


def _troth(folder: Path) -> Found:
    command = [sys.executable, "-m", "troth", "check", "--isolated", "--no-cache", "--output-format", "json"]
    rows = json.loads(_output(command, folder))["findings"]
    return _gathered([(row["path"], row["line"], row["code"]) for row in rows])


def _ruff(program: str, folder: Path) -> Found:
    rows = json.loads(_output([program, *RUFF], folder))
    return _gathered([(row["filename"], row["location"]["row"], row["code"]) for row in rows])


def _ty(program: str, folder: Path) -> Found:
    text = _output([program, "check", "--output-format", "concise", "--warn", "all", "--color", "never"], folder)
    rows = re.findall(r"^([^:\n]+):(\d+):\d+: \w+\[([\w-]+)\]", text, re.MULTILINE)
    return _gathered([(path, int(line), code) for path, line, code in rows])


def _pyrefly(program: str, folder: Path) -> Found:
    rows = json.loads(_output([program, "check", "--output-format", "json", "."], folder))["errors"]
    return _gathered([(row["path"], row["line"], row["name"]) for row in rows])


def _zuban(program: str, folder: Path) -> Found:
    text = _output([program, "check", "."], folder)
    rows = re.findall(r"^([^:\n]+):(\d+): error: .*\[([\w-]+)\]$", text, re.MULTILINE)
    return _gathered([(path, int(line), code) for path, line, code in rows])


def _pyright(program: str, folder: Path) -> Found:
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    rows = json.loads(_output([program, "--outputjson"], folder))["generalDiagnostics"]
    return _gathered([(row["file"], row["range"]["start"]["line"] + 1, row.get("rule", "")) for row in rows])


def _mypy(program: str, folder: Path) -> Found:
    codes = [word for code in MYPY_CODES for word in ("--enable-error-code", code)]
    text = _output([program, "--strict", *codes, "--cache-dir", str(folder / "mypy"), "--output", "json", "."], folder)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return _gathered([(row["file"], row["line"], row["code"] or "") for row in rows])


def _pytest(program: str, folder: Path, marked: dict[str, Place]) -> dict[str, bool]:
    """Whether a test that awaits `main()` of a program fails; each has a process of its own, lest it spoil another."""
    failing = {}
    for name, (file, _) in marked.items():
        test = folder / f"test_{file}"
        test.write_text(
            f"import {file[:-3]}\n\n\nasync def test_it():\n    await {file[:-3]}.main()\n", encoding="utf-8"
        )
        settings = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", "-W", "error")
        command = [program, "-q", "-p", "no:cacheprovider", *settings, "--rootdir", ".", test.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"pytest did not run {name!r}:\n{done.stdout}{done.stderr}")
        failing[name] = done.returncode == 1
        test.unlink()
    return failing


if __name__ == "__main__":
    main()
