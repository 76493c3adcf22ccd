"""Does `troth check` grow with the project, and no faster? `python bench/check/scale.py TREE… [--sizes 100000,…]`.

One project is laid out of unpacked source distributions side by side, as a monorepo has them, in the order they are
named, until it has so many lines. The real command is run on it (`--no-cache`, one process, then two) and only
`ast.parse` of the same files beside it; CPU, wall and the largest process come from the operating system. Where the
trees run out, further copies of them are laid beside, and the table says so. `--svg FILE` draws the curve.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PARSE = """
import ast, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
for path in sorted(Path(sys.argv[1]).rglob("*.py")):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        continue
"""
CHECK = ["-P", "-m", "troth", "check", "--no-cache", "--output-format", "json"]
SIZES = "100000,250000,500000,1000000,2000000"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process and its children took."""

    cpu: float
    wall: float
    memory: float

    def beyond(self, other: "Cost") -> "Cost":
        """The cost above that of another, which is that of starting."""
        return Cost(max(self.cpu - other.cpu, 1e-9), max(self.wall - other.wall, 1e-9), self.memory)


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to its end; its exit code says whether there are findings, more than 1 that it went wrong."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"`{' '.join(command)}` ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024)


def lay(tree: Path, target: Path) -> int:
    """Copy the Python of a tree and what marks its roots; how many lines it has."""
    lines = 0
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix != ".py" and path.name not in {"pyproject.toml", "setup.cfg"}:
            continue
        place = target / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        lines += path.read_bytes().count(b"\n") if path.suffix == ".py" else 0
    return lines


def measure(root: Path, lines: int, copies: int, repeat: int) -> dict[str, float]:
    def best(*command: str) -> Cost:
        return min((cost(command, root) for _ in range(repeat)), key=lambda one: one.cpu)

    with tempfile.TemporaryDirectory() as empty:
        (Path(empty) / "a.py").touch()
        idle_parse = min((cost(["-c", PARSE, empty], Path(empty)) for _ in range(2)), key=lambda one: one.cpu)
        idle = min((cost([*CHECK, "--jobs", "1", "."], Path(empty)) for _ in range(2)), key=lambda one: one.cpu)
    floor = best("-c", PARSE, str(root)).beyond(idle_parse)
    one = best(*CHECK, "--jobs", "1", ".").beyond(idle)
    two = best(*CHECK, "--jobs", "2", ".").beyond(idle)
    return {
        "lines": lines,
        "copies": copies,
        "parse cpu": floor.cpu,
        "cpu": one.cpu,
        "ratio": one.cpu / floor.cpu,
        "wall of two": two.wall,
        "wall ratio": two.wall / floor.wall,
        "memory": one.memory,
        "memory of two": two.memory,
    }


COLUMNS: dict[str, Callable[[dict[str, float]], str]] = {
    "lines": lambda r: f"{r['lines']:,.0f}" + (f" ({r['copies']:.0f} copies)" if r["copies"] else ""),
    "`ast.parse`, s CPU": lambda r: f"{r['parse cpu']:.1f}",
    "check, s CPU": lambda r: f"{r['cpu']:.1f}",
    "ratio": lambda r: f"{r['ratio']:.2f}×",
    "µs CPU a line": lambda r: f"{r['cpu'] / r['lines'] * 1e6:.0f}",
    "two processes, s wall": lambda r: f"{r['wall of two']:.1f}",
    "ratio of wall": lambda r: f"{r['wall ratio']:.2f}×",
    "MB, one process": lambda r: f"{r['memory']:.0f}",
    "MB, larger of two": lambda r: f"{r['memory of two']:.0f}",
}


def exponent(rows: Sequence[dict[str, float]], key: str) -> float:
    """The power of the size with which a cost grows, by least squares over all sizes; 1 is linear."""
    points = [(math.log(r["lines"]), math.log(r[key])) for r in rows]
    x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def drawn(rows: Sequence[dict[str, float]]) -> str:
    """The curve: CPU of the check and of parsing over lines, both axes from nought."""
    wide, high, edge = 640, 360, 50
    most, longest = max(r["lines"] for r in rows), max(max(r["cpu"], r["parse cpu"]) for r in rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" font-family="sans-serif">',
        f'<path d="M{edge} {edge}V{high - edge}H{wide - edge}" fill="none" stroke="#888"/>',
        f'<text x="{wide - edge}" y="{high - edge + 18}" text-anchor="end">{most:,.0f} lines</text>',
        f'<text x="{edge}" y="{edge - 10}">{longest:.0f} s CPU</text>',
    ]
    for key, color, name in (("cpu", "#c33", "troth check"), ("parse cpu", "#36c", "ast.parse alone")):
        across = [edge + r["lines"] / most * (wide - 2 * edge) for r in rows]
        down = [high - edge - r[key] / longest * (high - 2 * edge) for r in rows]
        points = [f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True)]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}"/>')
        for x, y in zip(across, down, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
        parts.append(
            f'<text x="{across[-1]:.1f}" y="{down[-1] - 8:.1f}" text-anchor="end" fill="{color}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, float]] = []
    print(f"| {' | '.join(COLUMNS)} |\n|{'--:|' * len(COLUMNS)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pyproject.toml").write_text("[project]\nname = 'many'\nversion = '1'\n")
        lines, laid = 0, 0
        for size in sorted(int(one) for one in options.sizes.split(",")):
            while lines < size:
                copy, place = divmod(laid, len(options.trees))
                tree = options.trees[place]
                lines += lay(tree, root / (f"{tree.name}-copy{copy}" if copy else tree.name))
                laid += 1
            rows.append(measure(root, lines, max(0, laid - len(options.trees)), options.repeat))
            print(f"| {' | '.join(cell(rows[-1]) for cell in COLUMNS.values())} |", flush=True)
    if len(rows) > 1:
        powers = [f"{exponent(rows, key):.2f}" for key in ("cpu", "parse cpu", "memory")]
        print("\nPowers of the lines with which grow CPU, parsing and memory: " + ", ".join(powers))
    if options.svg:
        options.svg.write_text(drawn(rows), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
