"""What a runtime does becomes spans, in the trace of the request that began it, also after a crash."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import ToolCallingAgent
from troth.runtime.conversations import Conversations
from troth.server.telemetry import Attribute, SpanName, Telemetry, trace_context, tracing
from troth.server.telemetry.turn_spans import TurnSpans
from troth.testing.scripted import ScriptedModel, call

from . import crash_program

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.01)
    return answer


def named(spans, name):
    return [span for span in spans() if span.name == name]


def double(number):
    return number * 2


def explode():
    raise ValueError("a secret")


@pytest.mark.parametrize(
    ("headers", "is_believed"),
    [
        pytest.param({"traceparent": PARENT}, True, id="sound"),
        pytest.param({"traceparent": PARENT.upper()}, True, id="upper case"),
        pytest.param({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, False, id="no trace"),
        pytest.param({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, False, id="no parent"),
        pytest.param({"traceparent": "ff" + PARENT[2:]}, False, id="forbidden version"),
        pytest.param({"traceparent": PARENT + "\r\nX: 1"}, False, id="more than a header"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_what_a_request_says_of_its_trace(headers, is_believed):
    """Only what the W3C's format allows is kept."""
    assert bool(trace_context.read_headers(headers)) is is_believed


def test_a_state_that_cannot_be_believed_is_left_out():
    """The trace itself is kept."""
    assert trace_context.read_headers({"traceparent": PARENT, "tracestate": "a=1"})["tracestate"] == "a=1"
    assert "tracestate" not in trace_context.read_headers({"traceparent": PARENT, "tracestate": "x" * 600})


def test_a_run_and_its_steps_are_spans_of_the_requests_trace(tmp_path, spans):
    """With the times that the history has, the step below the run, the run below the request."""
    workflow = Workflow(
        "numbers", step("double", function=double, inputs={"number": "inputs.n"}), inputs={"n": "integer"}
    )

    async def main():
        async with Runtime(tmp_path / "troth.db") as runtime:
            telemetry = Telemetry(runtime)
            telemetry.open()
            with tracing.span(SpanName.REQUEST, parent={"traceparent": PARENT}):
                await trace_context.keep(runtime.store, "r1", tracing.carrier())
                await runtime.arun(workflow, {"n": 21}, run_id="r1")
            report = await runtime.ashow("r1")
            telemetry.close()
        return report

    report = asyncio.run(main())
    (request,) = named(spans, SpanName.REQUEST)
    (run,) = named(spans, SpanName.RUN)
    (doubled,) = named(spans, SpanName.STEP)
    assert {format(span.context.trace_id, "032x") for span in (request, run, doubled)} == {TRACE}
    assert run.parent.span_id == request.context.span_id
    assert doubled.parent.span_id == run.context.span_id
    assert run.attributes[Attribute.RUN] == "r1"
    assert run.attributes[Attribute.RUN_STATE] == report.state
    assert not run.attributes[Attribute.IS_JOINED]
    assert doubled.attributes[Attribute.STEP] == "double"
    assert request.start_time <= run.start_time <= doubled.start_time <= doubled.end_time <= run.end_time
    assert not any("42" in str(value) for span in spans() for value in span.attributes.values()), "content was told"


@pytest.mark.parametrize("has_content", [False, True])
def test_content_is_told_only_if_asked_for(tmp_path, spans, has_content):
    """Without leave, a failure is told by its kind alone."""
    workflow = Workflow("bad", step("explode", function=explode))
    with Runtime(tmp_path / "troth.db") as runtime:
        telemetry = Telemetry(runtime, content=has_content)
        telemetry.open()
        runtime.run(workflow, check=False)
        telemetry.close()
    (failed,) = named(spans, SpanName.STEP)
    assert failed.status.status_code.name == "ERROR"
    assert failed.status.description.startswith("ValueError")
    assert ("a secret" in failed.status.description) is has_content


@pytest.mark.parametrize("is_worker", [False, True], ids=["at the start", "by a worker"])
def test_whoever_goes_on_after_a_crash_joins_the_trace(tmp_path, spans, is_worker):
    """The process that began the run is killed. Another one takes it up, knowing nothing but the store."""
    path = tmp_path / "troth.db"
    dead = subprocess.run(
        [sys.executable, Path(__file__).with_name("crash_program.py"), str(path), PARENT],
        env={**os.environ, "TROTH_TEST_DIES": "1"},
        timeout=100,
        check=False,
    )
    assert dead.returncode == -signal.SIGKILL
    with Runtime(path, functions=crash_program.FUNCTIONS, recover=not is_worker) as runtime:
        telemetry = Telemetry(runtime)
        telemetry.open()
        runtime.load(crash_program.WORKFLOW)
        if is_worker:
            worker = runtime.worker()
            until(lambda: worker.look() and runtime.show("r1").is_over)
        until(lambda: runtime.show("r1").is_over)
        until(lambda: named(spans, SpanName.RUN))
        telemetry.close()
    (run,) = named(spans, SpanName.RUN)
    assert format(run.context.trace_id, "032x") == TRACE
    assert format(run.parent.span_id, "016x") == "00f067aa0ba902b7"
    assert run.attributes[Attribute.IS_JOINED]
    assert [span.attributes[Attribute.STEP] for span in named(spans, SpanName.STEP)] == ["second"]


def test_a_turn_and_its_tools_are_spans(tmp_path, spans):
    """The turn belongs to the trace that the message brought along; a tool's span lies within it."""

    def weather(town: str) -> str:
        """The weather.

        Args:
            town: where
        """
        return f"sun in {town}"

    model = ScriptedModel(call("weather", '{"town": "Ulm"}'), "It is sunny.")
    with Conversations(tmp_path / "talks.db") as home:
        spying = TurnSpans("c1", "meteorologist")
        talk = home.open(ToolCallingAgent(model, [weather]), "c1", on_event=[spying])
        talk.send("How is it in Ulm?", with_events=[(trace_context.KIND, {"traceparent": PARENT})])
        talk.run()
    (turn,) = named(spans, SpanName.TURN)
    (tool,) = named(spans, SpanName.TOOL)
    assert format(turn.context.trace_id, "032x") == TRACE
    assert turn.attributes[Attribute.OUTCOME] == "finished"
    assert turn.attributes[Attribute.INPUT_TOKENS] == 20
    assert tool.parent.span_id == turn.context.span_id
    assert tool.attributes[Attribute.TOOL] == "weather"
    told = [str(value) for span in (turn, tool) for value in span.attributes.values()]
    assert not any("Ulm" in value or "sunny" in value for value in told)


def test_a_program_without_opentelemetry_pays_nothing(tmp_path):
    """Neither is it imported, nor needed; the trace of a request is kept for somebody who has it."""
    program = f"""
import asyncio, sys
from troth.runtime import Runtime, Workflow, step
from troth.server.telemetry import Telemetry, tracing, trace_context, SpanName
def nothing(): return None
async def main():
    async with Runtime({str(tmp_path / "troth.db")!r}) as runtime:
        telemetry = Telemetry(runtime)
        telemetry.open()
        trace_context.incoming.set(trace_context.read_headers({{"traceparent": {PARENT!r}}}))
        with tracing.span(SpanName.REQUEST) as span:
            span.set({{}})
            await trace_context.keep(runtime.store, "r1", tracing.carrier())
            await runtime.arun(Workflow("w", step("s", function=nothing)), run_id="r1")
        print(trace_context.recall(runtime.store, "r1")["traceparent"], telemetry.prometheus().count("troth_runs"))
        telemetry.close()
    assert not any(name.startswith("opentelemetry") for name in sys.modules)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == PARENT
