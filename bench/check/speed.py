"""Measures `analyse` beside `ast.parse` of the same files, in one run, as ratios.

    python bench/check/speed.py FOLDER [--copies N] [--json FILE]
    python bench/check/speed.py FOLDER --instructions
    python bench/check/speed.py FOLDER --beside SRC [SRC …] [--repeat N]

Cold with one process, cold with two, warm with nothing changed, warm after an edit, and the memory it took. The edits
are of the file that most others import, of the largest, and of one of middle size that nobody imports: a statement put
into a function, a parameter more, a function more.
Each is measured in a process of its own; CPU includes its children. Interpreter start-up (imports of Troth without any
work) is measured too and taken off, as it is from the floor. `--copies N` puts the tree N times side by side, for the
curve over size. `--instructions` counts those of a cold run with one process by valgrind instead, which takes some
fifty times as long and tells the same however busy the machine is. `--beside src FOLDER` measures copies of Troth in
turn (`python hatch_build.py FOLDER` makes a compiled one), cold runs alone. At the end the command itself, where
nothing has changed, with all that it takes: on the tree, and on a project of one line.
"""

import argparse
import ast
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from troth.analysis.compiled import is_compiled

FLOOR = """
import ast, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
files = [p for p in sorted(Path(sys.argv[1]).rglob("*.py"))]
work = sys.argv[2] == "work"
for path in files if work else []:
    data = path.read_bytes()
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        pass
"""

CHECK = """
import os, sys
from pathlib import Path
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules
root, mode, jobs, cache = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
all_rules()
if mode == "work":
    files = tuple(sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py")))
    roots = sorted({""} | {p.parent.parent.relative_to(root).as_posix().strip(".") for p in root.rglob("__init__.py")
                           if not (p.parent.parent / "__init__.py").exists()})
    result = analyse(Project(root, files, tuple(roots)), jobs=jobs, cache=Path(cache) if cache else None)
    print(len(result.findings))
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stdout.flush()
os._exit(0)  # as the command does
"""


def measure(code: str, *args: str, sources: Path | None = None) -> dict[str, float | str]:
    env = os.environ if sources is None else {**os.environ, "PYTHONPATH": str(sources)}
    before = os.times()
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *args], check=True, capture_output=True, text=True, env=env)
    wall = time.perf_counter() - start
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": wall, "cpu": cpu, "out": done.stdout}


def in_turn(times: int, *works: tuple[str, ...]) -> list[dict[str, float | str]]:
    """The best of several rounds for each: a machine that is slow for a while is slow for all of them."""
    rounds = [[measure(*work) for work in works] for _ in range(times)]
    return [min(done, key=lambda m: float(m["cpu"])) for done in zip(*rounds, strict=True)]


def side_by_side(tree: str, folders: list[Path], times: int) -> None:
    """Copies of Troth beside each other and the floor, in rounds: the middle of all rounds, the best, the worst."""
    ratios: dict[tuple[Path, str], list[float]] = {}
    for _ in range(times):
        idle, floor = measure(FLOOR, tree, "idle"), measure(FLOOR, tree, "work")
        base = {kind: float(floor[kind]) - float(idle[kind]) for kind in ("cpu", "wall")}
        for folder in folders:
            start = measure(CHECK, tree, "idle", "1", "", sources=folder)
            for name, jobs in (("one process", "1"), ("two processes", "2")):
                done = measure(CHECK, tree, "work", jobs, "", sources=folder)
                for kind, whole in base.items():
                    ratio = (float(done[kind]) - float(start[kind])) / whole
                    ratios.setdefault((folder, f"{name}, {kind}"), []).append(ratio)
    for (folder, name), found in ratios.items():
        print(f"  {folder}  cold, {name:19} {statistics.median(found):5.2f}x ({min(found):.2f}-{max(found):.2f})")


def best(times: int, code: str, *args: str) -> dict[str, float | str]:
    return min((measure(code, *args) for _ in range(times)), key=lambda m: float(m["cpu"]))


def command(root: Path) -> dict[str, float | str]:
    """`troth check` where nothing has changed since the last one, from start to end."""
    arguments = [sys.executable, "-m", "troth", "check", "--output-format", "json"]
    runs: list[dict[str, float | str]] = []
    for _ in range(6):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(arguments, cwd=root, check=False, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append({"cpu": cpu, "wall": wall, "out": ""})
    return min(runs[1:], key=lambda one: float(one["cpu"]))  # the first one fills the cache


def instructions(code: str, *args: str) -> int:
    """How many instructions Python runs for it, in user space."""
    counting = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*counting, sys.executable, "-c", code, *args],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", ""))


def count(root: Path) -> None:
    floor = instructions(FLOOR, str(root), "work") - instructions(FLOOR, str(root), "idle")
    cold = instructions(CHECK, str(root), "work", "1", "") - instructions(CHECK, str(root), "idle", "1", "")
    print(
        f"ast.parse: {floor / 1e6:.0f} million instructions; cold, one process: {cold / 1e6:.0f}, {cold / floor:.2f}x"
    )


def victims(root: Path) -> dict[str, Path]:
    """The files that are edited."""
    texts = {p: p.read_text(encoding="utf-8", errors="replace") for p in sorted(root.rglob("*.py"))}
    counts: dict[str, int] = {}
    for text in texts.values():
        for module in set(re.findall(r"(?m)^\s*(?:from|import) ([\w.]+)", text)):
            counts[module.rpartition(".")[2]] = counts.get(module.rpartition(".")[2], 0) + 1
    functional = [p for p, text in texts.items() if body(text, 0) is not None and parameter(text, 0) is not None]
    stems = [p.stem for p in texts]
    alone = [p for p in functional if stems.count(p.stem) == 1]  # another file of that name may be the one imported
    leaves = sorted((p for p in functional if not counts.get(p.stem)), key=lambda p: p.stat().st_size)
    return {
        "most imported": max(alone or functional, key=lambda p: counts.get(p.stem, 0)),
        "largest": max(functional, key=lambda p: p.stat().st_size),
        "imported by none": leaves[len(leaves) // 2] if leaves else functional[0],
    }


def body(text: str, number: int) -> str | None:
    """A statement put into the first function that has a body on lines of its own."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[0].lineno > node.lineno:
            lines = text.splitlines(keepends=True)
            first = node.body[-1]
            lines.insert(first.lineno - 1, f"{' ' * first.col_offset}edited_{number} = {number}\n")
            return "".join(lines)
    return None


def parameter(text: str, number: int) -> str | None:
    """A parameter more for the first function that has none, or only `self`."""
    found = re.search(r"\bdef \w+\((self)?(, edited_\d+=None)*\)", text)
    if found is None:
        return None
    inside = ", ".join([*([found[1]] if found[1] else []), f"edited_{number}=None"])
    return f"{text[: text.index('(', found.start())]}({inside}){text[found.end() :]}"


def function(text: str, number: int) -> str:
    """A function more."""
    return f"{text}\n\nasync def added_{number}():\n    return {number}\n"


EDITS = {"a statement more": body, "a parameter more": parameter, "a function more": function}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--beside", type=Path, nargs="+", metavar="SRC")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "tree"
        for copy in range(options.copies):
            target = root / f"copy{copy}" if options.copies > 1 else root
            shutil.copytree(
                options.folder,
                target,
                ignore=lambda d, names: [
                    n for n in names if n.startswith(".") or not (n.endswith(".py") or (Path(d) / n).is_dir())
                ],
            )
        if options.instructions:
            count(root)
            return
        if options.beside:
            side_by_side(str(root), [folder.resolve() for folder in options.beside], options.repeat)
            return
        lines = sum(p.read_bytes().count(b"\n") for p in root.rglob("*.py"))
        tree = str(root)
        idle_floor, floor, idle, one, two = in_turn(
            options.repeat,
            (FLOOR, tree, "idle"),
            (FLOOR, tree, "work"),
            (CHECK, tree, "idle", "1", ""),
            (CHECK, tree, "work", "1", ""),
            (CHECK, tree, "work", "2", ""),
        )
        rows: dict[str, dict[str, float | str]] = {"cold, one process": one, "cold, two processes": two}
        cache = str(Path(work) / "cache")
        rows["cold, two processes, writing the cache"] = measure(CHECK, str(root), "work", "2", cache)
        rows["warm, nothing changed"] = best(options.repeat, CHECK, str(root), "work", "2", cache)
        edits = []
        for which, victim in victims(root).items():
            for what, edit in EDITS.items():
                done = []
                for number in range(options.repeat):
                    text = edit(victim.read_text(encoding="utf-8"), number)
                    if text is not None:
                        victim.write_text(text, encoding="utf-8")
                        done.append(measure(CHECK, str(root), "work", "2", cache))
                if done:
                    row = rows[f"warm, {what}, {which}"] = min(done, key=lambda m: float(m["cpu"]))
                    edits.append(row)
        median = statistics.median_low
        rows["warm, one file edited (median of these)"] = {
            "cpu": median(float(row["cpu"]) for row in edits),
            "wall": median(float(row["wall"]) for row in edits),
            "out": edits[0]["out"],
        }
        base_cpu = float(floor["cpu"]) - float(idle_floor["cpu"])
        base_wall = float(floor["wall"]) - float(idle_floor["wall"])
        print(
            f"{lines} lines; ast.parse: {base_cpu:.2f} s CPU, {base_wall:.2f} s wall; "
            f"start-up {float(idle['cpu']):.2f} s CPU; Troth {'compiled' if is_compiled() else 'as plain Python'}"
        )
        table = {}
        for name, row in rows.items():
            cpu, wall = float(row["cpu"]) - float(idle["cpu"]), float(row["wall"]) - float(idle["wall"])
            memory = max(int(part) for part in str(row["out"]).split()[-2:]) / 1024
            table[name] = {"cpu": cpu / base_cpu, "wall": wall / base_wall, "memory_mb": memory}
            print(
                f"  {name:46} CPU {cpu:6.2f} s {cpu / base_cpu:5.2f}x"
                f"   wall {wall:6.2f} s {wall / base_wall:5.2f}x   {memory:5.0f} MB"
            )
        line = Path(work) / "line"
        line.mkdir()
        (line / "pyproject.toml").touch()
        (line / "a.py").write_text("x = 1\n")
        (root / "pyproject.toml").touch()
        for name, place in (("the tree", root), ("one line", line)):
            row = command(place)
            print(f"  `troth check`, nothing changed, {name:15} CPU {row['cpu']:6.3f} s   wall {row['wall']:6.3f} s")
        if options.json:
            options.json.write_text(json.dumps({"lines": lines, "rows": table}, indent=1))


if __name__ == "__main__":
    main()
