"""A run: its state, why it stopped, how to go on; then the graph, the timeline, its steps and its events."""

from collections.abc import Iterator

from troth.errors import MisuseError
from troth.runtime.assemble import store_options
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.workflows.execute.run_ids import new_id
from troth.runtime.workflows.record.report import RunReport, RunWord, StepReport
from troth.runtime.workflows.record.run_events import RunEvent
from troth.runtime.workflows.render.bars import bars
from troth.runtime.workflows.render.folding import folded
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag
from troth.runtime.workflows.render.run_parts import cause, commands, question, row, undone
from troth.runtime.workflows.render.svg import graph_svg
from troth.runtime.workflows.render.words import RUN_MARKS, short_place, span, used
from troth.server.access.owners import aclaim
from troth.server.access.scopes import Scope, check_scope
from troth.server.channels import HttpChannel
from troth.server.errors import ApiError, not_found
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import address, badge, fact, facts, field, moment, panel
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import BAD, ListFilter, find_runs
from troth.server.pages.run_activity import activity, until
from troth.server.pages.run_diff import difference_table
from troth.server.run_reports import afind_run, areport

__all__ = ["act", "show"]

_EVENTS = 200  # events on one page
_RESUME = "resume"
"""The form that goes on with a run; what to do if the workflow has changed is chosen beside it."""


async def show(view: View) -> HtmlPage:
    """The page."""
    run = await _find(view, view.id)
    against = view.word("diff")
    if against:
        other = await _find(view, against)
        return HtmlPage(f"{run.id} and {other.id}", difference_table(view, run, other), "runs")
    after = view.number("after")
    events, last = await view.ask(lambda: _events(view, run, after))
    parent = None if run.state is RunWord.DAMAGED else await view.ask(lambda: _parent(view, run.id))
    completed = await view.ask(lambda: _completed(view, run)) if run.state in BAD and run.steps else None
    body = join(_top(view, run, parent, completed), _below(view, run, events, after, last))
    return HtmlPage(f"{run.state}: {run.workflow} {run.id}", body, "runs", address(on="run", id=run.id)[1:])


def _parent(view: View, run_id: str) -> str | None:
    record = view.context.store.run(run_id)
    return None if record is None else record.parent


def _completed(view: View, run: RunReport) -> str | None:
    """The last run of the same workflow that was completed: what differs from it is often the cause."""
    filters = ListFilter((RunWord.COMPLETED,), workflow=run.workflow)
    items = find_runs(view.context.runtime, filters, "", 1, view.caller.sees).items
    return items[0].id if items else None


async def _find(view: View, run_id: str) -> RunReport:
    """A run of whoever looks, or of a session of theirs."""
    await afind_run(view.context, view.caller, run_id)
    try:
        return await areport(view.context.runtime, run_id, talks=True)
    except UnknownRunError as unknown:
        raise not_found("run", run_id, advice="It may be in another store, or its id may be incomplete.") from unknown


def _top(view: View, run: RunReport, parent: str | None, completed: str | None) -> Html:
    """What one has to see without scrolling: the state, the cause, and what to do."""
    return join(
        tag(
            "div",
            tag("h1", cut(run.workflow, 120)),
            badge(run.state),
            tag("code", run.id, class_="id", data_copy="id"),
            tag("span", "a cancellation was requested", class_="soft")
            if run.cancel_requested and not run.is_over
            else None,
            class_="title",
        ),
        tag("div", cause(run, moment(run.last_seen)), id="cause", data_copy_error=True),
        _result(run) if run.state is RunWord.COMPLETED else None,
        (_question(view, run, step) for step in run.waiting_for if step.question),
        activity(run),
        undone(run),
        _go_on(view, run),
        _about(view, run, parent, completed),
    )


def _result(run: RunReport) -> Html:
    """What came of a run that is completed: that is what one comes for."""
    took = "" if run.ended_at is None else f" in {span(run.ended_at - run.created_at)}"
    output = (
        tag("pre", shown_json(run.output, 20_000), class_="value", tabindex="0") if run.output is not None else None
    )
    return panel(
        tag("b", f"{RUN_MARKS[run.state]} completed{took}"), output or ", without an output", kind="good result"
    )


def _about(view: View, run: RunReport, parent: str | None, completed: str | None) -> Html:
    took = span(run.ended_at - run.created_at) if run.ended_at is not None else ""
    origin = run.forked_from
    return facts(
        fact("started", moment(run.created_at)),
        fact("ended", moment(run.ended_at), f", took {took}") if took else None,
        fact("session", tag("a", run.session, href=view.link("sessions", run.session)), f" by {run.agent}")
        if run.session
        else None,
        fact("part of", _other(view, parent)) if parent else None,
        fact("forked from", _compared(view, run, origin)) if origin else None,
        fact("last completed", _compared(view, run, completed)) if completed else None,
        fact("used", used(run.tokens, run.cost)) if run.tokens or run.cost else None,
        fact("source", tag("code", short_place(run.source), title=run.source)) if run.source else None,
    )


def _other(view: View, run_id: str) -> Html:
    return tag("a", run_id, href=view.link("runs", run_id))


def _compared(view: View, run: RunReport, other: str) -> Html:
    return join(_other(view, other), " ", tag("a", "compare", href=view.link("runs", run.id, diff=other)))


def _question(view: View, run: RunReport, step: StepReport) -> Html:
    """A question to a person, and the place to answer it."""
    path = address("runs", run.id)
    answers: list[object] = []
    if _can_answer(view, step):
        token = {"token": view.visitor.token(), "do": "approve", "step": step.place}
        answers = [
            tag(
                "form",
                (tag("input", type="hidden", name=name, value=value) for name, value in token.items()),
                field("by", "your name", value=view.caller.owner, required=True, key=f"by-{step.place}-"),
                field("note", "a note", hint="why", key=f"note-{step.place}-"),
                tag("button", "Approve", name="answer", value="yes", class_="primary"),
                tag("button", "Deny", name="answer", value="no", class_="danger"),
                method="post",
                action=view.root + path,
                class_="answer",
            )
        ]
    return panel(question(step, until(step)), answers, kind="next question")


def _can_answer(view: View, step: StepReport) -> bool:
    return bool(step.question) and step.answered_at is None and not step.is_too_late() and view.may(Scope.ACT)


def _answerable(view: View, run: RunReport) -> bool:
    return any(_can_answer(view, step) for step in run.waiting_for)


def _go_on(view: View, run: RunReport) -> Html:
    """The commands to go on with, and the buttons that do the same."""
    lines = run.commands(store_options(view.context.store))
    path = address("runs", run.id)
    overdue = run.state is RunWord.WAITING and run.overdue() > 0
    can_resume = run.state in (RunWord.FAILED, RunWord.INTERRUPTED, RunWord.ROLLBACK_INCOMPLETE) and not run.rolled_back
    if run.session is not None:  # who goes on with it, and who ends it, is its session
        return tag("div", commands(lines), class_="go-on") if lines and not _answerable(view, run) else Html("")
    budget = (
        [field("budget", f"new budget of {run.over_budget}", required=True, key="budget-")] if run.over_budget else []
    )
    buttons = join(
        view.button(
            path,
            "Resume",
            scope=Scope.ACT,
            fields={"do": "resume"},
            inputs=budget,
            kind="primary",
            id=_RESUME,
        )
        if can_resume or overdue
        else None,
        view.button(path, "Fork from the start", scope=Scope.ACT, fields={"do": "fork"})
        if run.is_over and run.steps
        else None,
        view.button(path, "Cancel", scope=Scope.ACT, fields={"do": "cancel"}, kind="danger")
        if not run.is_over and not run.cancel_requested
        else None,
    )
    if not lines and not buttons:
        return Html("")
    row_of_buttons = tag("div", buttons, class_="buttons") if buttons else None
    if not lines:
        return tag("div", row_of_buttons, class_="go-on")
    if _answerable(view, run):  # the place to answer stands above, and does the same
        return tag(
            "div", tag("details", tag("summary", "as a command"), commands(lines)), row_of_buttons, class_="go-on"
        )
    choice = _if_changed() if can_resume and row_of_buttons else None
    return panel(commands(lines), row_of_buttons, choice, kind="next go-on")


def _if_changed() -> Html:
    """What to do where the workflow has changed since."""
    choice = tag(
        "select",
        tag("option", "show what changed, and do nothing", value=""),
        tag("option", "continue with the new version", value="accept"),
        tag("option", "continue with the recorded version", value="recorded"),
        name="changes",
        form=_RESUME,
        aria_label="if the workflow has changed",
    )
    return tag("details", tag("summary", "if the workflow has changed"), choice)


def _below(view: View, run: RunReport, events: list[RunEvent], after: int, last: int) -> Html:
    if run.state is RunWord.DAMAGED:
        return Html("")  # an empty graph and no inputs would say that there were none
    shown = folded(run)
    timeline = bars(shown.steps, last_seen=run.last_seen)
    graph = tag("div", graph_svg(shown), class_="scroll", tabindex="0", role="region", aria_label="Graph of the steps")
    legend = tag("p", "solid: running, hatched: waiting, dotted: no process", class_="soft")
    return join(
        tag(
            "div",
            tag("div", tag("h2", "Graph"), graph),
            tag("div", tag("h2", "Timeline"), timeline, legend, class_="timeline") if timeline else None,
            class_="pictures",
        ),
        tag("h2", "Steps"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", (tag("th", word, scope="col") for word in ("step", "state", "kind", "time")))),
                tag("tbody", (row(step, extra=_extra(view, run, step)) for step in shown.steps)),
                class_="steps",
            ),
            class_="scroll",
        ),
        _value("Inputs", dict(run.inputs)),
        _value("Output", run.output) if run.output is not None and run.state is not RunWord.COMPLETED else None,
        _event_list(view, run, events, after, last),
    )


def _value(heading: str, thing: object) -> Html:
    return join(tag("h2", heading), tag("pre", shown_json(thing, 20_000), class_="value", tabindex="0"))


def _extra(view: View, run: RunReport, step: StepReport) -> Iterator[Html]:
    """What only a page can offer with a step: to fork from there."""
    is_inner = step.is_block or step.is_undo or step.depth > 0
    if is_inner or not run.is_over or step.started_at is None or run.session is not None:
        return
    path = address("runs", run.id)
    form = view.button(path, "Fork from here", scope=Scope.ACT, fields={"do": "fork", "step": step.place})
    if form:
        yield form


def _events(view: View, run: RunReport, after: int) -> tuple[list[RunEvent], int]:
    if run.state is RunWord.DAMAGED:
        return [], 0
    events, last, _ = view.context.runtime.event_pages(run.id).read(after, _EVENTS)
    return list(events), last


def _event_list(view: View, run: RunReport, events: list[RunEvent], after: int, last: int) -> Html:
    if not events:
        return Html("")
    end = events[-1].seq
    links = [
        tag("a", "« first", href=view.link("runs", run.id) + "#events") if after else None,
        tag("a", f"{last - end} later »", href=view.link("runs", run.id, after=end) + "#events")
        if end < last
        else None,
    ]
    items = (
        tag("li", tag("span", event.seq, class_="soft mono"), tag("span", cut(str(event), 300)), moment(event.at))
        for event in events
    )
    return join(
        tag("h2", "Events", id="events"),
        tag("ol", items, class_="events"),
        tag("nav", links, class_="pager", aria_label="More events") if any(links) else None,
    )


def _budget(run: RunReport, word: str) -> dict[str, object]:
    if not run.over_budget or not word.strip():
        return {}
    text = word.strip()
    return {run.over_budget: None if text == "none" else int(text) if text.isdigit() else text}


async def act(view: View, form: dict[str, str]) -> str:
    """Answer, resume, cancel or fork, and show what came of it."""
    check_scope(view.caller, Scope.ACT)
    run = await _find(view, view.id)
    if run.state is RunWord.DAMAGED:  # since the page with the button was opened
        message, _, advice = ("" if run.error is None else run.error.message).partition("\n")
        raise ApiError(409, "run_damaged", message, advice=advice or None)
    runtime = view.context.runtime
    path = address("runs", run.id)
    try:
        match form.get("do"):
            case "approve":
                by, note = form.get("by", "").strip() or view.caller.owner, form.get("note", "").strip() or None
                is_no = form.get("answer") != "yes"
                await runtime.aapprove(run.id, form.get("step") or None, deny=is_no, by=by[:200], note=note)
            case "resume":
                budget = _budget(run, form.get("budget", ""))
                with HttpChannel.session(run.id):
                    await runtime.astart_resume(
                        run.id,
                        accept_changes=form.get("changes") == "accept",
                        as_recorded=form.get("changes") == "recorded",
                        budget=budget,
                    )
            case "cancel":
                await runtime.acancel(run.id, wait=False)
            case "fork":
                fork_id = new_id(run.workflow)
                about = {"workflow": run.workflow, "forked_from": run.id}
                await aclaim(view.context, view.caller, "run", fork_id, about)
                with HttpChannel.session(fork_id):
                    await runtime.astart_fork(run.id, form.get("step") or None, fork_id=fork_id)
                return address("runs", fork_id)
            case _:
                raise ApiError(400, "invalid_request", "This button is not supported, so nothing was done.")
    except MisuseError as refused:
        message, _, advice = str(refused).partition("\n")
        raise ApiError(409, "cannot_act", message, advice=advice or None) from refused
    return path
