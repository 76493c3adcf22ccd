"""Read the runs of a store as reports, and as events while they happen."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from shlex import quote

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.arguments import check_count, check_seconds
from troth.runtime.engine import Engine
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.store import HistoryFollower, RunRecord, RunState, Store, StoreBusyError, StoreError
from troth.runtime.store.list_records import RunItem
from troth.runtime.workflows.document.problems import did_you_mean, nearest
from troth.runtime.workflows.record.build_report import tell_damaged
from troth.runtime.workflows.record.report import RunReport, RunWord
from troth.runtime.workflows.record.run_events import GATHER, EventReader, Quiet, RunEvent, RunEventPages
from troth.runtime.workflows.registry import FAMILIES, GOVERNED, WorkflowRegistry, governed_run, is_workflow

__all__ = ["RunReader"]

_PAGE = 100  # runs that are read at a time


class RunReader:
    """Reads runs of workflows and sagas; changes nothing."""

    def __init__(self, engine: Engine, store: Store, workflows: WorkflowRegistry) -> None:
        self._engine = engine
        self._store = store
        self._workflows = workflows

    def find(self, run_id: str) -> RunRecord:
        """The record of a run; raises `UnknownRunError`, with the nearest name that there is."""
        run = self._existing(run_id)
        governed = governed_run(run)
        if governed is not None:
            raise UnknownRunError(
                f"The run {run_id!r} belongs to {governed.agent!r} in the session {governed.session!r}, which alone "
                f"continues it. Nothing was done.\nTo see it: `troth runs show {quote(run_id)}`."
            )
        return _checked(run)

    def _existing(self, run_id: str) -> RunRecord:
        run = self._engine.find(run_id)
        if run is None:
            near = nearest(run_id, [run.id for run in self._engine.list(limit=500)])
            advice = f"Did you mean {near!r}?" if near else "`troth runs list` lists the runs."
            raise UnknownRunError(f"There is no run {run_id!r} in this store. {advice}")
        return run

    def report(self, run_id: str, *, talks: bool = False) -> RunReport:
        """What has become of a run so far; `talks=True` with the conversations of its agents."""
        run = self._existing(run_id)
        return self._report(run if governed_run(run) is not None else _checked(run), talks=talks)

    def _report(self, run: RunRecord, *, talks: bool = False) -> RunReport:
        governed = governed_run(run)
        if governed is None:
            return self._workflows.build_report(run, self._engine.steps(run.id), talks=talks)
        report = self._workflows.build_report(governed.run, self._engine.steps(run.id), talks=talks)
        doer = self._store.read_sessions(lambda rows: rows.doer(run.id))  # a kill may have handed it to another member
        return replace(report, session=governed.session, agent=doer or governed.agent)

    def newest(self, limit: int, state: RunWord | str | None) -> list[RunReport]:
        """The newest runs, the newest first; only those in `state`, if it is given."""
        check_count("limit", limit, least=None)  # so few that there are none is no mistake
        state_word = None if state is None else _word(state)
        reports = map(self.report_of_record, self._newest_records(state_word, limit))
        matching = (report for report in reports if state_word in (None, report.state))
        return list(itertools.islice(matching, max(0, limit)))

    def report_of_item(self, item: RunItem) -> RunReport:
        """The report of a run that a list names."""
        damaged = RunRecord(
            *(item.id, item.decision, item.label, RunState.DAMAGED, (), None, None, None, item.parent),
            *(item.forked_from, False, None, None, item.created_at, item.updated_at, None),
        )
        try:
            run = self._engine.find(item.id)
        except StoreBusyError:
            raise
        except StoreError as damage:
            return tell_damaged(damaged, damage)
        return self.report_of_record(damaged if run is None else run)

    def report_of_record(self, run: RunRecord) -> RunReport:
        """The report of a run in a list: what is wrong with one does not hide the others."""
        try:
            if run.state is RunState.DAMAGED:
                self._engine.find(run.id)  # says what is wrong
            return self._report(run)
        except StoreBusyError:
            raise
        except StoreError as damage:
            return tell_damaged(run, damage)

    def _newest_records(self, state_word: RunWord | None, limit: int) -> Iterator[RunRecord]:
        """Every run of a workflow that may be in the given state, the newest first, a page at a time."""
        if state_word in (None, RunWord.DAMAGED):
            return self._pages(None, None, _PAGE)
        pages = (self._pages(family, state_word, max(1, min(limit, _PAGE))) for family in FAMILIES)
        return heapq.merge(*pages, key=lambda run: (run.created_at, run.id), reverse=True)

    def _pages(self, family: str | None, word: str | None, size: int) -> Iterator[RunRecord]:
        before: tuple[float, str] | None = None
        while page := self._engine.list(family=family, word=word, before=before, limit=size):
            yield from (run for run in page if is_workflow(run) or run.decision.startswith(GOVERNED))
            last = page[-1].created_at, page[-1].id
            if before is not None and not last < before:
                return  # an index that is damaged leads round in circles
            before = last

    def events(self, run_id: str, *, after: int, timeout: float | None) -> Iterator[RunEvent]:
        """The events of a run after number `after`, as they happen; ends with it, or after `timeout` quiet seconds."""
        check_seconds("timeout", timeout)
        reader, quiet = self._event_reader(run_id), Quiet(timeout)
        with HistoryFollower(self._store, run_id, after=after) as follower:
            while True:
                is_over, page = follower.look()
                for entry in page:
                    yield reader.of(entry)
                if not page and (is_over or quiet.is_too_long(bool(page))):
                    return
                if not page and follower.wait(quiet.patience()):
                    time.sleep(GATHER)

    async def aevents(self, run_id: str, *, after: int, timeout: float | None) -> AsyncIterator[RunEvent]:
        """`events` for a task."""
        check_seconds("timeout", timeout)
        reader, quiet = await call(self._event_reader, run_id), Quiet(timeout)
        with HistoryFollower(self._store, run_id, after=after) as follower:
            while True:
                is_over, page = await call(follower.look)
                for entry in page:
                    yield reader.of(entry)
                if not page and (is_over or quiet.is_too_long(bool(page))):
                    return
                if not page and await follower.await_ring(quiet.patience()):
                    await asyncio.sleep(GATHER)

    def event_pages(self, run_id: str) -> RunEventPages:
        """The events of a run for a caller that keeps the cursor and does the waiting."""
        return RunEventPages(self._store, run_id, self._event_reader(run_id))

    def _event_reader(self, run_id: str) -> EventReader:
        run = self._existing(run_id)
        governed = governed_run(run)
        return self._workflows.event_reader(_checked(run) if governed is None else governed.run)


def _checked(run: RunRecord) -> RunRecord:
    """The record of a workflow or a saga."""
    if not is_workflow(run):
        raise _not_a_workflow(run)
    return run


def _not_a_workflow(run: RunRecord) -> UnknownRunError:
    return UnknownRunError(
        f"The run {run.id!r} is one of `{run.decision}`, which is not a workflow. Nothing was done.\n"
        f"In Python, read it with `runtime.engine.find({run.id!r})` and `runtime.engine.steps({run.id!r})`."
    )


def _word(state: RunWord | str) -> RunWord:
    try:
        return RunWord(state)
    except ValueError:
        advice = did_you_mean(state, list(RunWord), kind="state")
        raise MisuseError(f"There is no state {state!r} that a run can be in. {advice}") from None
