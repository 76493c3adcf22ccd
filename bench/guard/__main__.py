"""Measures the guard beside what else there is: `python -m bench.guard [--quick]`.

Tables: lost coroutines (who sees them, names the line, fails), the cost of watching, blocked loops. Peers that
are not installed are left out with a note. Times are processor time, as ratios within this one run.
"""

import argparse
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.guard.mistakes import CORRECT, MISTAKES, line_of, script, suite

STRICT = ("-W", "error", "-W", "error::pytest.PytestUnraisableExceptionWarning")
PYTEST = (
    sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:anyio", "-rA",
)  # fmt: skip


def call(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TROTH", "PYTHON", "PYTEST"))}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, env=clean | environment
    )


def row(*cells: object) -> None:
    first, *rest = cells
    print(f"| {first!s:<44} |" + "".join(f" {cell!s:<26} |" for cell in rest))


def head(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


def lost_in_scripts(folder: Path) -> None:
    ways: dict[str, tuple[str, ...]] = {
        "python": (),
        "python -X dev": ("-X", "dev"),
        "python -W error": ("-W", "error"),
        "python -m troth.guard": ("-m", "troth.guard", "--blocked", "0"),
    }
    head("lost coroutines: scripts", "seen (of 9)", "line named", "exit code fails", "false alarms")
    for way, flags in ways.items():
        seen = named = failed = 0
        for number, body in enumerate(MISTAKES.values()):
            path = folder / f"mistake_{number}.py"
            path.write_text(script(body))
            done = call(sys.executable, *flags, path.name, cwd=folder)
            seen += "never awaited" in done.stderr
            named += f"{path.name}:{line_of(script(body))}" in done.stderr or (
                f'{path.name}", line {line_of(script(body))}' in done.stderr
            )
            failed += done.returncode != 0
        (folder / "correct.py").write_text(script(CORRECT))
        done = call(sys.executable, *flags, "correct.py", cwd=folder)
        row(way, seen, named, failed, int(done.returncode != 0 or "never awaited" in done.stderr))
    print()


def lost_in_tests(folder: Path) -> None:
    (folder / "test_mistakes.py").write_text(suite())
    ways = {"pytest": (), "pytest, strictest flags": STRICT, "pytest --troth": ("--troth",)}
    head("lost coroutines: tests", "guilty test fails (of 9)", "line named", "innocent tests failed")
    for way, flags in ways.items():
        out = call(*PYTEST, *flags, "test_mistakes.py", cwd=folder).stdout
        failed = set(re.findall(r"^(?:FAILED|ERROR) \S*::test_(\d+_\w+)", out, re.MULTILINE))
        named = sum(f"test_mistakes.py:{line_of(suite(), number)}" in out for number in range(len(MISTAKES)))
        guilty = sum(f"{number}_guilty" in failed for number in range(len(MISTAKES)))
        innocent = sum(name.endswith("innocent") for name in failed) + (f"{len(MISTAKES)}_guilty" in failed)
        row(way, guilty, named, innocent)
    print()


COROUTINES = """
import sys, time
{setup}
async def work(): pass
def loop(n):
    for _ in range(n):
        try:
            work().send(None)
        except StopIteration:
            pass
loop(20000)
best = min((lambda t: (loop(100000), time.process_time() - t)[1])(time.process_time()) for _ in range({rounds}))
print(best / 100000 * 1e9)
"""

TURNS = """
import asyncio, time
{setup}
async def work(): pass
async def main():
    async def turns(n):
        for _ in range(n):
            await asyncio.sleep(0)
    async def tasks(n):
        for _ in range(n):
            await asyncio.create_task(work())
    for what, n in ((turns, 40000), (tasks, 15000)):
        await what(2000)
        best = 1e9
        for _ in range({rounds}):
            begun = time.process_time()
            await what(n)
            best = min(best, time.process_time() - begun)
        taken.append(best / n * 1e9)
taken = []
asyncio.run(main(){debug})
{over}
print(*taken)
"""


def figures(folder: Path, source: str, runs: int) -> list[float]:
    """The best of several processes, figure by figure."""
    (folder / "measured.py").write_text(source)
    taken = []
    for _ in range(runs):
        done = call(sys.executable, "measured.py", cwd=folder)
        if not done.stdout:  # the exit code says nothing: blockbuster 1.5 ends with a segmentation fault on 3.11
            raise SystemExit(f"the measured program failed:\n{done.stderr}")
        taken.append([float(line) for line in done.stdout.split()])
    return [min(column) for column in zip(*taken, strict=True)]


def costs(folder: Path, rounds: int, runs: int) -> None:
    head("cost per coroutine made and awaited", "ns", "more than without, µs")
    [none] = figures(folder, COROUTINES.format(setup="", rounds=rounds), runs)
    row("without", f"{none:.0f}", "")
    for name, setup in {
        "guard.install()": "from troth import guard; guard.install()",
        "guard.install(depth=5)": "from troth import guard; guard.install(depth=5)",
        "guard.install(depth=8), as in the plugin": "from troth import guard; guard.install(depth=8)",
    }.items():
        [taken] = figures(folder, COROUTINES.format(setup=setup, rounds=rounds), runs)
        row(name, f"{taken:.0f}", f"{(taken - none) / 1000:.2f}")
    print()


BLOCKING = """
import asyncio, sys, time, logging
logging.basicConfig(format="%(message)s")
{setup}
async def culprit():
    await asyncio.sleep(0.05)
    {block}  # here
    {over}
    print("BLOCK OVER", file=sys.stderr, flush=True)
asyncio.run(culprit(){debug})
"""

BLOCKS = {"sleep": "time.sleep(0.5)", "pure CPU": "sum(i * i for i in range(6_000_000))"}

WATCHERS = {
    "asyncio debug mode": ("asyncio", "", ", debug=True", ""),
    "aiodebug log_slow_callbacks": (
        "aiodebug", "import aiodebug.log_slow_callbacks; aiodebug.log_slow_callbacks.enable(0.1)", "", ""),
    "blockbuster": ("blockbuster", "import blockbuster; buster = blockbuster.BlockBuster(); buster.activate()", "",
        "buster.deactivate()"),
    "guard.install(blocked=0.1)": ("troth", "from troth import guard; guard.install(blocked=0.1)", "", ""),
}  # fmt: skip


def blocked(folder: Path, rounds: int, runs: int) -> None:
    head("blocked loop", "sleep: when / line", "pure CPU: when / line", "cost, sleep(0) / task, ×")
    none = figures(folder, TURNS.format(setup="", debug="", over="", rounds=rounds), runs)
    missing = []
    for name, (package, setup, debug, over) in WATCHERS.items():
        if importlib.util.find_spec(package) is None:
            missing.append(name)
            continue
        cells = []
        for block in BLOCKS.values():
            source = BLOCKING.format(setup=setup, block=block, debug=debug, over=over)
            (folder / "blocking.py").write_text(source)
            shown = call(sys.executable, "blocking.py", cwd=folder).stderr
            before, _, after = shown.partition("BLOCK OVER")
            line = f"blocking.py:{line_of(source)}" in shown or f'blocking.py", line {line_of(source)}' in shown
            when = "during" if before.strip() else "after" if after.strip() else "never"
            cells.append(f"{when} / {'named' if line else 'not named'}")
        taken = figures(folder, TURNS.format(setup=setup, debug=debug, over=over, rounds=rounds), runs)
        row(name, *cells, over_floor(taken, none))
    for name in missing:
        print(f"(not installed, left out: {name})")
    print()


def over_floor(taken: list[float], floor: list[float]) -> str:
    return " / ".join(f"{now / was:.2f}" for now, was in zip(taken, floor, strict=True))


IDLE_THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
UNWATCHED = "from troth import guard; guard.install(blocked=None)"
PARTS = {
    "nothing": "",
    "an idle thread": IDLE_THREAD,
    "guard.install(blocked=None)": UNWATCHED,
    "guard.install(blocked=None), an idle thread": f"{UNWATCHED}; {IDLE_THREAD}",
    "guard.install(blocked=0.1)": "from troth import guard; guard.install(blocked=0.1)",
}
BAR = 1.05


def watching(folder: Path, rounds: int, runs: int) -> None:
    """What the watch of blocked loops adds: to a guard without it, and to a program that has a second thread already.

    A process with a second thread, however idle, pays for it in every call of the C library that takes a lock or may be
    cancelled. A program that looks up a host name, or uses `to_thread`, has one.
    """
    head("the watch of blocked loops, part by part", "ns, sleep(0) / task", "× nothing")
    sources = {name: TURNS.format(setup=setup, debug="", over="", rounds=rounds) for name, setup in PARTS.items()}
    taken: dict[str, list[list[float]]] = {name: [] for name in PARTS}
    for _ in range(runs):  # in turn, so that a busy moment of the machine touches every row
        for name, source in sources.items():
            taken[name].append(figures(folder, source, 1))
    best = {name: [min(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    for name, figure in best.items():
        row(name, " / ".join(f"{value:.0f}" for value in figure), over_floor(figure, best["nothing"]))
    watch = best["guard.install(blocked=0.1)"]
    for floor in ("guard.install(blocked=None)", "guard.install(blocked=None), an idle thread"):
        ratios = [now / was for now, was in zip(watch, best[floor], strict=True)]
        reached = "reached" if max(ratios) <= BAR else "MISSED"
        print(f"the watch, beside {floor}: {over_floor(watch, best[floor])} ×, the bar is {BAR}: {reached}")
    print()


TESTS = """
import asyncio, pytest
async def work(n): return n
@pytest.mark.parametrize("n", range(400))
def test_something(n):
    async def main():
        return sum(await asyncio.gather(*(work(i) for i in range(20))))
    assert asyncio.run(main()) == 190
"""


def plugin(folder: Path, runs: int) -> None:
    (folder / "test_many.py").write_text(TESTS)
    head("400 small async tests", "processor seconds", "×")
    timed = "import resource, runpy, sys\ntry:\n    runpy.run_module('pytest', run_name='__main__')\nfinally:\n"
    timed += "    used = resource.getrusage(resource.RUSAGE_SELF)\n    print('CPU', used.ru_utime + used.ru_stime)\n"
    (folder / "timed.py").write_text(timed)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:anyio", "test_many.py")
    seconds: dict[str, list[float]] = {"pytest": [], "pytest, strictest flags": [], "pytest --troth": []}
    flags = {"pytest": ("-p", "no:troth"), "pytest, strictest flags": STRICT, "pytest --troth": ("--troth",)}
    for _ in range(runs):
        for way, taken in seconds.items():
            out = call(sys.executable, "timed.py", *options, *flags[way], cwd=folder).stdout
            taken.append(float(re.findall(r"^CPU (\S+)", out, re.MULTILINE)[0]))
    none = statistics.median(seconds["pytest"])
    for way, taken in seconds.items():
        row(way, f"{statistics.median(taken):.2f}", f"{statistics.median(taken) / none:.2f}")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: rough figures in half a minute")
    quick = parser.parse_args().quick
    rounds, runs = (3, 1) if quick else (5, 3)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lost_in_scripts(folder)
        lost_in_tests(folder)
        costs(folder, rounds, runs)
        blocked(folder, rounds, runs)
        watching(folder, rounds, runs)
        plugin(folder, runs)


if __name__ == "__main__":
    main()
