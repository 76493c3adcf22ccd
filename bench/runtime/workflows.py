"""Steps per second and CPU per step of workflows, beside the bare engine and LangGraph with its SQLite checkpoints.

    python -m bench.runtime.workflows            about two minutes
    python -m bench.runtime.workflows --quick    fewer steps
    python -m bench.runtime.workflows --long     also a run of 100,000 steps

One step is one call of a function that adds one, recorded. A run's own beginning, its end and the report that it
returns are counted in. Peers that are not installed are left out. Compare the CPU: the wall belongs to
the whole machine.
"""

import argparse
import asyncio
import gc
import importlib.util
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

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


def many_at_once(folder: Path, runs: int) -> None:
    """Threads and memory of many runs at once, each of five steps, sync and async in turn."""
    steps = [step(f"s{n}", function=add if n % 2 else aadd, inputs={"x": n}) for n in range(5)]
    flow = Workflow("many", *steps)
    most = threading.active_count()

    async def main(runtime: Runtime) -> None:
        nonlocal most
        linked = runtime.load(flow)
        tasks = [asyncio.create_task(runtime.arun(linked)) for _ in range(runs)]
        while not all(task.done() for task in tasks):
            most = max(most, threading.active_count())
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Runtime(folder / "many.db") as runtime:
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(main(runtime))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{runs:,} runs at once, 5 steps each: {wall:.1f} s, {cpu / runs / 5 * 1e6:.0f} µs CPU/step, "
        f"at most {most} threads, {grown:.0f} MB more at the peak"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args(argv)
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
        print()
        for count in (100, 1000, *(() if args.quick else (10_000,)), *((100_000,) if args.long else ())):
            with Runtime(folder / f"flat-{count}.db") as runtime:
                linked = runtime.load(looping(count))
                show(f"a run of {count:,} steps", measured(lambda: runtime.run(linked), count, 1), base)  # noqa: B023
        print()
        many_at_once(folder, at_once)


if __name__ == "__main__":
    main()
