"""The scenarios of agent-hypervisor, measured in an interpreter that has it: nothing of it is needed here."""

import json
import subprocess
from typing import NamedTuple

__all__ = ["Measured", "measure"]

_PROGRAM = """
import asyncio, gc, inspect, json, time
from importlib.metadata import version

from hypervisor import Hypervisor, SessionConfig
from hypervisor.saga.orchestrator import SagaOrchestrator


async def wait(value):
    return await value if inspect.isawaitable(value) else value


async def lifecycle(hypervisor):
    managed = await wait(hypervisor.create_session(SessionConfig(), "did:mesh:ops"))
    session = managed.sso.session_id
    await wait(hypervisor.join_session(session, "did:mesh:agent-1", sigma_raw=0.8))
    await wait(hypervisor.activate_session(session))
    await wait(hypervisor.terminate_session(session))


async def nothing():
    return None


async def saga(orchestrator):
    made = orchestrator.create_saga("session")
    for name in ("one", "two", "three"):
        step = orchestrator.add_step(made.saga_id, name, "did:mesh:agent-1", "/do", undo_api="/undo")
        await orchestrator.execute_step(made.saga_id, step.step_id, nothing)


async def best(make, work, count):
    least = float("inf")
    for _ in range(10):
        made = make()
        gc.collect()
        begun = time.process_time()
        for _ in range(count):
            await work(made)
        least = min(least, (time.process_time() - begun) / count * 1e6)
    return least


async def main():
    print(json.dumps([
        version("agent-hypervisor"),
        await best(Hypervisor, lifecycle, 100),
        await best(SagaOrchestrator, saga, 100),
    ]))


asyncio.run(main())
"""


class Measured(NamedTuple):
    """CPU microseconds of each scenario."""

    version: str
    lifecycle: float
    saga: float


def measure(python: str | None) -> Measured | str:
    """What it costs there, or why it cannot be told."""
    if python is None:
        return "not measured; `--peers PYTHON` names an interpreter that has it"
    done = subprocess.run([python, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return f"not measured: {done.stderr.strip().splitlines()[-1]}"
    return Measured(*json.loads(done.stdout.splitlines()[-1]))
