"""Make spans, in programs that use OpenTelemetry. It is noticed, never imported: a program without it has no spans."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from troth import __version__
from troth.server.telemetry.names import Attribute, SpanName
from troth.server.telemetry.trace_context import Carrier, incoming

__all__ = ["LiveSpan", "begin", "carrier", "finish", "is_used", "span"]

_PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER"
_NANOSECONDS = 1_000_000_000

Values = Mapping[Attribute, Any]


def is_used() -> bool:
    """Whether this program uses OpenTelemetry: somebody has set up what becomes of spans.

    That it is imported means nothing: FastAPI does so where it is installed.
    """
    trace = _trace()
    if trace is None or (getattr(trace, "_TRACER_PROVIDER", trace) is None and _PROVIDER not in os.environ):
        return False  # what the question below comes to, and a request asks it three times
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider)


def _trace() -> Any:
    return sys.modules.get("opentelemetry.trace")


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()


def begin(
    name: SpanName, *, at: float | None = None, parent: Carrier | Any = None, values: Values | None = None
) -> Any:
    """A span that nobody is in, begun now or at a moment; nothing in a program without OpenTelemetry.

    `parent` is a span, a carrier, or nothing for a trace of its own.
    """
    if not is_used():
        return None
    from opentelemetry.context import Context

    trace = _trace()

    if parent is None or parent == {}:
        context: Any = Context()
    elif isinstance(parent, Mapping):
        context = _propagator().extract(dict(parent), Context())
    else:
        context = trace.set_span_in_context(parent, Context())
    start = None if at is None else int(at * _NANOSECONDS)
    return trace.get_tracer("troth", __version__).start_span(
        name.value, context=context, start_time=start, attributes=_plain(values)
    )


def finish(span: Any, *, at: float | None = None, values: Values | None = None, error: str | None = None) -> None:
    """End a span that `begin` made. `error` says that what it stands for failed."""
    if span is None:
        return
    span.set_attributes(_plain(values))
    if error is not None:
        trace = _trace()
        span.set_status(trace.StatusCode.ERROR, error)
    span.end(None if at is None else int(at * _NANOSECONDS))


def _plain(values: Values | None) -> dict[str, Any]:
    return {str(name): value for name, value in (values or {}).items() if value is not None}


class LiveSpan:
    """A span that the code inside of the block belongs to; in a program without OpenTelemetry, nothing."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def set(self, values: Values) -> None:
        """Add attributes."""
        if self.inner is not None:
            self.inner.set_attributes(_plain(values))

    def fail(self, why: str) -> None:
        """Say that what it stands for failed."""
        if self.inner is not None:
            self.inner.set_status(_trace().StatusCode.ERROR, why)


@contextmanager
def span(name: SpanName, values: Values | None = None, *, parent: Carrier | None = None) -> Iterator[LiveSpan]:
    """A span around the block; what the block does belongs to it. Its parent is `parent`, else the span it is in."""
    if not is_used():
        yield LiveSpan(None)
        return
    trace = _trace()
    context = _propagator().extract(dict(parent)) if parent else None
    with trace.get_tracer("troth", __version__).start_as_current_span(
        name.value, context=context, attributes=_plain(values)
    ) as inner:
        yield LiveSpan(inner)


def carrier() -> dict[str, str]:
    """Where we are: the span we are in, else what the request brought along."""
    headers: dict[str, str] = {}
    if is_used():
        _propagator().inject(headers)
    return headers or dict(incoming.get())
