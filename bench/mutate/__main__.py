"""Dropped awaits, and which checkers see them: `python -m bench.mutate [--trees …] [--tools …]`.

Plants the same mutants for every tool in source distributions from PyPI, without their dependencies, and prints the
shares beside those measured earlier by other means. `--speed` measures instead how long 120 mutants take against a
fast checker on a project of 200 files.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench.mutate.earlier import BY_SHAPE, BY_TREE
from bench.mutate.trees import KEPT, TREES

TOOLS = ("ruff", "ty", "pyrefly", "mypy")
SLOW = {"aiohttp": ("pyright",)}  # a minute of CPU per run, so one tree has to do unless it is asked for


def measure(tree: str, tool: str, operator: str, batch_size: int) -> dict[str, Any]:
    """One run of `troth mutate`, kept as JSON in `build/bench-trees`."""
    kept = KEPT / f"{tree}-{operator}-{tool}-{batch_size}.json"
    package = TREES[tree].fetch()
    command = [sys.executable, "-m", "troth", "mutate", str(package), "--tool", tool, "--json", str(kept)]
    command += ["--operator", operator, "--n", "120", "--seed", "7", "--batch-size", str(batch_size)]
    # No environment of the user's: dependencies that happen to be installed would change the figures.
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[:2]}
    return json.loads(kept.read_text(encoding="utf-8"))


def compare(trees: list[str], tools: list[str], operator: str, batch_size: int) -> None:
    known = operator == "drop-await"
    shapes: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    print(f"{operator}: percent on the line / in the function" + ("; in brackets: measured earlier" if known else ""))
    print(f"{'tree':<12}{'tool':<10}{'n':>4}{'now':>11}{'earlier':>12}{'s':>8}")
    for tree in trees:
        for tool in [*tools, *(SLOW.get(tree, ()) if tools == list(TOOLS) and known else ())]:
            begun = time.monotonic()
            record = measure(tree, tool, operator, batch_size)
            seconds = time.monotonic() - begun
            if "failed" in record:
                print(f"{tree:<12}{tool:<10} failed: {' '.join(record['failed'])}")
                continue
            for row in record["mutants"]:
                shapes[tool][row["shape"], row["verdict"]] += 1
            whole = record["totals"]
            now = f"{whole['caught_percent']:.0f} / {whole['in_function_percent']:.0f}"
            before = BY_TREE.get(tree, {}).get(tool) if known else None
            then = f"({before[0]} / {before[1]})" if before else ""
            print(f"{tree:<12}{tool:<10}{whole['n']:>4}{now:>11}{then:>12}{seconds:>8.1f}", flush=True)
    print("\nby shape, on the line, all trees together")
    for tool, counts in shapes.items():
        names = sorted({shape for shape, _ in counts})
        cells = []
        for shape in names:
            n = sum(
                count
                for (one, verdict), count in counts.items()
                if one == shape and verdict in ("caught", "elsewhere", "survived")
            )
            earlier = f" ({BY_SHAPE[tool][shape]})" if known and tool in BY_SHAPE else ""
            share = f"{100 * counts[shape, 'caught'] / n:.0f}" if n else "-"
            cells.append(f"{shape} {share}{earlier} of {n}")
        print(f"  {tool:<9}" + ", ".join(cells))


SLOT = """\
async def f{n}(self, x):
    self.count += 1
    y = await self.load(x)
    if await self.check(y):
        await self.save(y)
    return await self.load(y)

"""


def speed() -> None:
    """A made-up project of 200 files with 20 async functions each, against a checker that only reads the files."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "project"
        (root / "pkg").mkdir(parents=True)
        (root / "pyproject.toml").write_text("[project]\nname = 'pkg'\n")
        for file in range(200):
            body = "".join("    " + line + "\n" for n in range(20) for line in SLOT.format(n=n).splitlines())
            (root / f"pkg/m{file}.py").write_text(f"class C{file}:\n{body}")
        checker = Path(name) / "checker.py"
        checker.write_text(
            "import ast, pathlib\n[ast.parse(p.read_text()) for p in pathlib.Path('pkg').glob('*.py')]\n"
        )
        command = [sys.executable, "-m", "troth", "mutate", str(root / "pkg"), "--n", "120"]
        begun = time.monotonic()
        subprocess.run([sys.executable, str(checker)], cwd=root, check=True)
        once = time.monotonic() - begun
        begun = time.monotonic()
        subprocess.run([*command, "--checker", f"{sys.executable} {checker}"], check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"200 files, {200 * 20 * 8} lines, 120 mutants: {whole:.1f} s wall, one run of the checker {once:.1f} s")
        print(
            f"cpu of all of it: {used.ru_utime + used.ru_stime:.1f} s; largest process: {used.ru_maxrss / 1024:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mutate", description=__doc__)
    parser.add_argument("--trees", nargs="+", choices=tuple(TREES), default=list(TREES))
    parser.add_argument("--tools", nargs="+", default=list(TOOLS))
    parser.add_argument("--operator", default="drop-await")
    parser.add_argument("--batch-size", type=int, default=60)  # as the figures in README.md
    parser.add_argument("--speed", action="store_true", help="only the time on a made-up project of 200 files")
    args = parser.parse_args()
    if not args.speed:
        compare(args.trees, args.tools, args.operator, args.batch_size)
    speed()


if __name__ == "__main__":
    main()
