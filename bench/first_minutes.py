"""A newcomer's first minutes: `python -m bench.first_minutes [--only run] [--write] [--logs FOLDER]`.

In a folder of its own, with an empty home and a PATH that has little but Python, git and make, a script does what the
README says: it clones this repository into a folder called `troth` and gives both commands. Timed are `make run`, up to
the first finding on the screen and to its end, and `make test` twice in a row, the second time beside the `make test`
of another clone. Each command is reported when it ends. CPU is that of the command and of all it has started, also of
what a compiler or pip has used. The exit code is 1 if a command fails. `--write` puts the figures into
`bench/first_minutes.md`, `--logs FOLDER` keeps what the commands print. Linux only: CPU is read from `/proc`.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "bench/first_minutes.md"
_KEPT = ("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "REQUESTS_")  # the way to a package index
_FINDING = re.compile(rb":\d+:\d+  TR\d{3} ")
_START, _END = "<!-- made by `python -m bench.first_minutes --write` -->\n", "<!-- end -->"
_LONGEST = 3600.0  # seconds that a command may take


class Took(NamedTuple):
    """What a command came to: its exit code, seconds by the clock and of CPU; `first` is both at the first finding."""

    what: str
    code: int
    wall: float
    cpu: float
    first: tuple[float, float] | None
    tail: str


class Newcomer:
    """Somebody with an empty home, in a folder that is thrown away."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self._folder = folder
        self._logs = logs
        home = folder / "home"
        home.mkdir()
        path = os.pathsep.join(
            dict.fromkeys((str(Path(sys.executable).resolve().parent), "/usr/local/bin", "/usr/bin", "/bin"))
        )
        self._environ = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        self._environ |= {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TMPDIR": str(folder)}

    def clone(self, place: str) -> Path:
        """A clone of what is committed, in a folder called `troth`."""
        target = self._folder / place / "troth"
        target.parent.mkdir(exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, target], env=self._environ, check=True)
        return target

    def gives(self, commands: Sequence[tuple[str, Path, Sequence[str]]]) -> list[Took]:
        """Give commands at the same time, each with its name and its folder, and wait for all of them."""
        running = [_Running(what, where, command, self._environ, self._logs) for what, where, command in commands]
        begun = time.perf_counter()
        while sum(one.is_running() for one in running):  # each is looked at, so that each tells its own end
            time.sleep(0.05 if time.perf_counter() - begun < 60 else 0.5)  # looking costs, too
        return [one.took() for one in running]


class _Running:
    def __init__(self, what: str, where: Path, command: Sequence[str], environ: dict[str, str], logs: Path) -> None:
        self._what = what
        self._log = logs / f"{what}.log"
        self._begun = time.perf_counter()
        self._first: tuple[float, float] | None = None
        self._cpu = self._wall = 0.0
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(command, cwd=where, env=environ, stdout=out, stderr=subprocess.STDOUT)

    def is_running(self) -> bool:
        """Whether it has not ended; what it has used and printed so far is looked at on the way."""
        code = self._process.poll()
        if self._wall:
            return False
        self._cpu = max(self._cpu, _cpu_of(self._process.pid))
        if self._first is None and _FINDING.search(self._log.read_bytes()):
            self._first = time.perf_counter() - self._begun, self._cpu
        if code is None and time.perf_counter() - self._begun > _LONGEST:
            self._process.kill()
        if code is not None:
            self._wall = time.perf_counter() - self._begun
            sys.stderr.write(f"{self._what}: exit {code} after {self._wall:.0f} s, {self._cpu:.0f} s of CPU\n")
        return code is None

    def took(self) -> Took:
        """What it came to."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        tail = "\n".join(text.splitlines()[-15:])
        return Took(self._what, self._process.wait(), self._wall, self._cpu, self._first, tail)


def _cpu_of(pid: int) -> float:
    """Seconds of CPU of a process and of all it has started; those that are gone count with the one that waited."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15]))
    total = 0
    for one, ticks in used.items():
        at: int | None = one
        while at is not None and at != pid:
            at = parents.get(at)
        total += ticks if at == pid else 0
    return total / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Do it, tell it, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_minutes")
    parser.add_argument("--only", choices=("run",), help="only `make run`")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep what the commands print here")
    parser.add_argument("--write", action="store_true", help="put the figures into bench/first_minutes.md")
    options = parser.parse_args()
    rows: list[Took] = []
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        logs = Path(options.logs or name).absolute()
        logs.mkdir(parents=True, exist_ok=True)
        newcomer = Newcomer(Path(name), logs)
        clone = newcomer.clone("one")
        rows += newcomer.gives([("make run", clone, ["make", "run"])])
        if options.only is None:
            rows += newcomer.gives([("make test", clone, ["make", "test"])])
            other = newcomer.clone("two")
            both = ("make test, again, beside the next", clone), ("make test, in a second clone", other)
            rows += newcomer.gives([(what, where, ["make", "test"]) for what, where in both])
    table = _table(rows)
    sys.stdout.write(table)
    for one in rows:
        if one.code:
            sys.stdout.write(f"\n`{one.what}` ended with {one.code}:\n{one.tail}\n")
    if options.write:
        text = REPORT.read_text(encoding="utf-8")
        before, _, rest = text.partition(_START)
        REPORT.write_text(f"{before}{_START}{table}{_END}{rest.partition(_END)[2]}", encoding="utf-8")
    return 1 if any(one.code for one in rows) else 0


def _table(rows: Sequence[Took]) -> str:
    load = os.getloadavg()[0]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    system = f"Linux, Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.0f} at the end"
    lines = [f"Commit {commit.stdout.strip()}; {system}.", ""]
    lines += [
        "| command | ends with | seconds | seconds of CPU | first finding after | of CPU |",
        "|---|---|---|---|---|---|",
    ]
    for one in rows:
        first = ("–", "–") if one.first is None else tuple(f"{value:.1f}" for value in one.first)
        lines.append(f"| `{one.what}` | {one.code} | {one.wall:.0f} | {one.cpu:.0f} | {first[0]} | {first[1]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
