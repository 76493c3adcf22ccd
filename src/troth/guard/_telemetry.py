"""Leave an incident on the active OpenTelemetry span, in programs that already use OpenTelemetry."""

import contextvars
import sys
from typing import Any

from troth.guard.incident import Incident

__all__ = ["add_event"]


def add_event(incident: Incident, context: object = None) -> None:
    """Add `troth.guard.<kind>` to the span that is active here, or in `context` where another thread's is meant.

    Nothing is imported for it: a program without OpenTelemetry has no spans. Another thread's context cannot be
    entered while that thread is in it, but it can be read.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    span: Any = trace.get_current_span() if incident.is_loss else _span_in(trace, context)
    if span is None or not span.is_recording():
        return
    attributes = {
        "troth.kind": incident.kind,
        "troth.name": incident.name,
        "code.file.path": incident.file or incident.defined_file,
        "code.line.number": incident.line or incident.defined_line,
        "thread.name": incident.thread,
    }
    if incident.seconds is not None:
        attributes["troth.blocked.seconds"] = incident.seconds
    if incident.task is not None:
        attributes["troth.task"] = incident.task
    span.add_event(f"troth.guard.{incident.kind}", attributes)


def _span_in(trace: Any, context: object) -> Any:
    otel = sys.modules.get("opentelemetry.context.context")
    if otel is None or not isinstance(context, contextvars.Context):
        return None
    current = next((value for value in context.values() if isinstance(value, otel.Context)), None)
    return None if current is None else trace.get_current_span(current)
