"""Now: what runs, what waits for a person, what failed since one last looked, and what is still owed."""

import time
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.store.list_records import ConversationItem, DeliveryItem, PromiseItem, RunItem
from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.access.scopes import Scope
from troth.server.guard_log import GuardNote
from troth.server.pages.frame.first_run import first_run
from troth.server.pages.frame.layout import HEADERS, HtmlPage
from troth.server.pages.frame.parts import badge, empty, heading_of, moment, row, rows, since
from troth.server.pages.frame.view import View
from troth.server.pages.lists.asking_row import ask_row, asking_row
from troth.server.pages.lists.delivery_row import delivery_row
from troth.server.pages.lists.queries import (
    ListFilter,
    counts_of_runs,
    ended_at,
    failures_since,
    find_conversations,
    find_deliveries,
    find_promises,
    find_runs,
    is_mine,
    open_kills,
)
from troth.server.pages.lists.run_row import brief_row, item_row
from troth.server.pages.lists.talk_row import talk_row
from troth.server.pages.lists.under_way import AskingRun, LongRun, brief_reports, runs_that_ask, unfinished_runs

__all__ = ["act", "show"]

_SHOWN = 8
_MOST_ASKING = 20
_MANY = 200  # of what is not counted by the store
_DAY = 86_400.0
_SEEN = "troth_seen"
"""The cookie that says up to when its owner has seen what failed. It opens nothing."""
_OWED = ("due", "leased", "stored", "dead")


@dataclass(frozen=True, slots=True)
class _Picture:
    """What there is."""

    counts: dict[str, int]
    running: list[RunReport | LongRun]
    waiting: list[RunItem]
    interrupted: list[RunReport | LongRun]
    people: list[AskingRun]
    asks: list[Ask]
    failed: list[RunReport | LongRun]
    failures: list[RunItem]
    talks: dict[str, list[ConversationItem]]
    talking: int
    jobs: list[PromiseItem]
    owed: list[DeliveryItem]
    not_delivered: int
    kills: list[tuple[str, str, str, float]]
    incidents: list[GuardNote]

    @property
    def has_any(self) -> bool:
        """Whether anything ever happened here."""
        talks = any(self.talks.values())
        asked = self.asks or self.people
        return bool(self.counts or asked or self.owed or self.kills or self.jobs or talks or self.incidents)


async def show(view: View) -> HtmlPage:
    """The page."""
    last_look = _seen(view)
    picture = await view.ask(lambda: _look(view, last_look))
    if not picture.has_any:
        return HtmlPage("Now", join(tag("h1", "Now"), _welcome(view)), "now", "on=all")
    counts = picture.counts
    words = f"failed, last {since(last_look).removesuffix(' ago')}"
    cards = tag(
        "ul",
        _card(view.link("runs", state="running"), counts.get("running", 0), "running", "running"),
        _card(view.link("conversations", state="running"), picture.talking, "agents talking", "running"),
        _card("#people", len(picture.people) + len(picture.asks), "wait for a person", "waiting"),
        _card("#failed", len(picture.failures), words, "failed"),
        _card(view.link("runs", state="interrupted"), counts.get("interrupted", 0), "interrupted", "interrupted"),
        _card(view.link("promises"), picture.not_delivered, "not delivered", "stored"),
        _card("#kills", len(picture.kills), "open kills", "killed"),
        _card("#incidents", len(picture.incidents), "guard incidents", "failed"),
        class_="cards",
    )
    asking = {asking.run.id for asking in picture.people} & {item.id for item in picture.waiting}
    unasked = [item for item in picture.waiting if item.id not in asking]
    people = [*(ask_row(view, ask) for ask in picture.asks), *(asking_row(view, asking) for asking in picture.people)]
    body = join(
        tag("h1", "Now"),
        cards,
        _section("people", "Waits for a person", people, len(people), view.link("runs", asking="1"), most=_MOST_ASKING),
        _failed(view, picture, last_look),
        _section(
            "failed-talks",
            "Conversations whose last run failed",
            [talk_row(view, talk) for talk in picture.talks["failed"]],
            len(picture.talks["failed"]),
            view.link("conversations", state="failed"),
        ),
        _section(
            "kills",
            "Kills that are not over",
            [_kill(view, *kill) for kill in picture.kills],
            len(picture.kills),
            most=len(picture.kills),
        ),
        _section(
            "interrupted",
            "Interrupted: no process is running them",
            [brief_row(view, run) for run in picture.interrupted],
            counts.get("interrupted", 0),
            view.link("runs", state="interrupted"),
        ),
        _section(
            "stopped-talks",
            "Conversations that were cut off",
            [talk_row(view, talk) for talk in picture.talks["interrupted"]],
            len(picture.talks["interrupted"]),
            view.link("conversations", state="interrupted"),
        ),
        _section(
            "running",
            "Running",
            [brief_row(view, run) for run in picture.running],
            counts.get("running", 0),
            view.link("runs", state="running"),
            none="Nothing is running.",
        ),
        _section(
            "talking",
            "Agents talking",
            [talk_row(view, talk) for talk in picture.talks["running"]],
            picture.talking,
            view.link("conversations", state="running"),
        ),
        _section(
            "jobs",
            "Running jobs",
            [_job(view, job) for job in picture.jobs],
            len(picture.jobs),
            view.link("promises", state="open", work="job"),
        ),
        _section(
            "waiting",
            "Waits for a time, or for another run",
            [item_row(view, run) for run in unasked],
            counts.get("waiting", 0) - len(asking),
            view.link("runs", state="waiting"),
        ),
        _section(
            "owed",
            "Not delivered",
            [delivery_row(view, delivery) for delivery in picture.owed],
            picture.not_delivered,
            view.link("promises"),
        ),
        _section(
            "incidents",
            "What the guard saw in this process",
            [_incident(*row) for row in enumerate(picture.incidents)],
            len(picture.incidents),
            most=len(picture.incidents),
        ),
    )
    return HtmlPage("Now", body, "now", "on=all")


async def act(view: View, form: dict[str, str]) -> Response:
    """Remember that what failed was seen."""
    moment_seen = _moment(form.get("seen", ""))
    response = RedirectResponse(view.root, 303, HEADERS)
    seen = time.time() if moment_seen is None else moment_seen
    cookie = f"{_SEEN}={seen:.3f}; Max-Age=31536000; HttpOnly; SameSite=Strict"
    response.headers.append("set-cookie", cookie)
    return response


def _seen(view: View) -> float:
    """Up to when whoever looks has seen what failed; a day back where that is not known."""
    moment_seen = _moment(view.request.cookies.get(_SEEN, ""))
    return time.time() - _DAY if moment_seen is None else moment_seen


def _moment(word: str) -> float | None:
    """A moment that is past, out of a cookie or a form: whoever sends one may write anything into it."""
    try:
        moment_seen = float(word)
    except ValueError:
        return None
    return moment_seen if 0 <= moment_seen <= time.time() + _DAY else None


def _look(view: View, last_look: float) -> _Picture:
    runtime, owner = view.context.runtime, view.caller.sees

    def runs(*states: str) -> list[RunReport | LongRun]:
        return brief_reports(runtime, find_runs(runtime, ListFilter(states), "", _SHOWN, owner))

    def talks(state: str) -> list[ConversationItem]:
        return list(find_conversations(runtime, ListFilter((state,)), "", _MANY, owner).items)

    failed = failures_since(runtime, last_look, owner)
    waiting = unfinished_runs(runtime, owner, "waiting")
    by_state = {state: talks(state) for state in ("running", "failed", "interrupted")}
    by_state["failed"] = [talk for talk in by_state["failed"] if talk.changed_at > last_look]
    everything = runtime.store.lists.counts() if owner is None else None
    owed = find_deliveries(runtime, _OWED, "", _MANY, owner)
    return _Picture(
        counts=counts_of_runs(runtime, owner),
        running=runs("running"),
        waiting=waiting,
        interrupted=runs("interrupted"),
        people=runs_that_ask(runtime, owner, waiting),
        asks=[ask for ask in runtime.hypervisor.asks() if is_mine(runtime, owner, ask.session)],
        failed=brief_reports(runtime, failed[:_SHOWN]),
        failures=failed,
        owed=list(owed.items),
        not_delivered=len(owed) if everything is None else sum(everything.deliveries.get(state, 0) for state in _OWED),
        talks=by_state,
        talking=len(by_state["running"]) if everything is None else everything.conversations.get("running", 0),
        jobs=list(find_promises(runtime, ListFilter(("open",), work="job"), "", _MANY, owner).items),
        kills=open_kills(runtime, owner),
        incidents=list(reversed(view.context.guard_log.notes)) if owner is None else [],
    )


def _card(href: str, count: int, word: str, state: str) -> Html:
    css = f"card {state}" if count else "card none"
    return tag("li", tag("a", tag("b", f"{count:,}"), " ", tag("span", word), href=href), class_=css)


def _section(
    key: str, heading: str, items: list[Html], count: int, more: str = "", none: str = "", most: int = _SHOWN
) -> Html:
    if not items and not none:
        return Html("")
    shown = items[:most]
    more_count = count - len(shown)
    return tag(
        "section",
        tag("h2", heading, id=f"{key}-heading"),
        rows(shown, f"{key}-rows") if items else tag("p", none, class_="soft"),
        tag("p", tag("a", f"{more_count:,} more", href=more)) if more_count > 0 and more else None,
        id=key,
        aria_labelledby=f"{key}-heading",
    )


def _failed(view: View, picture: _Picture, last_look: float) -> Html:
    if not picture.failed:
        return Html("")
    latest = max(ended_at(run) for run in picture.failures)
    more_count = len(picture.failures) - len(picture.failed)
    return tag(
        "section",
        tag("h2", "Failed since ", moment(last_look), id="failed-heading"),
        rows((brief_row(view, run) for run in picture.failed), "failed-rows"),
        tag(
            "div",
            tag("a", f"{more_count:,} more", href=view.link("runs", failed_since=f"{last_look:.3f}"))
            if more_count > 0
            else None,
            view.button("./", "I have seen these", scope=Scope.READ, fields={"seen": f"{latest + 0.001:.3f}"}),
            class_="buttons",
        ),
        id="failed",
        aria_labelledby="failed-heading",
    )


def _job(view: View, job: PromiseItem) -> Html:
    href = view.link("jobs", job.subject)
    note = f"to {job.channel}" if job.channel else "stored until requested"
    return row(f"job-{job.id}", href, badge("running"), heading_of(job.title), job.id, note, moment(job.created_at))


def _kill(view: View, session: str, agent: str, reason: str, at: float) -> Html:
    href = view.link("sessions", session)
    return row(f"kill-{session}-{agent}", href, badge("terminating"), agent, session, cut(reason, 200), moment(at))


def _incident(number: int, note: GuardNote) -> Html:
    head, _, details = note.text.partition("\n")
    return tag(
        "li",
        tag("div", badge("failed"), class_="row-state"),
        tag("div", tag("b", cut(head, 300)), class_="row-name"),
        tag("div", cut(details.strip(), 300), class_="row-note"),
        tag("div", moment(note.at), class_="row-at"),
        id=f"incident-{number}",
        class_="row",
    )


def _welcome(view: View) -> Html:
    names = list(view.context.workflows)
    return empty(
        tag("h2", "Nothing has happened here yet"),
        tag(
            "p",
            "This page shows what runs, what waits for a person, what failed and why, and what is not delivered yet.",
        ),
        tag("p", "Start a run, and it appears here:"),
        first_run(view.context),
        tag("p", f"This server has the workflow{'s' if len(names) > 1 else ''} ", tag("b", ", ".join(names)), ".")
        if names
        else None,
    )
