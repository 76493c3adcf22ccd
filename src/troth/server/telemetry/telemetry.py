"""Let OpenTelemetry and Prometheus see what a runtime does."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from troth import __version__
from troth.runtime import Runtime
from troth.runtime.workflows.record.run_events import RunEvent
from troth.server.telemetry import prometheus, trace_context, tracing
from troth.server.telemetry.metrics import Metrics, Sample
from troth.server.telemetry.names import METRICS
from troth.server.telemetry.run_spans import RunSpans
from troth.server.telemetry.turn_spans import TurnSpans

__all__ = ["Telemetry"]

_ONE_LOOK = 0.2  # seconds for which what was read is told to all instruments


class Telemetry:
    """Spans and numbers of one runtime. `content=True` lets spans tell what people and agents say.

    Nothing of OpenTelemetry is imported unless the program did: then the runs of this runtime become spans, and the
    numbers become metrics of its meter. What Prometheus is told does not depend on it.
    """

    def __init__(self, runtime: Runtime, *, content: bool = False) -> None:
        self._runtime = runtime
        self._has_content = content
        self._metrics: Metrics | None = None
        self._open = ExitStack()

    def open(self) -> None:
        """Begin to listen."""
        if tracing.is_used():  # otherwise nobody would see them, and following each run costs
            spans = RunSpans(self._trace_of, self._before, has_content=self._has_content)
            self._open.callback(self._runtime.listen(spans))
        api: Any = sys.modules.get("opentelemetry.metrics")
        if api is not None and not _is_stand_in(api.get_meter_provider()):
            _observe(self._numbers, api.get_meter("troth", __version__))

    def close(self) -> None:
        """Listen no more."""
        self._open.close()

    def of_conversation(self, conversation_id: str, agent: str) -> TurnSpans:
        """What the `on_event` of a conversation is given, so that its turns and tools become spans."""
        return TurnSpans(conversation_id, agent, has_content=self._has_content)

    def prometheus(self, more: Sequence[Sample] = ()) -> str:
        """All numbers, as Prometheus reads them, with `more` that the caller has counted."""
        return prometheus.render([*self._numbers().look(), *more])

    def _numbers(self) -> Metrics:
        if self._metrics is None:
            self._metrics = Metrics(self._runtime.store, self._runtime.outbox)
        return self._metrics

    def _trace_of(self, run_id: str) -> dict[str, str]:
        return trace_context.recall(self._runtime.store, run_id)

    def _before(self, run_id: str, seq: int) -> Iterable[RunEvent]:
        for event in self._runtime.events(run_id, timeout=0):
            if event.seq >= seq:
                return
            yield event


def _is_stand_in(provider: object) -> bool:
    """Whether nobody has set up what becomes of metrics. The API has its stand-ins under private names."""
    return type(provider).__name__.lstrip("_") in ("ProxyMeterProvider", "NoOpMeterProvider")


def _observe(numbers: Callable[[], Metrics], meter: Any) -> None:
    """Make observable instruments of the table's metrics: they look when somebody collects."""
    api: Any = sys.modules["opentelemetry.metrics"]
    looked: list[tuple[float, list[Sample]]] = []

    def samples() -> list[Sample]:
        """One look serves all instruments of a collection."""
        if not looked or time.monotonic() - looked[-1][0] > _ONE_LOOK:
            looked[:] = [(time.monotonic(), numbers().look())]
        return looked[-1][1]

    def looking(name: str) -> Callable[[Any], Iterable[Any]]:
        def look(_: Any) -> Iterable[Any]:
            for sample in samples():
                if sample.metric == name:
                    label = METRICS[name].label
                    yield api.Observation(sample.value, {} if label is None else {label: sample.label or ""})

        return look

    for name, metric in METRICS.items():
        make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        make(metric.otel, callbacks=[looking(name)], description=metric.help)
