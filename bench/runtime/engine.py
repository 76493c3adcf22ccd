"""Steps per second and CPU per step: Troth beside a bare SQLite loop, LangGraph's checkpointer and DBOS, in one run.

    python -m bench.runtime.engine            everything, two or three minutes
    python -m bench.runtime.engine --quick    fewer steps

Peers that are not installed are left out (`pip install --group bench`). Each measurement is repeated and its best round
is shown: other programs on the machine can only make a round slower. "x bare" compares CPU time with the bare loop:
one row per step in one transaction per step (WAL, synchronous=NORMAL), and nothing else. That loop does not know which
step was in flight when it was killed; the one with an intent does, as Troth does.
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

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


def langgraph(folder: Path, steps: int, rounds: int) -> Measured | None:
    """A graph of one node that loops; every superstep is a checkpoint in SQLite."""
    if importlib.util.find_spec("langgraph") is None or importlib.util.find_spec("langgraph.checkpoint.sqlite") is None:
        return None
    warnings.simplefilter("ignore")
    from typing import TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        value: int

    graph = StateGraph(State)
    graph.add_node("add", lambda state: {"value": state["value"] + 1})
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: "add" if state["value"] < steps else END)
    done = [0]
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        saver.conn.execute("PRAGMA journal_mode = WAL")
        saver.conn.execute("PRAGMA synchronous = NORMAL")
        app = graph.compile(checkpointer=saver)

        def work() -> None:
            done[0] += 1
            settings = {"configurable": {"thread_id": str(done[0])}, "recursion_limit": steps + 5}
            app.invoke({"value": 0}, settings, durability="sync")

        return measured(work, steps, rounds)


DBOS_PROGRAM = """
    import json, sys, time, logging
    try:
        import pysqlite3; sys.modules["sqlite3"] = pysqlite3
    except ImportError:
        pass
    from dbos import DBOS
    logging.disable(logging.CRITICAL)
    DBOS(config={"name": "bench", "system_database_url": "sqlite:///" + sys.argv[1], "run_admin_server": False})
    @DBOS.step()
    def add(x): return x + 1
    @DBOS.workflow()
    def count(steps):
        value = 0
        for _ in range(steps): value = add(value)
        return value
    DBOS.launch()
    steps, rounds, best = int(sys.argv[2]), int(sys.argv[3]), None
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        count(steps)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        now = (steps / wall, cpu / steps * 1e6)
        best = now if best is None else (max(best[0], now[0]), min(best[1], now[1]))
    print("RESULT", json.dumps(best), flush=True)
    import os; os._exit(0)
"""


def dbos(folder: Path, steps: int, rounds: int) -> Measured | None:
    """In a process of its own: it is a singleton, and replaces the process's sqlite3 where that is too old for it."""
    if importlib.util.find_spec("dbos") is None:
        return None
    command = [sys.executable, "-c", textwrap.dedent(DBOS_PROGRAM), str(folder / "dbos.db"), str(steps), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            rate, cpu = json.loads(line.removeprefix("RESULT"))
            return rate, cpu
    print("  dbos did not run:", (done.stderr or done.stdout).strip().splitlines()[-1:])
    return None


def show(name: str, result: Measured | None, bare: Measured | None = None) -> None:
    if result is None:
        print(f"  {name:<46} not installed")
        return
    rate, cpu = result
    times = f"{cpu / bare[1]:6.2f}   {rate / bare[0]:6.2f}" if bare is not None else ""
    print(f"  {name:<46} {rate:>9,.0f} {cpu:>10.1f}   {times}")


def side_by_side(folder: Path, steps: int, rounds: int) -> None:
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
    few = 100
    show("langgraph + sqlite checkpoints", langgraph(folder, few, 2), bares)
    show("dbos on sqlite", dbos(folder, few, 2), bares)


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


def growing(folder: Path, sizes: Sequence[int]) -> None:
    print(f"\n{'one run that grows':<48} {'steps/s':>9} {'CPU µs/step':>11}   peak RSS MB")
    for steps in sizes:
        with EmbeddedEngine(folder / f"grow-{steps}.db") as engine:
            rate, cpu = measured(lambda n=steps, e=engine: e.run(count, n), steps, 3 if steps <= 1000 else 1)
        print(f"  {steps:>9,} steps {'':<30} {rate:>9,.0f} {cpu:>10.1f}   {peak():>8.1f}")


def crowded(folder: Path, runs: int, steps: int) -> None:
    print(f"\n{'many runs at once':<48} {'steps/s':>9} {'CPU µs/step':>11}   threads  MB more")
    with EmbeddedEngine(folder / "crowd.db") as engine:
        for name, decision in (("async steps", acount), ("sync steps (worker threads)", count)):
            most, before = [0], peak()

            async def many(decision=decision, most=most) -> None:
                tasks = [asyncio.create_task(engine.arun(decision, steps)) for _ in range(runs)]
                while not all(task.done() for task in tasks):
                    most[0] = max(most[0], threading.active_count())
                    await asyncio.sleep(0.005)
                await asyncio.gather(*tasks)

            rate, cpu = measured(lambda many=many: asyncio.run(many()), runs * steps, 1)
            print(f"  {runs} runs, {name:<36} {rate:>9,.0f} {cpu:>10.1f}   {most[0]:>7}  {peak() - before:>7.1f}")


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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    is_quick = parser.parse_args(arguments).quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        side_by_side(folder, 500, 8 if is_quick else 40)
        with_fsync(folder, 50)
        growing(folder, (100, 1000, 10_000) if is_quick else (100, 1000, 10_000, 100_000))
        crowded(folder, 200, 10 if is_quick else 20)
        elsewhere(folder, 1000)


if __name__ == "__main__":
    main()
