"""Steps per second and CPU per step of workflows, beside the bare engine, LangGraph with SQLite, and Temporal.

    python -m bench.runtime.workflows            about two minutes
    python -m bench.runtime.workflows --quick    fewer steps
    python -m bench.runtime.workflows --long     also a run of 100,000 steps
    python -m bench.runtime.workflows --at-once 1000    only so many runs at once

One step is one call of a function that adds one, recorded. A run's own beginning, its end and the report that it
returns are counted in. Peers that are not installed are left out. Compare the CPU: the wall belongs to
the whole machine. Temporal's server is a process of its own, whose CPU is shown beside. What was measured last is in
`WORKFLOWS.md`.
"""

import argparse
import asyncio
import gc
import importlib.util
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.runtime import _temporal

from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine import EmbeddedEngine, Step

Measured = tuple[float, float]


def add(x: int) -> int:
    return x + 1


async def aadd(x: int) -> int:
    return x + 1


def looping(steps: int, function: Callable[..., object] = add) -> Workflow:
    """One loop of so many rounds."""
    return Workflow("bench", step("l", loop=[step("a", function=function, inputs={"x": "round"})], at_most=steps))


def straight(steps: int) -> Workflow:
    """So many steps, one after the other, each reading the one before."""
    first = step("s0", function=add, inputs={"x": 0})
    rest = [step(f"s{n}", function=add, inputs={"x": f"steps.s{n - 1}"}) for n in range(1, steps)]
    return Workflow("bench", first, *rest)


def counting(steps: int):
    value = 0
    for _ in range(steps):
        value = yield Step("add", add, value)
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


def langgraph(folder: Path, steps: int) -> Callable[[], object]:
    """A graph whose node goes back to itself, checkpointed into SQLite after every step."""
    import sqlite3
    from typing import TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        x: int

    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"x": add(state["x"])})
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: END if state["x"] >= steps else "a")
    saver = SqliteSaver(sqlite3.connect(folder / "langgraph.db", check_same_thread=False))
    compiled = graph.compile(checkpointer=saver)
    runs = iter(range(1_000_000))

    def work() -> object:
        config = {"configurable": {"thread_id": str(next(runs))}, "recursion_limit": steps + 5}
        return compiled.invoke({"x": 0}, config)

    return work


def show(name: str, found: Measured, base: Measured) -> None:
    print(f"{name:<44} {found[0]:>9,.0f} steps/s {found[1]:>8.0f} µs CPU/step {found[1] / base[1]:>6.2f} x engine")


def resident() -> int:
    """The memory this process has now, in kB; Linux only."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() // 1024


def many_at_once(folder: Path, runs: int) -> None:
    """Threads and memory of many runs at once, each of five steps, sync and async in turn; in a process of its own."""
    steps = [step(f"s{n}", function=add if n % 2 else aadd, inputs={"x": n}) for n in range(5)]
    flow = Workflow("many", *steps)
    most, peak = threading.active_count(), 0

    async def main(runtime: Runtime, linked: object, count: int) -> None:
        nonlocal most, peak
        tasks = [asyncio.create_task(runtime.arun(linked)) for _ in range(count)]
        while not all(task.done() for task in tasks):
            most, peak = max(most, threading.active_count()), max(peak, resident())
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks)

    with Runtime(folder / "many.db") as runtime:
        linked = runtime.load(flow)
        asyncio.run(main(runtime, linked, 10))  # what is made once is made now
        before, peak = resident(), 0
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(main(runtime, linked, runs))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    grown = peak - before
    print(
        f"{runs:>6,} runs at once, 5 steps each: {wall:5.1f} s, {cpu / runs / 5 * 1e6:>4.0f} µs CPU/step, "
        f"at most {most} threads, {grown / 1024:.0f} MB more at the peak ({grown / runs:.0f} kB for each run)",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--at-once", type=int)
    args = parser.parse_args(argv)
    if args.at_once:
        with tempfile.TemporaryDirectory() as name:
            many_at_once(Path(name), args.at_once)
        return
    steps, rounds, at_once = (300, 2, 100) if args.quick else (1000, 3, 1000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EmbeddedEngine(folder / "engine.db") as engine:
            base = measured(lambda: engine.run(counting, steps), steps, rounds)
        show("the engine alone", base, base)
        with Runtime(folder / "runs.db") as runtime:
            for title, flow in (
                ("workflow, a loop", looping(steps)),
                ("workflow, a loop of async calls", looping(steps, aadd)),
                ("workflow, one step after the other", straight(min(steps, 500))),
            ):
                linked = runtime.load(flow)
                count = min(steps, 500) if "after" in title else steps
                show(title, measured(lambda linked=linked: runtime.run(linked), count, rounds), base)
        if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
            count = min(steps, 300)
            show("LangGraph, SQLite checkpoints, a loop", measured(langgraph(folder, count), count, rounds), base)
        if _temporal.is_here():
            found = _temporal.measured(folder, min(steps, 500), rounds)
            show("Temporal, local activities, a loop", found[:2], base)
            print(f"{'':<44} {'and in its server':>17} {found[2]:>8.0f} µs CPU/step")
        print()
        for count in (100, 1000, *(() if args.quick else (10_000,)), *((100_000,) if args.long else ())):
            with Runtime(folder / f"flat-{count}.db") as runtime:
                linked = runtime.load(looping(count))
                show(f"a run of {count:,} steps", measured(lambda: runtime.run(linked), count, 1), base)  # noqa: B023
        print(flush=True)
        for count in (at_once // 10, at_once):
            subprocess.run([sys.executable, "-m", "bench.runtime.workflows", "--at-once", str(count)], check=True)


if __name__ == "__main__":
    main()
