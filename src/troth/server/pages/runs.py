"""Runs: all of them, the newest first; by state, workflow, session, time and text."""

import time

from troth.runtime.assemble import store_options
from troth.runtime.workflows.record.report import RunWord
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.errors import ApiError
from troth.server.pages.frame.first_run import first_run
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import badge, choices, empty, field, filter_form, moment, none_so_far, pager, rows
from troth.server.pages.frame.view import View
from troth.server.pages.lists.asking_row import ask_row, asking_row
from troth.server.pages.lists.queries import ListFilter, counts_of_runs, failures_since, find_runs, is_mine
from troth.server.pages.lists.run_row import item_row
from troth.server.pages.lists.under_way import runs_that_ask

__all__ = ["show"]

_SHOWN = 50
_AGES = {"1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400}


async def show(view: View) -> HtmlPage:
    """The page."""
    if view.word("failed_since"):
        return await _failures(view)
    if view.word("asking"):
        return await _asking(view)
    words = view.words("state", "workflow", "session", "since", "text", "before")
    if words["state"] and words["state"] not in set(RunWord):
        raise ApiError(400, "invalid_field", f"There is no state {words['state']!r} of a run.", param="state")
    states = (words["state"],) if words["state"] else ()
    filters = ListFilter(states, words["workflow"], words["session"], words["text"], _since(words["since"]))
    runtime, owner = view.context.runtime, view.caller.sees
    page = await view.ask(lambda: find_runs(runtime, filters, words["before"], _SHOWN, owner))
    is_narrowed = any(words[name] for name in ("workflow", "session", "since", "text"))
    counts = {} if is_narrowed else await view.ask(lambda: counts_of_runs(runtime, owner))
    body = join(
        tag("h1", "Runs"),
        _pills(view, counts, words["state"]),
        _filters(view, words, await view.ask(lambda: _workflows(view))),
        rows((item_row(view, run) for run in page), "runs-rows") if page.items else _nothing(view, words, page.next),
        pager(view.link("runs"), words, page.next),
        _about_damage(view) if words["state"] == RunWord.DAMAGED else None,
    )
    return HtmlPage("Runs", body, "runs", "on=all")


def _about_damage(view: View) -> Html:
    """What this list cannot know."""
    command = f"troth store check{store_options(view.context.store)}"
    return tag(
        "p",
        "These are the runs whose own row is damaged. Damage in the steps of a run is seen on its own page; ",
        tag("code", command),
        " reads everything, and lists what is damaged.",
        class_="soft",
    )


async def _failures(view: View) -> HtmlPage:
    """All that has failed since a moment: the list behind the number on *Now*."""
    since = _moment(view.word("failed_since"))
    runtime, owner = view.context.runtime, view.caller.sees
    failures = await view.ask(lambda: failures_since(runtime, since, owner))
    after = view.number("after")
    shown = failures[after : after + _SHOWN]
    words = {"failed_since": view.word("failed_since")}
    older = view.link("runs", **words, after=after + _SHOWN) if len(failures) > after + _SHOWN else None
    links = [
        tag("a", "« newest", href=view.link("runs", **words)) if after else None,
        tag("a", f"{len(failures) - after - _SHOWN:,} older »", href=older, rel="next") if older else None,
    ]
    body = join(
        tag("h1", "Runs that failed"),
        tag("p", "since ", moment(since), ", the last one first · ", tag("a", "all runs", href=view.link("runs"))),
        rows((item_row(view, run) for run in shown), "runs-rows")
        if shown
        else empty(tag("h2", "No run has failed since then")),
        tag("nav", links, class_="pager", aria_label="More of this list") if any(links) else None,
    )
    return HtmlPage("Runs that failed", body, "runs", "on=all")


async def _asking(view: View) -> HtmlPage:
    """All that waits for a person: the list behind the number on *Now*."""
    runtime, owner = view.context.runtime, view.caller.sees
    asks = await view.ask(lambda: [ask for ask in runtime.hypervisor.asks() if is_mine(runtime, owner, ask.session)])
    runs = await view.ask(lambda: runs_that_ask(runtime, owner))
    items = [*(ask_row(view, ask) for ask in asks), *(asking_row(view, run) for run in runs)]
    after = view.number("after")
    shown = items[after : after + _SHOWN]
    older = len(items) - after - _SHOWN
    links = [
        tag("a", "« first", href=view.link("runs", asking="1")) if after else None,
        tag("a", f"{older:,} more »", href=view.link("runs", asking="1", after=after + _SHOWN), rel="next")
        if older > 0
        else None,
    ]
    body = join(
        tag("h1", "Waits for a person"),
        tag("p", "questions of runs, and acts that wait for approval · ", tag("a", "all runs", href=view.link("runs"))),
        rows(shown, "runs-rows") if shown else empty(tag("h2", "Nothing waits for a person")),
        tag("nav", links, class_="pager", aria_label="More of this list") if any(links) else None,
    )
    return HtmlPage("Waits for a person", body, "runs", "on=all")


def _moment(word: str) -> float:
    """A moment as *Now* writes it, in seconds since 1970, or as `since` takes it."""
    if word.isascii() and word.replace(".", "", 1).isdigit() and len(word) < 20:
        return float(word)
    return _since(word) or 0.0


def _pills(view: View, counts: dict[str, int], chosen: str) -> Html:
    """How many runs are in each state, each the way to a list of them."""
    links = (
        tag(
            "li",
            tag(
                "a",
                badge(state, f"{state} {counts[state]:,}"),
                href=view.link("runs", state=None if state == chosen else state),
                aria_current="true" if state == chosen else None,
            ),
        )
        for state in RunWord
        if counts.get(state)
    )
    return tag("ul", links, class_="pills", aria_label="Runs by their state") if counts else Html("")


def _since(word: str) -> float | None:
    if not word:
        return None
    if word in _AGES:
        return time.time() - _AGES[word]
    try:
        return time.mktime(time.strptime(word[:10], "%Y-%m-%d"))
    except ValueError:
        raise ApiError(
            400,
            "invalid_field",
            f"`since` is {word[:40]!r}, which is not a time.",
            param="since",
            advice="Give 24h, or 2026-05-01.",
        ) from None


def _workflows(view: View) -> list[str]:
    """The names that can be chosen: those of this server, and for an admin those that runs of the store have."""
    names = {*view.context.workflows, *(view.context.runtime.store.lists.labels() if view.caller.sees is None else ())}
    return sorted(names)


def _filters(view: View, words: dict[str, str], workflows: list[str]) -> Html:
    return filter_form(
        view.link("runs"),
        "runs",
        words,
        choices("state", "state", RunWord, words["state"]),
        choices(
            "workflow",
            "workflow",
            sorted({*workflows, *filter(None, [words["workflow"]])}),
            words["workflow"],
        ),
        choices(
            "since",
            "started within",
            [*_AGES, *([words["since"]] if words["since"] not in ("", *_AGES) else [])],
            words["since"],
        ),
        field("session", "session", value=words["session"]),
        field("text", "text", value=words["text"], hint="id, name or message"),
    )


def _nothing(view: View, words: dict[str, str], following: str | None) -> Html:
    if following is not None:
        return none_so_far()
    if any(words.values()):
        return empty(tag("h2", "No matching runs"), tag("p", "Remove a word from the filter to see more."))
    return empty(
        tag("h2", "No runs yet"),
        tag("p", "Start one, and it appears here:"),
        first_run(view.context),
    )
