"""Show a run as one row of a list: its state, its name, and what one would ask next."""

from troth.runtime.store.list_records import RunItem
from troth.runtime.workflows.record.report import RunReport, RunWord
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.runtime.workflows.render.words import due, short_place, span
from troth.server.pages.frame.parts import badge, moment, row
from troth.server.pages.frame.view import View

__all__ = ["item_row", "run_row"]


def run_row(view: View, run: RunReport) -> Html:
    """The row."""
    href = view.link("runs", run.id)
    return row(f"run-{run.id}", href, badge(run.state), run.workflow, run.id, _note(run), moment(run.created_at))


def _note(run: RunReport) -> object:
    """The cause of a failure, what is waited for, or how long it took."""
    steps = run.failures or run.not_undone
    if steps and steps[0].error is not None:
        error = steps[0].error
        place = f" at {short_place(error.place)}" if error.place else ""
        return join(
            tag("b", steps[0].place), f" {cut(str(error).splitlines()[0], 200)}", tag("span", place, class_="soft")
        )
    if run.state is RunWord.CANCELLED:
        return "cancelled" if run.error is None else cut(str(run.error).splitlines()[0], 200)
    if run.error is not None and not run.succeeded:
        return cut(str(run.error).splitlines()[0], 200)
    if run.waiting_for:
        step = run.waiting_for[0]
        return join(tag("b", step.place), f" {cut(step.question, 200) or due(run) or 'waits'}")
    if run.ended_at is not None:
        return f"took {span(run.ended_at - run.created_at)}"
    at_work = [step.place for step in run.steps if step.state == "running" and not step.is_block]
    return f"at {', '.join(at_work[:3])}" if at_work else ""


def item_row(view: View, run: RunItem) -> Html:
    """The row of a run of which only what lists have is known."""
    href = view.link("runs", run.id)
    return row(f"run-{run.id}", href, badge(run.state), run.label or "?", run.id, _brief(run), moment(run.created_at))


def _brief(run: RunItem) -> str:
    if run.error_type or run.error:
        return cut(f"{run.error_type}: {run.error}".splitlines()[0], 200)
    if run.finished_at is not None:
        return f"took {span(run.finished_at - run.created_at)}"
    return f"waits for {cut(run.waiting_for, 200)}" if run.waiting_for and run.state == RunWord.WAITING else ""
