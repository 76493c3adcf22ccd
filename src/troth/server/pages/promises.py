"""Promises: each from "promised" to its fate, and the sum that has to be right; the jobs below."""

import shlex

from troth.runtime.jobs.outcome import title_of
from troth.runtime.jobs.records import JobRecord
from troth.runtime.store.list_records import PromiseItem
from troth.runtime.store.promise_records import OutboxCounts, PromiseState
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import (
    badge,
    choices,
    empty,
    field,
    filter_form,
    heading_of,
    moment,
    none_so_far,
    pager,
    row,
    rows,
)
from troth.server.pages.frame.view import View
from troth.server.pages.lists.delivery_row import delivery_row
from troth.server.pages.lists.queries import ListFilter, find_deliveries, find_jobs, find_promises

__all__ = ["show"]

_SHOWN = 50
_JOBS = 20
_STATES = list(PromiseState)


async def show(view: View) -> HtmlPage:
    """The page."""
    words = view.words("state", "work", "session", "text", "before")
    if words["state"] and words["state"] not in _STATES:
        raise ApiError(400, "invalid_field", f"There is no state {words['state']!r} of a promise.", param="state")
    runtime, owner = view.context.runtime, view.caller.sees
    states = (words["state"],) if words["state"] else ()
    filters = ListFilter(states, work=words["work"], session=words["session"], text=words["text"])
    page = await view.ask(lambda: find_promises(runtime, filters, words["before"], _SHOWN, owner))
    owed = await view.ask(lambda: find_deliveries(runtime, ("dead", "due", "leased", "stored"), "", 20, owner))
    jobs = await view.ask(lambda: find_jobs(runtime, owner, _JOBS))
    counts = await view.ask(runtime.outbox.counts) if owner is None else None
    form = filter_form(
        view.link("promises"),
        "promises",
        words,
        choices("state", "state", _STATES, words["state"]),
        choices("work", "work", sorted({"run", "job", *filter(None, [words["work"]])}), words["work"]),
        field("session", "session", value=words["session"]),
        field("text", "text", value=words["text"], hint="id or title"),
    )
    body = join(
        tag("h1", "Promises"),
        _sum(counts) if counts is not None else None,
        join(
            tag("h2", "Not delivered", id="owed"),
            rows((delivery_row(view, delivery) for delivery in owed), "owed-rows"),
            tag("h2", "All promises"),
        )
        if owed.items
        else None,
        form,
        rows((_row(view, promise) for promise in page), "promises-rows") if page.items else _nothing(words, page.next),
        pager(view.link("promises"), words, page.next),
        join(
            tag("h2", "Jobs"),
            rows((_job(view, job) for job in jobs), "jobs-rows"),
            tag("p", tag("a", "all jobs", href=view.link("promises", work="job"))) if len(jobs) == _JOBS else None,
        )
        if jobs
        else None,
    )
    return HtmlPage("Promises", body, "promises", "on=all")


def _sum(counts: OutboxCounts) -> Html:
    """That nothing is missing; red where something is."""
    ends = f"{counts.delivered} delivered + {counts.stored} stored + {counts.expired} expired + {counts.dead} dead"
    if counts.is_balanced:
        return tag("p", tag("b", f"✓ {counts.promised} promised"), f" = {ends}", class_="sum")
    return tag("p", f"✗ {counts.promised} promised ≠ {ends}: something is missing", class_="sum wrong", role="alert")


def _row(view: View, promise: PromiseItem) -> Html:
    state = badge(promise.state if promise.delivery is None else promise.delivery)
    became = "" if promise.state == PromiseState.OPEN else f" {promise.state}"
    note = f"{promise.work}{became}, {f'to {promise.channel}' if promise.channel else 'stored until requested'}"
    href = view.link("promises", promise.id)
    return row(
        f"promise-{promise.id}", href, state, heading_of(promise.title), promise.id, note, moment(promise.created_at)
    )


def _job(view: View, job: JobRecord) -> Html:
    command = job.command if isinstance(job.command, str) else shlex.join(job.command)
    href = view.link("jobs", job.id)
    ending = job.text.removeprefix(f"{title_of(job.command)} ")
    return row(f"job-{job.id}", href, badge(job.state), command, job.id, cut(ending, 200), moment(job.created_at))


def _nothing(words: dict[str, str], following: str | None) -> Html:
    if following is not None:
        return none_so_far()
    if any(words.values()):
        return empty(tag("h2", "No matching promises"), tag("p", "Remove a word from the filter to see more."))
    return empty(
        tag("h2", "No promises yet"),
        tag(
            "p",
            "A promise is background work whose result is delivered, or stored until it is requested.",
        ),
        tag("p", "Make one with ", tag("code", "runtime.promises.start(…)"), "."),
    )
