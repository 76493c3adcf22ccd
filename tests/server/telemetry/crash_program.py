"""Begins a run that belongs to a trace, and is killed in its second step."""

import asyncio
import os
import signal
import sys

from troth.runtime import Runtime, Workflow, step
from troth.server.telemetry import trace_context


def first():
    return 1


def second(key):
    if os.environ.get("TROTH_TEST_DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2


FUNCTIONS = {"first": first, "second": second}
WORKFLOW = Workflow("two", step("first", function="first"), step("second", function="second", inputs={"key": "run.id"}))


async def main(path, carrier):
    async with Runtime(path, functions=FUNCTIONS) as runtime:
        await trace_context.keep(runtime.store, "r1", {"traceparent": carrier})
        await runtime.arun(WORKFLOW, run_id="r1")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
