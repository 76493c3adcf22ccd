"""Know what is under way just now: which runs ask a person, and enough of each run for a row that costs little."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from troth.errors import TrothError
from troth.runtime.assemble import Runtime
from troth.runtime.store import StoreError
from troth.runtime.store.list_records import OpenWaitItem, RunItem
from troth.runtime.workflows.execute.waits import approval_signal
from troth.runtime.workflows.record.report import RunReport, RunWord
from troth.server.pages.lists.queries import ListFilter, find_runs, report_of

__all__ = ["AskingRun", "LongRun", "asking_runs", "brief_reports", "name_of", "runs_that_ask", "unfinished_runs"]

_EXAMINED = 1000  # of the newest runs that are not over
_ASKED = approval_signal("")
_LONG = 400  # entries of a run from which on its report costs more than a row is worth: 400 take two milliseconds


class OpenQuestion(NamedTuple):
    """What a run asks a person, at which step, since when and until when."""

    place: str
    text: str
    at: float
    until: float | None


class AskingRun(NamedTuple):
    """A run and its open questions, the oldest first. Another branch of it may be at work."""

    run: RunItem
    questions: Sequence[OpenQuestion]


class LongRun(NamedTuple):
    """A run of which only what lists have is read, and what happened in it last."""

    run: RunItem
    last: str


def name_of(run: RunItem) -> str:
    """The name of its workflow; out of that of its decision where it was kept without one."""
    return run.label or run.decision.partition(":")[2].rpartition("@")[0] or "?"


def unfinished_runs(runtime: Runtime, owner: str | None, *states: str) -> list[RunItem]:
    """The newest runs that are in one of these states."""
    return list(find_runs(runtime, ListFilter(states), "", _EXAMINED, owner).items)


def asking_runs(runtime: Runtime, runs: Iterable[RunItem]) -> list[AskingRun]:
    """Those of these runs that wait for the answer of a person, in their order."""
    items = list(runs)
    waits = runtime.store.lists.open_waits([run.id for run in items], signal=_ASKED)
    return [AskingRun(run, [_question(wait) for wait in waits[run.id]]) for run in items if run.id in waits]


def runs_that_ask(runtime: Runtime, owner: str | None, waiting: Sequence[RunItem] | None = None) -> list[AskingRun]:
    """The newest runs that wait for the answer of a person: those that wait come first.

    `waiting` are those that wait for anything, where they are known already.
    """
    first = unfinished_runs(runtime, owner, RunWord.WAITING) if waiting is None else waiting
    at_work = unfinished_runs(runtime, owner, RunWord.RUNNING, RunWord.INTERRUPTED)
    return asking_runs(runtime, [*first, *at_work])


def _question(wait: OpenWaitItem) -> OpenQuestion:
    place = wait.signal.removeprefix(_ASKED)
    try:
        note = json.loads(wait.note or "{}")
    except ValueError:
        note = {}
    return OpenQuestion(place, str(note.get("question") or "") if isinstance(note, dict) else "", wait.at, wait.until)


def brief_reports(runtime: Runtime, items: Iterable[RunItem]) -> list[RunReport | LongRun]:
    """The reports of runs; of a long one what lists have: a row costs what it shows, not what its run did."""
    reports: list[RunReport | LongRun] = []
    for item in items:
        last = runtime.store.last_entry(item.id)
        if last > _LONG:
            reports.append(LongRun(item, _last_event(runtime, item.id, last)))
        elif (report := report_of(runtime, item.id)) is not None:
            reports.append(report)
    return reports


def _last_event(runtime: Runtime, run_id: str, last: int) -> str:
    try:
        events, _, _ = runtime.event_pages(run_id).read(last - 1, 1)
    except (TrothError, StoreError):
        return ""
    return str(events[0]) if events else ""
