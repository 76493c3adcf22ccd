"""Runs: all of them, the newest first; by state, workflow, session, time and text."""

import time

from troth.runtime.workflows.record.report import RunWord
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import Page
from troth.server.pages.frame.parts import choices, empty, field, pager, rows
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import ListFilter, find_runs
from troth.server.pages.lists.run_row import item_row

__all__ = ["show"]

_SHOWN = 50
_AGES = {"1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400}


async def show(view: View) -> Page:
    """The page."""
    words = view.words("state", "workflow", "session", "since", "text", "before")
    if words["state"] and words["state"] not in set(RunWord):
        raise ApiError(400, "invalid_field", f"There is no state {words['state']!r} of a run.", param="state")
    states = (words["state"],) if words["state"] else ()
    filters = ListFilter(states, words["workflow"], words["session"], words["text"], _since(words["since"]))
    runtime, owner = view.context.runtime, view.caller.sees
    page = await view.ask(lambda: find_runs(runtime, filters, words["before"], _SHOWN, owner))
    body = join(
        tag("h1", "Runs"),
        _filters(view, words),
        rows((item_row(view, run) for run in page), "runs-rows") if page.items else _nothing(words),
        pager(view.link("runs"), words, page.next),
    )
    return Page("Runs", body, "runs", "on=all")


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
            f"`since` is {word[:40]!r}, and no time.",
            param="since",
            advice="Give 24h, or 2026-05-01.",
        ) from None


def _filters(view: View, words: dict[str, str]) -> Html:
    return tag(
        "form",
        choices("state", "state", RunWord, words["state"]),
        choices(
            "workflow",
            "workflow",
            sorted({*view.context.workflows, *filter(None, [words["workflow"]])}),
            words["workflow"],
        ),
        choices(
            "since",
            "begun within",
            [*_AGES, *([words["since"]] if words["since"] not in ("", *_AGES) else [])],
            words["since"],
        ),
        field("session", "session", value=words["session"]),
        field("text", "text", value=words["text"], hint="id, name or message"),
        tag("button", "Filter"),
        method="get",
        action=view.link("runs"),
        class_="filters",
        role="search",
        aria_label="Filter the runs",
    )


def _nothing(words: dict[str, str]) -> Html:
    if any(words.values()):
        return empty(tag("h2", "No run is like that"), tag("p", "Take a word out of the filter to see more."))
    return empty(
        tag("h2", "No run was begun yet"),
        tag("p", "Begin one, and it appears here by itself:"),
        tag("pre", "troth init hello.yaml\ntroth run hello.yaml"),
    )
