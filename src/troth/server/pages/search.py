"""Search: over ids, names and messages of all that there is."""

import re
from collections.abc import Sequence

from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import empty, moment, none_so_far, pager, row, rows
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


def _marked(text: str, words: Sequence[str]) -> Html:
    """A piece of text in which the words that were searched for stand out."""
    pieces = re.split(
        "(" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + ")", text, flags=re.IGNORECASE
    )
    return join(*(tag("mark", piece) if number % 2 else piece for number, piece in enumerate(pieces)))


def _nothing(text: str) -> Html:
    return empty(
        tag("h2", "Nothing found"),
        tag(
            "p",
            "No id, name, error or message has ",
            tag("b", text),
            " in it. Fewer words, or parts of them, find more.",
        ),
    )


def _hints() -> Html:
    """What can be searched for."""
    return empty(
        tag("p", "Paste an id from a log, or part of one: of a run, conversation, session or promise."),
        tag("p", "Or write words in any order: of a workflow's name, an error, or what was said in a conversation."),
    )


async def show(view: View) -> HtmlPage:
    """The page."""
    text = view.word("text")
    runtime, owner = view.context.runtime, view.caller.sees
    before = view.word("before")
    hits, following = await view.ask(lambda: search(runtime, text, owner, before, _SHOWN)) if text else ([], None)
    form = tag(
        "form",
        tag(
            "label",
            tag("span", "words of ids, names, errors, and what was said"),
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
            hit.id,
            "",
            _marked(" ".join(hit.title.split()), text.split()),
            moment(hit.at),
        )
        for number, hit in enumerate(hits)
    )
    if hits:
        results = rows(items, "hits")
    elif following is not None:
        results = none_so_far()
    else:
        results = _nothing(text) if text else _hints()
    more = pager(view.link("search"), {"text": text, "before": before}, following)
    return HtmlPage("Search", join(tag("h1", "Search"), form, results, more), "search")
