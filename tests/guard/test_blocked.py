"""What is told of a blocked loop, and of one that is not."""

import asyncio
import contextlib
import contextvars
import gc
import sys
import threading
import time

import pytest

from troth import guard

THRESHOLD = 0.25  # longer than a busy machine keeps a thread from its next line
BLOCK = 1.0


@pytest.fixture(autouse=True)
def no_collection():
    """The suite's own garbage, collected in the middle of a step, would be a block as true as the one under test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def here() -> int:
    return sys._getframe(1).f_lineno


def loops():
    yield pytest.param(asyncio.new_event_loop, id="asyncio")
    with contextlib.suppress(ImportError):
        import uvloop

        yield pytest.param(uvloop.new_event_loop, id="uvloop")


def sleeping() -> int:
    time.sleep(BLOCK), (line := here())
    return line


def computing() -> int:
    end = time.monotonic() + BLOCK
    all(sum(range(50)) for _ in iter(lambda: time.monotonic() < end, False)), (line := here())
    return line


def in_the_library() -> int:
    threading.Event().wait(BLOCK), (line := here())
    return line


@pytest.mark.parametrize("factory", list(loops()))
@pytest.mark.parametrize("block", [sleeping, computing, in_the_library])
def test_a_blocked_loop_is_told_while_it_is_blocked(factory, block):
    """The report names the user's line, the task and the thread, and comes before the block is over."""
    told_at = []

    async def culprit():
        line = block()
        return line, time.monotonic()

    async def main():
        await asyncio.sleep(0.05)
        return await asyncio.create_task(culprit(), name="the culprit")

    with (
        guard.watch(blocked=THRESHOLD, sink=lambda incident: told_at.append(time.monotonic())) as report,
        asyncio.Runner(loop_factory=factory) as runner,
    ):
        line, ended = runner.run(main())
    [incident] = report.blocks
    assert (incident.file, incident.line) == (__file__, line)
    assert incident.task == "the culprit"
    assert incident.name.endswith("culprit")
    assert incident.thread == threading.current_thread().name
    assert incident.seconds >= THRESHOLD
    assert told_at[0] < ended
    assert [frame[2].rpartition(".")[2] for frame in incident.stack][-2:] == [block.__name__, "culprit"]
    assert report.losses == ()


@pytest.mark.parametrize("factory", list(loops()))
def test_idle_and_busy_loops_are_left_alone(factory):
    """Waiting is not blocking, and neither is working in small steps."""

    async def busy():
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            await asyncio.sleep(0)

    async def main():
        await asyncio.sleep(0.4)
        await busy()
        await asyncio.to_thread(time.sleep, 0.3)

    with guard.watch(blocked=0.25) as report, asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    assert report.incidents == ()


def test_a_plain_callback_that_blocks():
    """On asyncio's own loop no task is needed to be seen."""

    async def main():
        asyncio.get_running_loop().call_later(0.05, sleeping)
        await asyncio.sleep(0.1)

    with guard.watch(blocked=THRESHOLD, sink=lambda incident: None) as report:
        asyncio.run(main())
    [incident] = report.blocks
    assert incident.task is None
    assert incident.stack[0][2] == "sleeping"


def test_each_block_is_told_once_and_each_loop_by_itself():
    """Two blocks are two reports; a loop in another thread that is fine is not named."""

    async def blocks_twice():
        for _ in range(2):
            sleeping()
            await asyncio.sleep(0.1)

    async def fine():
        for _ in range(100):
            await asyncio.sleep(0.02)

    def other():
        asyncio.run(blocks_twice())

    with guard.watch(blocked=THRESHOLD, sink=lambda incident: None) as report:
        thread = threading.Thread(target=other, name="the other")
        thread.start()
        asyncio.run(fine())
        thread.join()
    assert [incident.thread for incident in report.blocks] == ["the other", "the other"]


def test_only_those_who_ask_hear_of_it():
    """A watch without a threshold has no thread and no reports; each gets what passes its own threshold."""
    with guard.watch() as none:
        assert not any("watchdog" in thread.name for thread in threading.enumerate())
        with guard.watch(blocked=5) as patient, guard.watch(blocked=THRESHOLD, sink=lambda incident: None) as strict:

            async def main():
                sleeping()

            asyncio.run(main())
    assert not any("watchdog" in thread.name for thread in threading.enumerate())
    assert (len(none.blocks), len(patient.blocks), len(strict.blocks)) == (0, 0, 1)


def test_the_span_of_the_blocked_task_gets_an_event():
    """The event goes to the span of the task that blocks, read from another thread."""
    trace = pytest.importorskip("opentelemetry.trace")

    class Span(trace.NonRecordingSpan):
        def __init__(self):
            super().__init__(trace.INVALID_SPAN_CONTEXT)
            self.events = []

        def is_recording(self):
            return True

        def add_event(self, name, attributes=None, timestamp=None):
            self.events.append((name, attributes))

    span, innocent = Span(), Span()

    async def culprit():
        with trace.use_span(span):
            return sleeping()

    async def main():
        with trace.use_span(innocent):
            return await asyncio.get_running_loop().create_task(culprit(), context=contextvars.Context())

    with guard.watch(blocked=THRESHOLD, sink=lambda incident: None):
        line = asyncio.run(main())
    [(name, attributes)] = span.events
    assert name == "troth.guard.blocked"
    assert attributes["code.line.number"] == line
    assert attributes["troth.blocked.seconds"] >= THRESHOLD
    assert innocent.events == []
