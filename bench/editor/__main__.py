"""Measure what an edit costs: `python -m bench.editor [PROJECT FILE] [--edits N] [--only NAME] [--bin FOLDER]`.

Each server is started on the same project, by default a public one of 167,000 lines, and typed at: a lost await, a
changed color, a renamed method and a broken line, in turn, each with a line of its own that a diagnostic has to name.
Then a function changes of which a second file makes use, until the diagnostic of that file is there. CPU is that of the
server and all its children: until the diagnostic is there (first), until that of the second file is there (dependents),
and until nothing moves any more (settled). `--bin` is the folder of the peers, an environment with
`requirements/bench.lock` in it. `--starts N` measures starts instead: a warm `troth check`, the floor and Troth
in turn, N times.
"""

import argparse
import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.editor.typist import Server, memory_of, precise
from bench.mutate.trees import Tree

PROJECT = Tree("python-telegram-bot", "22.8", ".")
FILE = "src/telegram/_poll.py"  # of 1,139 lines
PEERS = {
    "pygls floor": [sys.executable, "-m", "bench.editor.floor"],
    "troth": [sys.executable, "-m", "troth", "lsp"],
    "ruff": ["ruff", "server"],
    "ty": ["ty", "server"],
    "pyrefly": ["pyrefly", "lsp"],
    "zuban": ["zuban", "server"],
    "pyright": ["pyright-langserver", "--stdio"],
    "basedpyright": ["basedpyright-langserver", "--stdio"],
}
PLANTED = {
    "lost await": (
        "async def planted_{n}(): ...",
        "async def planted_by_{n}() -> None:\n    planted_{n}()\n    undefined_{n}\n",
    ),
    "changed color": (
        "def planted_{n}():\n    return 1",
        "async def planted_by_{n}() -> None:\n    await planted_{n}()\n    undefined_{n}\n",
    ),
    "renamed method": (
        "class Planted_{n}:\n    async def planted_{n}(self): ...",
        "async def planted_by_{n}(one: Planted_{n}) -> None:\n    one.planted_{n}()\n    undefined_{n}\n",
    ),
    "broken line": ("def planted_{n}(:", "    undefined_{n}\n"),
}
ALONE = ("troth", "pygls floor")  # they know nothing of undefined names, and are asked for the planted one
SECOND = "planted_dependent.py"
USES = "from .{module} import planted_used\n\n\nasync def dependent():\n    planted_used()\n"
SETTLED_USE, CHANGED_USE, RENAMED_USE = (
    "\n\ndef planted_used(): ...\n",
    "\n\nasync def planted_used(): ...\n",
    "\n\ndef planted_unused(): ...\n",
)


class Typed(NamedTuple):
    """CPU seconds of each edit, and the kinds whose diagnostic never came."""

    first: list[float]
    settled: list[float]
    missed: list[str]


class Measured(NamedTuple):
    """What one server needs."""

    ready: float
    ready_cpu: float
    typed: Typed
    dependents: list[float]
    memory: float


def main() -> None:
    """Measure the servers that are there."""
    parser = argparse.ArgumentParser(prog="python -m bench.editor")
    parser.add_argument("project", type=Path, nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--edits", type=int, default=40)
    parser.add_argument("--starts", type=int, help="measure so many starts, and no edits")
    parser.add_argument("--only", action="append", choices=PEERS)
    parser.add_argument("--bin", type=Path, help="the folder of the peers' programs")
    args = parser.parse_args()
    source = (args.project or PROJECT.fetch()).resolve()
    inside = FILE if args.file is None else args.file.resolve().relative_to(source)
    with tempfile.TemporaryDirectory(prefix="troth-editor-") as scratch:
        project = Path(scratch) / source.name
        shutil.copytree(source, project, ignore=shutil.ignore_patterns(".git", ".troth_cache", "__pycache__"))
        file = project / inside
        (file.parent / SECOND).write_text(USES.format(module=file.stem))
        file.write_text(file.read_text() + SETTLED_USE)
        check = warm_check(project)
        if args.starts:
            _measure_starts(project, file, args.starts)
            return
        print(f"`troth check`, warm: {check:.2f} s of CPU")
        heads = ("ready s", "its CPU", "first ms: median / p95", "dependents ms", "settled ms", "MB")
        widths = (8, 8, 23, 17, 17, 5)
        columns = " ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))
        print(f"{'server':13} {columns}  never named")
        for name, command in PEERS.items():
            program = shutil.which(command[0], path=str(args.bin)) if args.bin else None
            program = (
                program or shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(command[0])
            )
            if (args.only and name not in args.only) or program is None:
                continue
            print(_row(name, measure(name, [program, *command[1:]], project, file, args.edits)), flush=True)


def warm_check(project: Path) -> float:
    """The CPU seconds of a second `troth check`, which also leaves the cache that an editor begins with."""
    import resource

    command = [sys.executable, "-m", "troth", "check", "--exit-zero", "--quiet"]
    used = 0.0
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used


def _measure_starts(project: Path, file: Path, count: int) -> None:
    """Print what starts cost, in turn, as a busy machine changes its pace; and what a start without a cache keeps."""
    checks, floors, starts = [], [], []
    for _ in range(count):
        checks.append(warm_check(project))
        floors.append(_start(PEERS["pygls floor"], project, file)[0])
        starts.append(_start(PEERS["troth"], project, file)[0])
    check, floor, start = map(statistics.median, (checks, floors, starts))
    print(f"CPU s: warm `troth check` {check:.3f}, floor {floor:.3f}, Troth {start:.3f}")
    print(f"over the floor: {start - floor:.3f}, {(start - floor) / check:.2f} times the check")
    print(f"with a cache, the server has at most {_start(PEERS['troth'], project, file)[1]:.0f} MB")
    shutil.rmtree(project / ".troth_cache")
    print(f"without one, {_start(PEERS['troth'], project, file)[1]:.0f} MB")


def _start(command: list[str], project: Path, file: Path) -> tuple[float, float]:
    """The CPU seconds until a server has told of a file, and the memory it needed until it was settled."""
    server = Server(command, project)
    try:
        uri = file.as_uri()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": file.read_text()}
        server.notify("textDocument/didOpen", {"textDocument": item})
        server.first_answer(uri)
        used = precise(server.process.pid)
        server.settle()
        return used, memory_of(server.process.pid)
    finally:
        server.process.kill()
        server.process.wait()


def measure(name: str, command: list[str], project: Path, file: Path, edits: int) -> Measured:
    """Start a server, type at it, and end it."""
    server = Server(command, project)
    try:
        versions = itertools.count(1)
        text, uri = file.read_text(), file.as_uri()
        second = (file.parent / SECOND).as_uri()
        for opened, content in ((uri, text), (second, (file.parent / SECOND).read_text())):
            item = {"uri": opened, "languageId": "python", "version": next(versions), "text": content}
            server.notify("textDocument/didOpen", {"textDocument": item})
        server.first_answer(uri)
        ready, ready_cpu = time.perf_counter() - server.begun, precise(server.process.pid)
        server.settle()
        typed = _type(name, server, uri, text, edits, versions)
        used = [] if name == "pygls floor" else _type_for_dependents(name, server, (uri, second), text, versions)
        return Measured(ready, ready_cpu, typed, used, memory_of(server.process.pid))
    finally:
        server.process.kill()
        server.process.wait()


def _type(name: str, server: Server, uri: str, text: str, edits: int, versions: itertools.count) -> Typed:
    first, settled, seen = [], [], dict.fromkeys(PLANTED, 0)
    mark = "planted_" if name in ALONE else "undefined_"
    for number, kind in zip(range(1, edits + 1), itertools.cycle(PLANTED), strict=False):
        typed = f"{text}\n\n" + "\n\n\n".join(PLANTED[kind]).format(n=number)
        wanted = [line for line, content in enumerate(typed.split("\n")) if f"{mark}{number}" in content]
        if kind == "broken line":  # everybody tells of the line itself
            wanted = [line for line, content in enumerate(typed.split("\n")) if f"planted_{number}(:" in content]
        target = wanted[-1]
        before = precise(server.process.pid)
        server.change(uri, next(versions), typed)
        is_seen = server.until(uri, target)
        seen[kind] += is_seen
        if is_seen:  # else it waited in vain, which says nothing of its speed
            first.append(precise(server.process.pid) - before)
        server.settle()
        settled.append(precise(server.process.pid) - before)
    return Typed(first, settled, [kind for kind, count in seen.items() if not count])


def _type_for_dependents(
    name: str, server: Server, uris: tuple[str, str], text: str, versions: itertools.count
) -> list[float]:
    """The CPU until the second file's diagnostic is there: its call lost (ours), its import broken (theirs)."""
    uri, second = uris
    changed, line = (CHANGED_USE, 4) if name == "troth" else (RENAMED_USE, 0)
    used = []
    for _ in range(8):
        server.change(uri, next(versions), text)
        server.settle()
        if line in server.lines(second):
            return []  # it says something there in any case, so nothing can be waited for
        before = precise(server.process.pid)
        server.change(uri, next(versions), text.removesuffix(SETTLED_USE) + changed)
        if server.until(second, line):
            used.append(precise(server.process.pid) - before)
        server.settle()
    return used


def _row(name: str, measured: Measured) -> str:
    typed = measured.typed
    return (
        f"{name:13} {measured.ready:8.2f} {measured.ready_cpu:8.2f} {_median_and_p95(typed.first):>23} "
        f"{_median_and_p95(measured.dependents):>17} {_median_and_p95(typed.settled):>17} {measured.memory:5.0f}  "
        f"{', '.join(typed.missed) or '-'}"
    )


def _median_and_p95(values: list[float]) -> str:
    if not values:
        return "-"
    ordered = sorted(values)
    return f"{statistics.median(values) * 1000:.1f} / {ordered[max(0, int(len(ordered) * 0.95) - 1)] * 1000:.1f}"


if __name__ == "__main__":
    main()
