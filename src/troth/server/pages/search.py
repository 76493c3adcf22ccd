"""Search: over ids, names and messages of all that there is."""

from troth.runtime.workflows.render.markup import join, tag
from troth.server.pages.frame.layout import Page
from troth.server.pages.frame.parts import empty, moment, pager, row, rows
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import search

__all__ = ["show"]

_SHOWN = 50
_ROOMS = {
    "run": "runs",
    "conversation": "conversations",
    "message": "conversations",
    "session": "sessions",
    "promise": "promises",
}


async def show(view: View) -> Page:
    """The page."""
    text = view.word("text")
    runtime, owner = view.context.runtime, view.caller.sees
    before = view.word("before")
    hits, following = await view.ask(lambda: search(runtime, text, owner, before, _SHOWN)) if text else ([], None)
    form = tag(
        "form",
        tag(
            "label",
            tag("span", "ids, names and messages"),
            tag("input", type="search", name="text", id="text", value=text, autofocus=not text, maxlength="400"),
            class_="field",
        ),
        tag("button", "Search", class_="primary"),
        method="get",
        action=view.link("search"),
        class_="filters",
        role="search",
    )
    items = (
        row(
            f"{hit.kind}-{hit.id}-{number}",
            view.link(_ROOMS[hit.kind], hit.id),
            tag("span", hit.kind, class_="soft"),
            hit.title.splitlines()[0] if hit.title.strip() else hit.id,
            hit.id,
            None,
            moment(hit.at),
        )
        for number, hit in enumerate(hits)
    )
    results = rows(items, "hits") if hits else empty(tag("p", f"Nothing has {text!r} in it.")) if text else None
    more = pager(view.link("search"), {"text": text, "before": before}, following)
    return Page("Search", join(tag("h1", "Search"), form, results, more), "search")
