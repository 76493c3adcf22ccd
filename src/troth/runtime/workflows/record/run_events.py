"""What happens in a run, one thing after the other, as its history tells it.

The history is appended in the commits that make things happen, and is never changed: each event keeps its number, a
reader who comes late reads what others have read, and one who knows a number reads only what came after it.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from troth.runtime.agents.model import Usage
from troth.runtime.store import Happened, HistoryEntry, RunRecord, Store
from troth.runtime.store.sqlite.transaction import history_topic
from troth.runtime.workflows.execute.race import LET_GO
from troth.runtime.workflows.kinds import blocks_of, kind_of
from troth.runtime.workflows.record.report import RunWord, StepWord
from troth.runtime.workflows.render.words import MARKS, RUN_MARKS, span, used, value
from troth.runtime.workflows.spec import StepSpec, WorkflowSpec

__all__ = ["GATHER", "LOOK_AGAIN", "EventReader", "Quiet", "RunEvent", "RunEventPages"]

What = Literal[
    "run begun",
    "run resumed",
    "step begun",
    "attempt failed",
    "code changed",
    "asked",
    "step ended",
    "run ended",
    "callback failed",
]
_INDEX = re.compile(r"\[\d+\]")
_UNDO = "undo "


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run.

    `seq` is its number: counted from 1 in the run without gaps, the same for every reader, whatever becomes of the run.
    `state` is the word for the run or the step since then. `place` is the step; of a callback that failed, its name.
    `number` counts the attempts of a step. `error` is the type of the error that `detail` is about.
    """

    run_id: str
    seq: int
    what: What
    at: float
    place: str = ""
    state: str = ""
    number: int = 0
    detail: str = ""
    output: object = None
    error: str = ""

    def __str__(self) -> str:
        about = f"  {self.detail}" if self.detail else ""
        match self.what:
            case "run begun":
                return f"▶ {self.run_id} started{about}"
            case "run resumed":
                return f"▶ {self.run_id} resumed"
            case "step begun":
                return f"▶ {self.place}{about}"
            case "attempt failed":
                return f"↻ {self.place}  attempt {self.number}: {self.detail}"
            case "code changed":
                return f"! {self.place}  its code has changed: {self.detail}"
            case "asked":
                return f"{MARKS[StepWord.WAITING]} {self.place} asks: {self.detail}"
            case "step ended":
                shown = self.detail or (value(self.output, 60) if self.output is not None else "")
                return f"{MARKS[StepWord(self.state)]} {self.place}  {self.state}" + (f"  {shown}" if shown else "")
            case "run ended":
                return f"{RUN_MARKS[RunWord(self.state)]} {self.run_id} {self.state}"
            case "callback failed":
                return f"! the callback {self.place} raised {self.detail}"

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


class EventReader:
    """Makes events of the entries of one run's history.

    `usage_of` says what the agent of a step with a certain key has used, `result_of` what the run returned.
    """

    def __init__(
        self,
        run: RunRecord,
        spec: WorkflowSpec,
        usage_of: Callable[[str], Usage],
        result_of: Callable[[], object],
    ) -> None:
        self._run = run
        self._steps = dict(_places(spec.steps, ""))
        self._usage_of = usage_of
        self._result_of = result_of

    def of(self, entry: HistoryEntry) -> RunEvent:
        """What `entry` tells."""
        match entry.what:
            case Happened.RUN_BEGUN:
                origin = f"forked from {self._run.forked_from}" if self._run.forked_from else ""
                return RunEvent(entry.run_id, entry.seq, "run begun", entry.at, state=RunWord.RUNNING, detail=origin)
            case Happened.RUN_RESUMED:
                return RunEvent(entry.run_id, entry.seq, "run resumed", entry.at, state=RunWord.RUNNING)
            case Happened.RUN_ENDED:
                word = RunWord(entry.outcome or entry.kind or "")
                output = self._result_of() if word is RunWord.COMPLETED else None
                detail = _first_line(entry.value) if word is not RunWord.COMPLETED else ""
                error = "" if word is RunWord.COMPLETED else _error_type(entry.value)
                return RunEvent(
                    entry.run_id,
                    entry.seq,
                    "run ended",
                    entry.at,
                    state=word,
                    detail=detail,
                    output=output,
                    error=error,
                )
            case Happened.CALLBACK_FAILED:
                detail, error = _first_line(entry.value), _error_type(entry.value)
                place = entry.name or ""
                return RunEvent(entry.run_id, entry.seq, "callback failed", entry.at, place, detail=detail, error=error)
        return self._of_step(entry)

    def _of_step(self, entry: HistoryEntry) -> RunEvent:
        place = _place(entry)
        step = self._steps.get(_INDEX.sub("", place))
        of = _Making(entry, place)
        match entry.what:
            case Happened.WAITING if isinstance(entry.note, dict) and "question" in entry.note:
                return of("asked", StepWord.WAITING, detail=str(entry.note["question"]))
            case Happened.BEGUN | Happened.WAITING:
                kind = "undo" if place.startswith(_UNDO) else entry.kind or ""
                return of("step begun", StepWord.RUNNING, detail=kind if step is None else step.kind)
            case Happened.ATTEMPT:
                wait = (entry.wake_at or entry.at) - entry.at
                after = f", retry after {span(wait)}" if wait > 0 else ", immediate retry"
                reason = _first_line(entry.value) or str(entry.outcome)
                return of("attempt failed", StepWord.RESTING, entry.attempt, reason + after)
            case Happened.CODE_CHANGED:
                before = entry.note.get("before") if isinstance(entry.note, dict) else None
                return of("code changed", StepWord.RUNNING, detail=f"{before} before, {entry.code} now")
        return self._ended(entry, place, step, of)

    def _ended(self, entry: HistoryEntry, place: str, step: StepSpec | None, of: "_Making") -> RunEvent:
        kind = "" if step is None else step.kind
        if entry.what is Happened.CANCELLED:
            return of("step ended", StepWord.CANCELLED, entry.attempt)
        if entry.what is Happened.FAILED and entry.kind == "wait":
            return of("step ended", StepWord.DONE, detail="no answer came in time" if kind == "approval" else "")
        if entry.what is Happened.FAILED:
            return of("step ended", _failed(entry, step), entry.attempt, _first_line(entry.value))
        detail = ""
        if kind == "approval" and isinstance(entry.value, dict):
            by = f" by {entry.value['by']}" if entry.value.get("by") else ""
            detail = ("approved" if entry.value.get("approved") else "denied") + by
        elif kind == "agent" and entry.done_by is None:
            spent = self._usage_of(f"{entry.run_id}:{entry.place}:{place}")
            detail = used(spent.input_tokens + spent.output_tokens, spent.cost)
        return of("step ended", StepWord.DONE, entry.attempt, detail, entry.value)


_FAILING = frozenset({Happened.ATTEMPT, Happened.FAILED})


class _Making:
    """Makes the event of one entry of a step."""

    def __init__(self, entry: HistoryEntry, place: str) -> None:
        self._entry = entry
        self._place = place

    def __call__(
        self, kind: What, state: StepWord, number: int = 0, detail: str = "", output: object = None
    ) -> RunEvent:
        entry = self._entry
        error = _error_type(entry.value) if entry.what in _FAILING else ""
        return RunEvent(entry.run_id, entry.seq, kind, entry.at, self._place, state, number, detail, output, error)


def _failed(entry: HistoryEntry, step: StepSpec | None) -> StepWord:
    error = entry.value if isinstance(entry.value, dict) else {}
    if error.get("type") in LET_GO:
        return StepWord.LET_GO
    return StepWord.PASSED_OVER if step is not None and step.optional else StepWord.FAILED


def _place(entry: HistoryEntry) -> str:
    if isinstance(entry.note, dict) and "place" in entry.note:
        return str(entry.note["place"])
    return entry.name or ""


def _error_type(error: object) -> str:
    return str(error.get("type") or "") if isinstance(error, dict) else ""


def _first_line(error: object) -> str:
    if not isinstance(error, dict) or not error:
        return ""
    return f"{error.get('type') or ''}: {error.get('message') or ''}".splitlines()[0]


def _places(steps: Sequence[StepSpec], prefix: str) -> Iterator[tuple[str, StepSpec]]:
    """Every step by its place, without rounds and items."""
    for step in steps:
        yield f"{prefix}{step.id}", step
        inner = kind_of(step).inner(step.body)
        if inner is not None:
            yield from _places(inner.steps, f"{prefix}{step.id}.")
        below = f"{prefix}{step.id}." if step.kind in ("each", "loop") else prefix
        for block in blocks_of(step):
            yield from _places(block.steps, below)


class RunEventPages:
    """A run's events, a page at a time. It waits for nothing: `topic` says what to listen for."""

    def __init__(self, store: Store, run_id: str, reader: EventReader) -> None:
        self.topic = history_topic(run_id)
        self._store = store
        self._run_id = run_id
        self._reader = reader

    def read(self, after: int, limit: int = 500) -> tuple[Sequence[RunEvent], int, bool]:
        """The events after number `after`, the number of the last one there is, and whether the run is over."""
        run = self._store.run(self._run_id)  # before its entries: over then means that all of them are there
        entries = self._store.history(self._run_id, after=after, limit=limit)
        is_over = run is None or run.state.is_over
        return [self._reader.of(entry) for entry in entries], self._store.last_entry(self._run_id), is_over


LOOK_AGAIN = 1.0  # seconds after which a run is looked at without news
GATHER = 0.05  # seconds in which news gather before they are read: whoever follows a quick run is not to slow it down


class Quiet:
    """Knows whether nothing has happened for too long."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._since = time.monotonic()

    def is_too_long(self, is_news: bool) -> bool:  # noqa: FBT001
        """Whether the time is up; news begin it anew."""
        now = time.monotonic()
        if is_news:
            self._since = now
        return self._timeout is not None and now - self._since >= self._timeout

    def patience(self) -> float:
        """How long may be waited for news before one looks again."""
        if self._timeout is None:
            return LOOK_AGAIN
        return max(0.0, min(LOOK_AGAIN, self._timeout - (time.monotonic() - self._since)))
