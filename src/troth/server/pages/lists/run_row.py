"""Show a run as one row of a list: its state, its name, and what one would ask next."""

import re

from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.store.list_records import RunItem
from troth.runtime.workflows.execute.failures import OverBudgetError, WorkflowFailedError
from troth.runtime.workflows.execute.waits import approval_signal
from troth.runtime.workflows.record.report import RunReport, RunWord, StepWord
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.runtime.workflows.render.words import due, short_place, span
from troth.server.pages.frame.parts import badge, moment, row
from troth.server.pages.frame.view import View
from troth.server.pages.lists.under_way import LongRun, name_of

__all__ = ["brief_row", "item_row", "run_row"]

_AT_WORK = (StepWord.RUNNING, StepWord.INTERRUPTED)
_PLACE = re.compile(r"\((?:/|[A-Za-z]:\\)[^()\n]*[/\\]([^()/\\\n]+:\d+)\)$")
"""The user's own line, as messages of workflows end; its folder is on the page of the run."""
_ASKED = approval_signal("")
_OF_WORKFLOWS = (WorkflowFailedError.__name__, OverBudgetError.__name__)
"""What a run of a workflow fails with, whose messages name the step and the error that it failed with."""


def run_row(view: View, run: RunReport) -> Html:
    """The row."""
    href = view.link("runs", run.id)
    note = join(_note(run), _place_of(run))
    return row(f"run-{run.id}", href, badge(run.state), run.workflow, run.id, note, moment(run.created_at))


def _place_of(run: RunReport | RunItem) -> Html | None:
    """The governed session that carries a run out, and for whom."""
    if run.session is None:
        return None
    words = f"in the session {cut(run.session, 60)}, by {cut(run.agent or '?', 60)}"
    return join(" ", tag("span", words, class_="soft place"))


def _note(run: RunReport) -> object:
    """The cause of a failure, what is waited for, or how long it took."""
    steps = run.failures or run.not_undone
    if steps and steps[0].error is not None:
        error = steps[0].error
        place = tag("span", f"at {short_place(error.place)}", class_="soft place") if error.place else None
        return join(tag("b", steps[0].place), f" {cut(str(error).splitlines()[0], 200)} ", place)
    if run.state is RunWord.CANCELLED:
        return "cancelled" if run.error is None else cut(str(run.error).splitlines()[0], 200)
    if run.error is not None and not run.succeeded:
        return cut(str(run.error).splitlines()[0], 200)
    if run.waiting_for:
        step = run.waiting_for[0]
        return join(tag("b", step.place), f" {cut(step.question, 200) or due(run) or 'waits'}")
    if run.ended_at is not None:
        return f"took {span(run.ended_at - run.created_at)}"
    at_work = [step.place for step in run.steps if step.state in _AT_WORK and not step.is_block]
    return f"at {', '.join(at_work[:3])}" if at_work else ""


def brief_row(view: View, run: RunReport | LongRun) -> Html:
    """The row of a run, or of a long one of which its report was not made."""
    return item_row(view, *run) if isinstance(run, LongRun) else run_row(view, run)


def item_row(view: View, run: RunItem, last: str = "") -> Html:
    """The row of a run of which only what lists have is known, and what happened in it last."""
    href, news = view.link("runs", run.id), _brief(run) or (cut(last, 200) if run.finished_at is None else "")
    note = join(news, _place_of(run))
    return row(f"run-{run.id}", href, badge(run.state), name_of(run), run.id, note, moment(run.created_at))


def _brief(run: RunItem) -> str:
    if run.state == RunWord.CANCELLED and run.error_type == RunCancelledError.__name__:
        return ""  # its state says all of it
    if run.error_type or run.error:
        message = (run.error or "").replace(f" of {run.label!r}", "", 1)  # its name stands in the same row
        is_ours = run.error_type in _OF_WORKFLOWS
        head = (message if is_ours else f"{run.error_type}: {message}").partition("\n")[0]
        return cut(_PLACE.sub(r"(\1)", head), 200)
    if run.finished_at is not None:
        return f"took {span(run.finished_at - run.created_at)}"
    if not run.waiting_for or run.state != RunWord.WAITING:
        return ""
    question = run.waiting_for.partition(_ASKED)[2].rstrip("'\"")
    return f"{cut(question, 200)} waits for an answer" if question else f"waits for {cut(run.waiting_for, 200)}"
