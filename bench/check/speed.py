"""Measures `analyse` beside `ast.parse` of the same files, in one run, as ratios.

    python bench/check/speed.py FOLDER [--copies N] [--json FILE]

Cold with one process, cold with two, warm with nothing changed, warm with one file edited, and the memory it took.
Each is measured in a process of its own; CPU includes its children. Interpreter start-up (imports of Troth without any
work) is measured too and taken off, as it is from the floor. `--copies N` puts the tree N times side by side, for the
curve over size.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
from troth.analysis.run import analyse
from troth.analysis.source.project import Project
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
"""


def measure(code: str, *args: str) -> dict[str, float | str]:
    before = os.times()
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *args], check=True, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": wall, "cpu": cpu, "out": done.stdout}


def best(times: int, code: str, *args: str) -> dict[str, float | str]:
    return min((measure(code, *args) for _ in range(times)), key=lambda m: float(m["cpu"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path)
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
        lines = sum(p.read_bytes().count(b"\n") for p in root.rglob("*.py"))
        idle_floor = best(options.repeat, FLOOR, str(root), "idle")
        floor = best(options.repeat, FLOOR, str(root), "work")
        idle = best(options.repeat, CHECK, str(root), "idle", "1", "")
        rows: dict[str, dict[str, float | str]] = {
            "cold, one process": best(options.repeat, CHECK, str(root), "work", "1", ""),
            "cold, two processes": best(options.repeat, CHECK, str(root), "work", "2", ""),
        }
        cache = str(Path(work) / "cache")
        rows["cold, two processes, writing the cache"] = measure(CHECK, str(root), "work", "2", cache)
        rows["warm, nothing changed"] = best(options.repeat, CHECK, str(root), "work", "2", cache)
        victim = max(root.rglob("*.py"), key=lambda p: p.stat().st_size)
        edited = []
        for number in range(options.repeat):
            victim.write_bytes(victim.read_bytes() + f"\n\nasync def added_{number}():\n    return {number}\n".encode())
            edited.append(measure(CHECK, str(root), "work", "2", cache))
        rows["warm, one file edited"] = min(edited, key=lambda m: float(m["cpu"]))
        base_cpu = float(floor["cpu"]) - float(idle_floor["cpu"])
        base_wall = float(floor["wall"]) - float(idle_floor["wall"])
        print(
            f"{lines} lines; ast.parse: {base_cpu:.2f} s CPU, {base_wall:.2f} s wall; "
            f"start-up {float(idle['cpu']):.2f} s CPU"
        )
        table = {}
        for name, row in rows.items():
            cpu, wall = float(row["cpu"]) - float(idle["cpu"]), float(row["wall"]) - float(idle["wall"])
            memory = max(int(part) for part in str(row["out"]).split()[-2:]) / 1024
            table[name] = {"cpu": cpu / base_cpu, "wall": wall / base_wall, "memory_mb": memory}
            print(
                f"  {name:42} CPU {cpu:6.2f} s {cpu / base_cpu:5.2f}x"
                f"   wall {wall:6.2f} s {wall / base_wall:5.2f}x   {memory:5.0f} MB"
            )
        if options.json:
            options.json.write_text(json.dumps({"lines": lines, "rows": table}, indent=1))


if __name__ == "__main__":
    main()
