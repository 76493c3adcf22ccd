"""What a step costs where several machines share a store, beside the least that it can cost.

    python bench/runtime/machines.py [--steps 2000] [--fsync]

The floor is one fenced statement for each step: an INSERT that proves a lease, committed by itself over one connection.
Beside it stand the engine on a file and the engine on PostgreSQL, one run after the other and fifty at once. CPU is
that of this process alone. Ratios hold on a busy machine, seconds do not. Takeover is the time from the death of a
worker on another machine to the next effect, with a heartbeat of 1 s and a lifetime of 5 s.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store.postgres.address import parse
from troth.testing.postgres_server import PostgresServer

FENCED = (
    "INSERT INTO bare (run, seq, name, data) SELECT %s, %s, %s, %s FROM bare_leases WHERE run = %s AND token = %s "
    "RETURNING seq"
)
WORKER = """
import sys, time
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import identity
identity._machine = lambda: "another machine"
def wait():
    print("in the step", flush=True)
    time.sleep(600)
def stuck():
    yield Step("wait", wait)
EmbeddedEngine(sys.argv[1]).run(stuck, run_id="r")
"""


def add(number: int) -> int:
    return number + 1


def count(steps: int):
    number = 0
    for _ in range(steps):
        number = yield Step("add", add, number)
    return number


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of CPU and by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def bare(address: str, steps: int) -> tuple[float, float]:
    """One fenced statement for each step."""
    with psycopg.connect(parse(address).conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (run text, seq bigint, name text, data text, PRIMARY KEY (run, seq))")
        connection.execute("CREATE TABLE bare_leases (run text PRIMARY KEY, token text)")
        connection.execute("INSERT INTO bare_leases VALUES ('r', 't')")

        def work() -> None:
            for number in range(steps):
                connection.execute(FENCED, ("r", number, "add", str(number), "r", "t")).fetchone()

        return measured(work)


def one_by_one(store: str, steps: int) -> tuple[float, float]:
    with EmbeddedEngine(store) as engine:
        engine.run(count, 10)
        return measured(lambda: engine.run(count, steps))


def at_once(store: str, steps: int, runs: int = 50) -> tuple[float, float]:
    async def main() -> None:
        async with EmbeddedEngine(store) as engine:
            await asyncio.gather(*(engine.arun(count, steps // runs) for _ in range(runs)))

    return measured(lambda: asyncio.run(main()))


def takeover(address: str) -> float:
    """Seconds from the death of a worker to the next effect."""
    done: list[float] = []

    def wait() -> None:
        done.append(time.monotonic())

    def stuck():
        yield Step("wait", wait)

    with subprocess.Popen([sys.executable, "-c", WORKER, address], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with EmbeddedEngine(address) as engine:
            engine.register(stuck, "stuck")
            died = time.monotonic()
            os.kill(process.pid, signal.SIGKILL)
            engine.result("r", 60)
    return done[0] - died


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--takeovers", type=int, default=3)
    parser.add_argument("--fsync", action="store_true", help="as a real server: each commit reaches the disk")
    options = parser.parse_args()
    steps = options.steps
    with PostgresServer(fsync="on" if options.fsync else "off") as server, tempfile.TemporaryDirectory() as folder:
        floor = bare(server.address(), steps)
        rows = {
            "bare fenced statement": floor,
            "file, one run": one_by_one(str(Path(folder) / "a.db"), steps),
            "file, 50 at once": at_once(str(Path(folder) / "b.db"), steps),
            "PostgreSQL, one run": one_by_one(server.address(), steps),
            "PostgreSQL, 50 at once": at_once(server.address(), steps),
        }
        print(f"{'':<24} {'µs CPU a step':>14} {'× bare':>7} {'steps/s':>9}")
        for name, (cpu, wall) in rows.items():
            print(f"{name:<24} {cpu / steps * 1e6:>14.0f} {cpu / floor[0]:>7.2f} {steps / wall:>9.0f}")
        if not options.takeovers:
            return
        taken = sorted(takeover(server.address()) for _ in range(options.takeovers))
        print(f"takeover: median {taken[len(taken) // 2]:.1f} s, longest {taken[-1]:.1f} s of {len(taken)}")


if __name__ == "__main__":
    main()
