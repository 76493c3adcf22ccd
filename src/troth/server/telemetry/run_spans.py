"""Make spans of what happens in runs, from the events that their history tells.

A span has the times that the history has, so it is right however late it is made. Where a process goes on with a run
that another one began, its spans belong to the same trace: the one that was kept with the run.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from troth.runtime.workflows.record.run_events import RunEvent
from troth.server.telemetry import tracing
from troth.server.telemetry.names import Attribute, SpanName
from troth.server.telemetry.trace_context import Carrier

__all__ = ["RunSpans"]

_BAD = frozenset({"failed", "rollback incomplete", "damaged"})


@dataclass
class _Open:
    """What is under way in one run."""

    span: Any = None
    steps: dict[str, Any] = field(default_factory=dict)
    seq: int = 0


class RunSpans:
    """Takes the events of any number of runs, each run's in order.

    `trace_of` says to which trace a run belongs, `before` tells the events of a run up to a number: for a run that this
    process did not see begin. With `has_content`, results and reasons are told too.
    """

    def __init__(
        self,
        trace_of: Callable[[str], Carrier],
        before: Callable[[str, int], Iterable[RunEvent]],
        *,
        has_content: bool = False,
    ) -> None:
        self._trace_of = trace_of
        self._before = before
        self._has_content = has_content
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def __call__(self, event: RunEvent) -> None:
        """Take one event. It is what `on_event` of a runtime calls."""
        if not tracing.is_used():
            return
        with self._lock:
            state = self._open.get(event.run_id)
            if state is None:
                state = self._open[event.run_id] = self._join(event)
            if event.seq > state.seq:
                state.seq = event.seq
                self._take(state, event)

    def _join(self, event: RunEvent) -> _Open:
        """Begin with a run: anew, or where another process left it. Steps that were over then are not told again."""
        state = _Open()
        if event.what in ("run begun", "run resumed"):
            return state
        begun_at = event.at
        steps: dict[str, RunEvent] = {}
        for earlier in self._before(event.run_id, event.seq):
            if earlier.what in ("run begun", "run resumed"):
                begun_at, steps = earlier.at, {}
            elif earlier.what in ("step begun", "asked"):
                steps.setdefault(earlier.place, earlier)
            elif earlier.what == "step ended":
                steps.pop(earlier.place, None)
        self._begin_run(state, event.run_id, begun_at, is_joined=True)
        for step in steps.values():
            self._begin_step(state, step)
        return state

    def _take(self, state: _Open, event: RunEvent) -> None:
        match event.what:
            case "run begun" | "run resumed":
                if state.span is None:
                    self._begin_run(state, event.run_id, event.at, is_joined=False)
            case "step begun" | "asked":
                self._begin_step(state, event)
            case "step ended":
                self._end_step(state, event)
            case "run ended":
                self._end_run(state, event)

    def _begin_run(self, state: _Open, run_id: str, at: float, *, is_joined: bool) -> None:
        values = {Attribute.RUN: run_id, Attribute.IS_JOINED: is_joined}
        state.span = tracing.begin(SpanName.RUN, at=at, parent=self._trace_of(run_id), values=values)

    def _begin_step(self, state: _Open, event: RunEvent) -> None:
        if event.place not in state.steps:
            values = {Attribute.RUN: event.run_id, Attribute.STEP: event.place}
            state.steps[event.place] = tracing.begin(SpanName.STEP, at=event.at, parent=state.span, values=values)

    def _end_step(self, state: _Open, event: RunEvent) -> None:
        values = {Attribute.STEP_STATE: event.state, Attribute.ATTEMPTS: event.number or None}
        if self._has_content and event.output is not None:
            values[Attribute.CONTENT_OUT] = repr(event.output)
        error = self._reason(event) if event.state in _BAD else None
        tracing.finish(state.steps.pop(event.place, None), at=event.at, values=values, error=error)

    def _end_run(self, state: _Open, event: RunEvent) -> None:
        for step in state.steps.values():  # cut off by the run's end
            tracing.finish(step, at=event.at)
        error = self._reason(event) if event.state in _BAD else None
        tracing.finish(state.span, at=event.at, values={Attribute.RUN_STATE: event.state}, error=error)
        del self._open[event.run_id]

    def _reason(self, event: RunEvent) -> str:
        """Why it failed. A message can quote what people said, so without leave only its kind is told."""
        return event.detail if self._has_content else event.error
