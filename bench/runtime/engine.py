"""Steps per second and CPU per step: Troth beside a bare SQLite loop, LangGraph's checkpointer and DBOS, in one run.

    python -m bench.runtime.engine                       everything, two or three minutes
    python -m bench.runtime.engine --quick               fewer steps
    python -m bench.runtime.engine --peers PYTHON        peers in an environment of their own (`_engine_peers.py`)

Peers that are not installed are left out. Each measurement is repeated, turn by turn with the others, and its best
round is shown: other programs on the machine can only make a round slower. "x bare" compares CPU time with the bare
loop: one row per step in one transaction per step (WAL, synchronous=NORMAL), and nothing else. That loop does not know
which step was in flight when it was killed; the one with an intent does, as Troth does. Memory is that of a process of
its own for each row: how far its peak lies above what it had before the first run.
"""

import argparse
import asyncio
import gc
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.runtime import _engine_peers as peers

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import SqliteStore

Measured = tuple[float, float]


def add(x: int) -> int:
    return x + 1


async def aadd(x: int) -> int:
    return x + 1


def count(steps: int):
    value = 0
    for _ in range(steps):
        value = yield Step("add", add, value)
    return value


def acount(steps: int):
    value = 0
    for _ in range(steps):
        value = yield Step("add", aadd, value)
    return value


def measured(work: Callable[[], object], steps: int, rounds: int) -> Measured:
    """The best round's (steps per second, CPU microseconds per step)."""
    best = (0.0, float("inf"))
    for _ in range(rounds):
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        best = max(best[0], steps / wall), min(best[1], cpu / steps * 1e6)
    return best


class Bare:
    """What one would write by hand, as Python's own pages show it: `with db:` and one row once the step is done."""

    def __init__(self, path: Path, synchronous: str = "NORMAL") -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA synchronous = {synchronous}")
        self.db.execute(
            "CREATE TABLE steps (run TEXT, seq INT, name TEXT, key TEXT, args TEXT, result TEXT, began REAL, "
            "ended REAL, PRIMARY KEY (run, seq))"
        )
        self.runs = 0

    def keep_intent(self, run: str, seq: int, args: object) -> None:
        """Say, before its effect, that the step begins."""
        with self.db:
            self.db.execute(
                "INSERT INTO steps (run, seq, name, key, args, began) VALUES (?, ?, ?, ?, ?, ?)",
                (run, seq, "add", f"{run}:{seq}:add", json.dumps(args), time.time()),
            )

    def keep_answer(self, run: str, seq: int, result: object) -> None:
        """Say how it ended."""
        with self.db:
            self.db.execute(
                "UPDATE steps SET result = ?, ended = ? WHERE run = ? AND seq = ?",
                (json.dumps(result), time.time(), run, seq),
            )

    def run_with_intent(self, steps: int) -> None:
        """Two transactions for each step."""
        self.runs += 1
        run, value = f"20260101-000000-{self.runs:08}", 0
        for seq in range(steps):
            self.keep_intent(run, seq, [value])
            value = add(value)
            self.keep_answer(run, seq, value)

    def keep(self, run: str, seq: int, args: object, result: object, began: float) -> None:
        """Write one step down."""
        with self.db:
            self.db.execute(
                "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run, seq, "add", f"{run}:{seq}:add", json.dumps(args), json.dumps(result), began, time.time()),
            )

    def run(self, steps: int) -> None:
        """One transaction for each step."""
        self.runs += 1
        run, value = f"20260101-000000-{self.runs:08}", 0
        for seq in range(steps):
            began = time.time()
            result = add(value)
            self.keep(run, seq, [value], result, began)
            value = result

    async def arun(self, steps: int) -> None:
        """The same with async steps."""
        self.runs += 1
        run, value = f"20260101-000000-{self.runs:08}", 0
        for seq in range(steps):
            began = time.time()
            result = await aadd(value)
            self.keep(run, seq, [value], result, began)
            value = result


def show(name: str, result: Measured, bare: Measured | None = None, more: str = "") -> None:
    rate, cpu = result
    times = f"{cpu / bare[1]:6.2f}   {rate / bare[0]:6.2f}" if bare is not None else ""
    print(f"  {name:<46} {rate:>9,.0f} {cpu:>10.1f}   {times}{more}")


def side_by_side(folder: Path, steps: int, rounds: int, python: str) -> None:
    print(f"\n{'one run, steps one after the other':<48} {'steps/s':>9} {'CPU µs/step':>11}   x bare  rate/bare")
    bare = Bare(folder / "bare.db")
    with EmbeddedEngine(folder / "troth.db") as engine:
        ours = bares = intents = aours = abares = (0.0, 1e9)
        for _ in range(rounds):  # turn by turn, so that a slow moment of the machine hits both
            bares = _better(bares, measured(lambda: bare.run(steps), steps, 1))
            intents = _better(intents, measured(lambda: bare.run_with_intent(steps), steps, 1))
            ours = _better(ours, measured(lambda: engine.run(count, steps), steps, 1))
            abares = _better(abares, measured(lambda: asyncio.run(bare.arun(steps)), steps, 1))
            aours = _better(aours, measured(lambda: asyncio.run(engine.arun(acount, steps)), steps, 1))
    show("bare SQLite loop, sync", bares, bares)
    show("bare loop that writes intent and answer", intents, bares)
    show("troth, sync steps, run", ours, bares)
    show("bare SQLite loop, async", abares, abares)
    show("troth, async steps, arun", aours, abares)
    for name in peers.PEERS:
        found = peers.measure(python, name, folder, 100, 2)
        if isinstance(found, str):
            print(f"  {name:<46} {found}")
        else:
            show(f"{name} ({found[0]})", found[1:], bares)


def _better(best: Measured, now: Measured) -> Measured:
    return max(best[0], now[0]), min(best[1], now[1])


def with_fsync(folder: Path, steps: int) -> None:
    print(f"\n{'synchronous=FULL (survives a power cut)':<48} {'steps/s':>9} {'CPU µs/step':>11}   x bare  rate/bare")
    bare = Bare(folder / "bare-full.db", "FULL")
    bares = measured(lambda: bare.run(steps), steps, 2)
    show("bare SQLite loop, one run", bares, bares)
    store = SqliteStore(folder / "full.db", synchronous="FULL")
    with store, EmbeddedEngine(store) as engine:
        show("troth, one run", measured(lambda: engine.run(count, steps), steps, 2), bares)

        async def many() -> None:
            await asyncio.gather(*(engine.arun(acount, steps) for _ in range(50)))

        show(
            "troth, 50 runs at once (commits share an fsync)",
            measured(lambda: asyncio.run(many()), steps * 50, 1),
            bares,
        )


def growing(sizes: Sequence[int]) -> None:
    print(f"\n{'one run that grows, sync steps':<48} {'steps/s':>9} {'CPU µs/step':>11}   MB more")
    for steps in sizes:
        show(f"{steps:>9,} steps", *alone("grow", steps))
    steps = sizes[-1]
    show(f"{steps:>9,} steps replayed (a fork before its last)", *alone("replay", steps))


def crowded(runs: int, steps: int) -> None:
    print(f"\n{'many runs at once':<48} {'steps/s':>9} {'CPU µs/step':>11}   MB more  threads")
    for name in ("async steps", "sync steps (worker threads)"):
        show(f"{runs} runs, {name}", *alone(f"crowd {name.split()[0]}", steps, runs))
    show(f"{runs * 10} runs, async steps", *alone("crowd async", steps, runs * 10))


def alone(case: str, steps: int, runs: int = 1) -> tuple[Measured, None, str]:
    """One case in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "bench.runtime.engine", "--case", case, str(steps), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    rate, cpu, more, threads = json.loads(done.stdout.splitlines()[-1])
    return (rate, cpu), None, f"{more:>7.1f}  {threads:>7}"


def case(name: str, steps: int, runs: int) -> None:
    """What `alone` runs: prints steps per second, CPU µs per step, MB above the beginning, and the most threads."""
    most = [threading.active_count()]
    with tempfile.TemporaryDirectory() as folder, EmbeddedEngine(Path(folder, "troth.db")) as engine:
        engine.run(count, 10)
        if name == "replay":
            engine.run(count, steps, run_id="long")

        async def many() -> None:
            decision = acount if name == "crowd async" else count
            tasks = [asyncio.create_task(engine.arun(decision, steps)) for _ in range(runs)]
            while not all(task.done() for task in tasks):
                most[0] = max(most[0], threading.active_count())
                await asyncio.sleep(0.005)
            await asyncio.gather(*tasks)

        work = {
            "grow": lambda: engine.run(count, steps),
            "replay": lambda: engine.fork("long", steps).result(600),
        }.get(name, lambda: asyncio.run(many()))
        gc.collect()
        before = resident()
        rate, cpu = measured(work, steps * runs, 3 if name == "grow" and steps <= 1000 else 1)
        print(json.dumps([rate, cpu, max(0.0, peak() - before), most[0]]))


def elsewhere(folder: Path, steps: int) -> None:
    """A sync call inside a running loop, two loops one after the other, and a second process on a live file."""
    print(f"\n{'in other places':<48} {'steps/s':>9} {'CPU µs/step':>11}")
    with EmbeddedEngine(folder / "places.db", decisions=[count]) as engine:

        async def inside() -> None:
            await asyncio.sleep(0)
            engine.run(count, steps)

        warnings.simplefilter("ignore")
        show("sync run inside a running loop", measured(lambda: asyncio.run(inside()), steps, 2))
        show("the second of two loops", measured(lambda: asyncio.run(engine.arun(acount, steps)), steps, 2))
        program = (
            "import sys; from troth.runtime.engine import EmbeddedEngine; from bench.runtime.engine import count\n"
            "with EmbeddedEngine(sys.argv[1]) as engine:\n"
            "    print('ready', flush=True)\n"
            "    for _ in range(1000000): engine.run(count, 100)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(folder / "places.db")], stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            show("while a second process writes to the same file", measured(lambda: engine.run(count, steps), steps, 2))
            other.kill()


def peak() -> float:
    """The most memory this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident() -> float:
    """What it has now; on systems without /proc, the most it ever had, which is near enough before any work."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize() / 1024 / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="an interpreter that has the peers")
    parser.add_argument("--case", nargs=3, metavar=("NAME", "STEPS", "RUNS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.case:
        name, steps, runs = options.case
        case(name, int(steps), int(runs))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        side_by_side(folder, 500, 8 if options.quick else 40, options.peers)
        with_fsync(folder, 50)
        growing((100, 1000, 10_000) if options.quick else (100, 1000, 10_000, 100_000))
        crowded(200, 10 if options.quick else 20)
        elsewhere(folder, 1000)


if __name__ == "__main__":
    main()
