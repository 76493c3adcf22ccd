"""Knows what has happened in a run, one thing after the other, from its record; and what is new since one looked.

Everything is in the record, with its time. So nothing is lost on a reader who comes late or is slow, and whoever reads
twice reads the same.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from troth.runtime.workflows.picture.words import MARKS, RUN_MARKS, span, used, value
from troth.runtime.workflows.report import RunReport, RunWord, StepReport, StepWord

__all__ = ["GATHER", "LOOK_AGAIN", "News", "Quiet", "RunEvent", "events_of"]

What = Literal["run begun", "step begun", "attempt failed", "asked", "step ended", "run ended"]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run. `state` is the word for the run or the step since then."""

    run_id: str
    what: What
    at: float
    place: str = ""
    state: str = ""
    number: int = 0
    detail: str = ""
    output: object = None

    def __str__(self) -> str:
        match self.what:
            case "run begun":
                return f"▶ {self.run_id} begun"
            case "step begun":
                return f"▶ {self.place}" + (f"  {self.detail}" if self.detail else "")
            case "attempt failed":
                return f"↻ {self.place}  attempt {self.number}: {self.detail}"
            case "asked":
                return f"{MARKS[StepWord.WAITING]} {self.place} asks: {self.detail}"
            case "step ended":
                shown = self.detail or (value(self.output, 60) if self.output is not None else "")
                return f"{MARKS[StepWord(self.state)]} {self.place}  {self.state}" + (f"  {shown}" if shown else "")
            case "run ended":
                return f"{RUN_MARKS[RunWord(self.state)]} {self.run_id} {self.state}"

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def events_of(run: RunReport) -> list[RunEvent]:
    """Everything that has happened in `run` so far, in its order."""
    found = [RunEvent(run.id, "run begun", run.created_at, state=RunWord.RUNNING)]
    for step in run.steps:
        if not step.is_block:
            found += _of_step(run.id, step)
    found.sort(key=lambda one: one.at)  # stable: what has the same time stays as it is
    if run.is_over and run.ended_at is not None:
        found.append(RunEvent(run.id, "run ended", run.ended_at, state=run.state, output=run.output))
    return found


def _of_step(run_id: str, step: StepReport) -> Iterator[RunEvent]:
    if step.started_at is None or step.state in (StepWord.NOT_REACHED, StepWord.NOT_TAKEN):
        return
    yield RunEvent(run_id, "step begun", step.started_at, step.place, StepWord.RUNNING, detail=step.kind)
    if step.question:
        yield RunEvent(run_id, "asked", step.started_at, step.place, StepWord.WAITING, detail=step.question)
    for one in step.attempts:
        if one.next_at is not None:
            wait = one.next_at - one.ended_at
            after = f", again after {span(wait)}" if wait > 0 else ", again at once"
            said = str(one.error).splitlines()[0] if one.error is not None else one.outcome
            yield RunEvent(
                run_id, "attempt failed", one.ended_at, step.place, StepWord.RESTING, one.number, said + after
            )
    if step.ended_at is not None:
        state = StepWord.DONE if step.state is StepWord.UNDONE else step.state  # its undoing is a step of its own
        detail = used(step.tokens, step.cost)
        if step.error is not None:
            detail = str(step.error).splitlines()[0]
        yield RunEvent(run_id, "step ended", step.ended_at, step.place, state, step.tries, detail, step.output)


class News:
    """Remembers what was told, and tells the rest."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, int, float]] = set()

    def of(self, run: RunReport) -> list[RunEvent]:
        """What has happened in `run` that was not told before."""
        new = []
        for one in events_of(run):
            name = (one.what, one.place, one.number, one.at)
            if name not in self._told:
                self._told.add(name)
                new.append(one)
        return new


LOOK_AGAIN = 0.2  # seconds after which a run is looked at without news: they may be in another process
GATHER = 0.05  # seconds in which news gather before a run is looked at again: its whole record is read each time


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
