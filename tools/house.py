"""Print the figures of the house: how large its rooms are, how its variables are called, how its modules depend.

`python -m tools.house` measures `src/troth`. It shows the bars and refuses nothing.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Figures", "crowded", "figures", "imports", "main", "namesakes", "packages", "ring"]

HOME = Path(__file__).resolve().parents[1] / "src" / "troth"
MODULES = 20  # in a folder, beside its `__init__.py`
VAGUE = 2.0  # percent of the variables of a package
RING = 12  # modules
BRANCHES = 20
# Names that say that something was found, and not what it is.
WORDS = frozenset({
    "asked", "begun", "done", "found", "given", "here", "kept", "known", "left", "made", "named", "one", "ones",
    "other", "others", "rest", "said", "seen", "taken", "there", "told", "wanted", "what",
})  # fmt: skip
_DECISIONS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.Assert)


class Figures(NamedTuple):
    """What is counted in one package."""

    modules: int
    lines: int
    variables: int
    vague: int
    branching: int  # functions with too many branches
    positional: int  # reads of a tuple by a number

    @property
    def share(self) -> float:
        """How many of a hundred variables have a vague name."""
        return 100 * self.vague / max(self.variables, 1)


def figures(folder: Path) -> Figures:
    """Count in all modules below a folder."""
    return Figures(*map(sum, zip(*map(_counted, sorted(folder.rglob("*.py"))), strict=True)))


def branches(function: ast.AST) -> int:
    """How many ways lead through a function: as C901, and every `and`, `or`, ternary and comprehension besides."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, _DECISIONS):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


def crowded(home: Path) -> dict[str, int]:
    """The folders with more modules than a reader can keep apart, largest first."""
    folders = [home, *(path for path in home.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    counts = {
        folder.relative_to(home).as_posix(): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in folders
    }
    return dict(sorted(((f, n) for f, n in counts.items() if n > MODULES), key=lambda pair: (-pair[1], pair[0])))


def namesakes(home: Path) -> dict[str, list[str]]:
    """The public classes that share a name with one of another module, with those modules."""
    modules: dict[str, list[str]] = {}
    for path in sorted(home.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(path.relative_to(home).as_posix())
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}


def imports(home: Path, package: str) -> dict[str, set[str]]:
    """Which modules of a package import which, for types alone and inside of functions too."""
    base = home.parent
    paths = {_module(path, base): path for path in sorted((base / package.replace(".", "/")).rglob("*.py"))}
    return {
        name: {
            target
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for target in _targets(node, paths)
            if target in paths and target != name
        }
        for name, path in paths.items()
    }


def ring(graph: Mapping[str, set[str]]) -> list[str]:
    """The largest set of modules each of which leads to every other one."""
    reached = {name: _reachable(graph, name) for name in graph}
    largest: list[str] = []
    for name in graph:
        around = [target for target in reached[name] if name in reached[target]]
        largest = max(largest, around, key=len)
    return sorted(largest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and below it what stands out."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description="print the figures of the house")
    parser.add_argument("home", nargs="?", type=Path, default=HOME, help="the package (default: src/troth)")
    home = parser.parse_args(arguments).home.resolve()
    row = "{:<28}{:>8}{:>8}{:>9}{:>15}{:>12}"
    print(row.format("package", "modules", "lines", "vague %", f"> {BRANCHES} branches", "positional"))
    for folder in packages(home):
        counted = figures(folder)
        name = folder.relative_to(home.parent).as_posix()
        share = f"{counted.share:.1f}"
        print(row.format(name, counted.modules, counted.lines, share, counted.branching, counted.positional))
    over = crowded(home)
    print(
        f"folders with more than {MODULES} modules: {len(over)}", *(f"{n:>4}  {f}" for f, n in over.items()), sep="\n"
    )
    print(f"public classes that share a name: {len(namesakes(home))}")
    largest = ring(imports(home, f"{home.name}.analysis"))
    print(f"largest ring of imports in analysis: {len(largest)} modules (bar: {RING})")
    print(f"ruff C901 over {BRANCHES}: {_too_complex(home)}; vague names: bar {VAGUE:.0f} % per package")
    return 0


@cache
def _counted(path: Path) -> Figures:
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return Figures(
        modules=1,
        lines=len(text.splitlines()),
        variables=sum(name != "_" and not name.startswith("__") for name in names),
        vague=sum(name in WORDS for name in names),
        branching=sum(branches(function) > BRANCHES for function in functions),
        positional=sum(
            isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
            for node in nodes
        ),
    )


def packages(home: Path) -> Iterator[Path]:
    """The whole, its packages, and the packages of those that have many."""
    yield home
    for folder in sorted(path.parent for path in home.glob("*/__init__.py")):
        yield folder
        inner = sorted(path.parent for path in folder.glob("*/__init__.py"))
        yield from inner if len(inner) > 3 else ()


def _module(path: Path, base: Path) -> str:
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules else node.module


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """All modules that one leads to; itself only where it is in a ring."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def _too_complex(home: Path) -> int:
    """How many functions ruff would refuse."""
    settings = ["--isolated", "--select", "C901", "--config", f"lint.mccabe.max-complexity={BRANCHES}"]
    command = [sys.executable, "-m", "ruff", "check", *settings, "--output-format", "json", "--exit-zero", str(home)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return len(json.loads(process.stdout))


if __name__ == "__main__":
    sys.exit(main())
