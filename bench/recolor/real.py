"""Recolored for real: `python -m bench.recolor.real --repos FOLDER [--work FOLDER] [--only NAME ...]`.

Three changes of color on public repositories, each with the project's own tests before and after:

hypervisor   a class's surface made sync, with its 216 awaits in code; compared with the maintainers' own change, and
             with three half-done controls that the harness has to notice
needless     everything of a code base that is async without need, dispatchers and their handlers included
to-async     two stores that write to the disk made async, with all who call them

`--repos` holds bare repositories laid out as `owner+name/repo`; nothing is downloaded but the packages that tests need.
"""

import argparse
import ast
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from bench.real import CULTURE, HYPERVISOR, Real, difference, environment, outcomes, unpacked, untouched

HERE = Path(__file__).resolve().parents[2]
SIX = ("create_session", "join_session", "activate_session", "terminate_session", "verify_behavior", "monitor_sessions")


def recolor(tree: Path, *arguments: str) -> None:
    """Run the command in a tree, and tell its last line and what it cost."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-m", "troth", "recolor", *arguments, "--allow-dirty"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(HERE / "src"), "TROTH_NO_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    cost = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    last = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    print(
        f"  troth recolor {' '.join(arguments)}: exit {done.returncode}, {cost:.0f} s CPU, {last[-1] if last else ''}"
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    for line in done.stdout.splitlines():
        if line.endswith((" definitions", " definition", " to follow", "both colors")) or " calls in " in line:
            print(f"    {line}")


def awaits(tree: Path, names: tuple[str, ...]) -> int:
    """How many calls of these methods are awaited in the Python files of a tree."""
    count = 0
    for file in tree.rglob("*.py"):
        text = file.read_text(encoding="utf-8", errors="replace")
        if not any(name in text for name in names):
            continue
        try:
            module = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(module):
            call = node.value if isinstance(node, ast.Await) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                count += call.func.attr in names
    return count


def changed(one: Path, other: Path) -> list[str]:
    """The files that differ between two trees."""
    found = []
    for file in sorted(one.rglob("*")):
        name = file.relative_to(one)
        if file.is_file() and not {".troth_cache", ".git"} & set(name.parts):
            twin = other / name
            if not twin.exists() or twin.read_bytes() != file.read_bytes():
                found.append(name.as_posix())
    return found


def hypervisor(repos: Path, work: Path) -> None:
    """The surface of one class, 216 awaits."""
    real: Real = HYPERVISOR
    before, human = unpacked(repos, real, work / "before"), unpacked(repos, real, work / "human", real.after)
    tool = _copy(before, work / "tool")
    recolor(tool, "hypervisor.core:Hypervisor", "--to", "sync")
    print(f"  awaits of the six: {awaits(before, SIX)} before, {awaits(tool, SIX)} after")
    touched = [one for one in changed(before, tool) if one.endswith(".py")]
    same = [one for one in touched if (human / one).read_bytes() == (tool / one).read_bytes()]
    print(f"  Python files changed: {len(touched)}, byte for byte as the maintainers wrote them: {len(same)}")
    others = [one for one in changed(before, tool) if not one.endswith(".py")]
    alike = [one for one in others if (human / one).read_bytes() == (tool / one).read_bytes()]
    print(f"  pages and notebooks changed: {len(others)}, as the maintainers wrote them: {len(alike)}")
    for one in sorted(set(others) - set(alike)):
        print(f"    {one} differs")
    python = environment(work.parent / "environments", real)
    green = untouched(before, real, python, work.parent)
    print(f"  its tests: {difference(green, outcomes(tool, real, python))}")
    core = "agent-governance-python/agent-hypervisor/src/hypervisor/core.py"
    forgotten = "agent-governance-python/agent-hypervisor/tests/integration/test_scenarios.py"
    for name, kept in (
        ("definitions only", [one for one in touched if one != core]),
        ("calls only", [core]),
        ("one file forgotten", [forgotten]),
    ):
        control = _copy(tool, work / name.replace(" ", "_"))
        for one in kept:
            shutil.copyfile(before / one, control / one)
        found = difference(green, outcomes(control, real, python))
        same = [one for one in touched if (human / one).read_bytes() == (control / one).read_bytes()]
        print(
            f"  control, {name}: {len(found.worse)} tests worse, {len(touched) - len(same)} files not as they should be"
        )


def needless(repos: Path, work: Path) -> None:
    """A whole code base freed of needless async."""
    real: Real = CULTURE
    before, human = unpacked(repos, real, work / "before"), unpacked(repos, real, work / "human", real.after)
    tool = _copy(before, work / "tool")
    recolor(tool, ".", "--needless", "--to", "sync", "--cascade", "all")
    theirs, ours = (freed(before, tree) for tree in (human, tool))
    both = len(ours & theirs)
    print(f"  functions made sync: {len(ours)} by the tool, {len(theirs)} by the maintainers, {both} by both")
    for who, left in (("tool", theirs - ours), ("maintainers", ours - theirs)):
        for one in sorted(left)[:12]:
            print(f"    left by the {who}: {one}")
    python = environment(work.parent / "environments", real)
    print(f"  its tests: {difference(untouched(before, real, python, work.parent), outcomes(tool, real, python))}")


def freed(before: Path, after: Path) -> set[str]:
    """The functions that are async in one tree and plain in the other."""
    found = set()
    for file in before.rglob("*.py"):
        name = file.relative_to(before)
        if (after / name).exists() and (after / name).read_bytes() != file.read_bytes():
            old, new = (_colors(root / name) for root in (before, after))
            found |= {f"{name.as_posix()}:{one}" for one in old if old[one] and not new.get(one, True)}
    return found


def _colors(file: Path) -> dict[str, bool]:
    found: dict[str, bool] = {}

    def visit(node: ast.AST, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = path
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{path}.{child.name}" if path else child.name
                if not isinstance(child, ast.ClassDef):
                    found[inner] = isinstance(child, ast.AsyncFunctionDef)
            visit(child, inner)

    visit(ast.parse(file.read_text(encoding="utf-8")), "")
    return found


def to_async(repos: Path, work: Path) -> None:
    """Two stores that write to the disk, and all who call them."""
    real: Real = CULTURE
    before = unpacked(repos, real, work / "before")
    tool = _copy(before, work / "tool")
    stores = ("culture.server.room_store:RoomStore", "culture.server.thread_store:ThreadStore")
    recolor(tool, *stores, "--to", "async", "--cascade", "all")
    python = environment(work.parent / "environments", real)
    print(f"  its tests: {difference(untouched(before, real, python, work.parent), outcomes(tool, real, python))}")


def _copy(tree: Path, to: Path) -> Path:
    shutil.copytree(tree, to, symlinks=True)
    return to


PROOFS = {"hypervisor": hypervisor, "needless": needless, "to-async": to_async}


def main() -> None:
    """Carry out the proofs that are asked for."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=HERE / "build" / "bench-recolor")
    parser.add_argument("--only", nargs="*", choices=PROOFS, default=list(PROOFS))
    args = parser.parse_args()
    for name in args.only:
        print(name)
        work = (args.work / name).resolve()
        shutil.rmtree(work, ignore_errors=True)
        PROOFS[name](args.repos.resolve(), work)


if __name__ == "__main__":
    main()
