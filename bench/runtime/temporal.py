"""Runs on Temporal beside a hand-written workflow of the same activities: `python -m bench.runtime.temporal`.

Both make the same steps, one ordinary activity with a heartbeat each, on one development server. The ratio of CPU, ours
and the server's together, is what to read; then the time from the kill of a worker to the next effect of its run.
It needs `temporalio` and the command `temporal` (both in the development lock), and binaries of PostgreSQL.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from troth.runtime.engine import Step
from troth.runtime.engine.temporal.engine import TemporalEngine
from troth.testing.postgres_server import PostgresServer
from troth.testing.temporal_server import TemporalServer

_TICKS = os.sysconf("SC_CLK_TCK")


def add(x: int) -> int:
    return x + 1


def counting(steps: int):
    value = 0
    for number in range(steps):
        value = yield Step(f"add {number}", add, value)
    return value


@activity.defn(name="bare-add")
async def bare_add(x: int) -> int:
    activity.heartbeat()
    return add(x)


@workflow.defn(name="BareCounting")
class BareCounting:
    """The same loop, written by hand."""

    @workflow.run
    async def run(self, steps: int) -> int:
        """Count."""
        value = 0
        for _ in range(steps):
            value = await workflow.execute_activity(
                bare_add, value, start_to_close_timeout=timedelta(hours=1), heartbeat_timeout=timedelta(seconds=5)
            )
        return value


def _cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _cpu_below(pid: int) -> float:
    """Of a process and of all that it has started, as PostgreSQL does for each connection."""
    children = [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return _cpu_of(pid) + sum(_cpu_of(child) for child in children)


async def _bare(server: TemporalServer, steps: int) -> tuple[float, float]:
    client = await Client.connect(server.host)
    runner = UnsandboxedWorkflowRunner()
    queue = uuid.uuid4().hex
    worker = Worker(client, task_queue=queue, workflows=[BareCounting], activities=[bare_add], workflow_runner=runner)
    async with worker:
        await client.execute_workflow("BareCounting", 5, id=uuid.uuid4().hex, task_queue=queue)
        here, there = time.process_time(), _cpu_of(server.pid)
        assert await client.execute_workflow("BareCounting", steps, id=uuid.uuid4().hex, task_queue=queue) == steps
        return time.process_time() - here, _cpu_of(server.pid) - there


def _ours(server: TemporalServer, database: PostgresServer, steps: int) -> tuple[float, float, float]:
    with TemporalEngine(server.address(heartbeat=5), database.address(), decisions=[counting]) as engine:
        engine.run(counting, 5)
        here, there, kept = time.process_time(), _cpu_of(server.pid), _cpu_below(database.pid)
        assert engine.run(counting, steps) == steps
        return time.process_time() - here, _cpu_of(server.pid) - there, _cpu_below(database.pid) - kept


_WORKER = """
import sys, time
from bench.runtime.temporal import slowly
from troth.runtime.engine.temporal.engine import TemporalEngine
with TemporalEngine(sys.argv[1], sys.argv[2], decisions=[slowly]) as engine:
    print("open", flush=True)
    time.sleep(600)
"""


def effect(path: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\n")
    time.sleep(1)


def slowly(path: str, steps: int):
    for number in range(steps):
        yield Step(f"effect {number}", effect, path)


def _worker(address: str, store: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", _WORKER, address, store], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def _effects(path: Path) -> list[tuple[int, float]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(int(pid), float(at)) for pid, at in (line.split() for line in lines)]


def _takeover(server: TemporalServer, database: PostgresServer) -> float:
    """Seconds from the SIGKILL of the worker that is at a step to the next effect, which another one has."""
    address, store = server.address(), database.address()
    with tempfile.TemporaryDirectory() as folder, TemporalEngine(address, store, serves=False) as client:
        path = Path(folder) / "effects"
        workers = [_worker(address, store) for _ in range(2)]
        try:
            client._decisions.register(slowly)
            client.start(slowly, str(path), 8)
            while len(_effects(path)) < 3:
                time.sleep(0.02)
            time.sleep(0.3)
            victim = _effects(path)[-1][0]
            next(worker for worker in workers if worker.pid == victim).kill()
            killed, before = time.monotonic(), len(_effects(path))
            while len(_effects(path)) == before:
                time.sleep(0.02)
            return _effects(path)[before][1] - killed
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    args = parser.parse_args()
    with TemporalServer() as server, PostgresServer() as database:
        best_bare, best_ours = (9e9, 0.0), (9e9, 0.0, 0.0)
        for _ in range(args.rounds):
            best_bare = min(best_bare, asyncio.run(_bare(server, args.steps)), key=sum)
            best_ours = min(best_ours, _ours(server, database, args.steps), key=sum)
        each = 1000 / args.steps
        print("| CPU ms a step | worker | Temporal | PostgreSQL | all | ratio |")
        print("|---|---|---|---|---|---|")
        for name, (worker, temporal, kept) in (("by hand", (*best_bare, 0.0)), ("Troth", best_ours)):
            whole = worker + temporal + kept
            cells = " | ".join(f"{seconds * each:.1f}" for seconds in (worker, temporal, kept, whole))
            print(f"| {name} | {cells} | {whole / sum(best_bare):.2f} |")
        if args.kills:
            spans = sorted(_takeover(server, database) for _ in range(args.kills))
            print(f"\nFrom a kill to the next effect, s: {', '.join(f'{span:.1f}' for span in spans)}; ", end="")
            print(f"median {statistics.median(spans):.1f}")
        print(f"\nLoad average: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
