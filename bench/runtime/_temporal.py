"""Temporal beside Troth: the same loop of steps as local activities, on a development server of its own.

It needs the dependency group `bench-temporal` (`uv pip install --group bench-temporal`): the SDK and the server. A
local activity is Temporal's cheapest step: it runs in the worker, and many are recorded in one exchange.
"""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

__all__ = ["is_here", "measured"]

_QUEUE = "bench"


def _program() -> str | None:
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal")


def is_here() -> bool:
    """Whether SDK and server are installed."""
    return importlib.util.find_spec("temporalio") is not None and _program() is not None


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[tuple[str, int]]:
    """A server that keeps its histories in a file; its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(_program()), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    command += ["--db-filename", str(folder / "temporal.db"), "--log-level", "never"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(20)


def _cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(folder: Path, steps: int, rounds: int) -> tuple[float, float, float]:
    """The best round's steps per second, CPU microseconds per step in this process, and in the server's."""
    with _server(folder) as (address, pid):
        return asyncio.run(_measure(address, pid, steps, rounds))


async def _measure(address: str, pid: int, steps: int, rounds: int) -> tuple[float, float, float]:
    from temporalio.client import Client
    from temporalio.worker import UnsandboxedWorkflowRunner, Worker

    for attempt in range(100):
        try:
            client = await Client.connect(address)
            break
        except RuntimeError:
            if attempt == 99:
                raise
            await asyncio.sleep(0.2)
    runner = UnsandboxedWorkflowRunner()  # the sandbox is left out: it costs more than the steps
    async with Worker(client, task_queue=_QUEUE, workflows=[Counting], activities=[add], workflow_runner=runner):
        best = (0.0, float("inf"), float("inf"))
        for number in range(rounds + 1):
            here, there, wall = time.process_time(), _cpu_of(pid), time.perf_counter()
            value = await client.execute_workflow("Counting", steps, id=f"bench-{number}", task_queue=_QUEUE)
            wall = time.perf_counter() - wall
            here, there = time.process_time() - here, _cpu_of(pid) - there
            assert value == steps
            if number:  # the first warms up
                best = max(best[0], steps / wall), min(best[1], here / steps * 1e6), min(best[2], there / steps * 1e6)
        return best


if importlib.util.find_spec("temporalio") is not None:
    from temporalio import activity, workflow

    @activity.defn
    async def add(x: int) -> int:
        return x + 1

    @workflow.defn(name="Counting")
    class Counting:
        """One loop of so many local activities."""

        @workflow.run
        async def run(self, steps: int) -> int:
            value = 0
            for _ in range(steps):
                value = await workflow.execute_local_activity(add, value, start_to_close_timeout=timedelta(seconds=60))
            return value
