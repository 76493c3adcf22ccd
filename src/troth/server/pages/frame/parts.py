"""Parts that several pages share: states, times, lists, filters, and the forms behind buttons."""

import time
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlencode

from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.runtime.workflows.render.words import span

__all__ = [
    "address",
    "badge",
    "choices",
    "empty",
    "fact",
    "facts",
    "field",
    "filter_form",
    "heading_of",
    "moment",
    "none_so_far",
    "pager",
    "panel",
    "row",
    "rows",
    "since",
    "times",
]

_SHAPES = {
    "running": "▶",
    "waiting": "◷",
    "interrupted": "‖",
    "completed": "✓",
    "finished": "✓",
    "done": "✓",
    "delivered": "✓",
    "present": "✓",
    "active": "▶",
    "valid": "✓",
    "failed": "✗",
    "dead": "✗",
    "broken": "✗",
    "killed": "✗",
    "cancelled": "⊘",
    "stopped": "⊘",
    "rolled back": "↶",
    "rollback incomplete": "!",
    "damaged": "?",
    "paused": "‖",
    "suspended": "‖",
    "idle": "·",
    "open": "▶",
    "stored": "▢",
    "due": "◷",
    "leased": "▶",
    "expired": "⌛",
    "left": "·",
    "created": "·",
    "handshaking": "◷",
    "terminating": "⊘",
    "archived": "▢",
    "starting": "◷",
}


def badge(state: str, words: str | None = None) -> Html:
    """A state: a word, a shape and a color; `words` where more is to be said than its word."""
    css = f"state {state.replace(' ', '-').replace(',', '')}"
    return tag("span", f"{_SHAPES.get(state, '·')} {words or state}", class_=css)


def moment(at: float | None) -> Html:
    """A moment: how long ago, with the exact one beside it. A script writes both in the reader's own zone."""
    if at is None:
        return Html("")
    exact = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
    return tag(
        "time",
        tag("span", since(at), class_="ago"),
        " ",
        tag("span", f"{exact} UTC", class_="exact"),
        datetime=f"{exact.replace(' ', 'T')}.{int(at % 1 * 1000):03d}Z",
    )


def times(count: int, word: str = "time") -> str:
    """A count of something, in the right number: `1 time`, `2 times`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def heading_of(title: str) -> str:
    """A title as a heading has it: the command of a job without the backticks that set it off within a sentence."""
    is_quoted = len(title) > 2 and title[0] == title[-1] == "`" and "`" not in title[1:-1]
    return title[1:-1] if is_quoted else title


def since(at: float, now: float | None = None) -> str:
    """How long ago a moment was, or how far off it is."""
    seconds = (time.time() if now is None else now) - at
    if abs(seconds) < 1:
        return "now"
    return f"{span(float(int(seconds)))} ago" if seconds > 0 else f"in {span(float(int(-seconds)))}"


def address(*parts: str, **query: object) -> str:
    """An address below the root: `address("runs", run.id)`. Ids are quoted, also the slashes in them."""
    path = "/".join(quote(part, safe="") for part in parts)
    words = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(words)}" if words else path


def panel(*children: object, kind: str = "", id: str | None = None, heading: str | None = None) -> Html:  # noqa: A002
    """A box with something in it that stands out."""
    return tag("section", tag("h2", heading) if heading else None, children, class_=f"panel {kind}".strip(), id=id)


def fact(name: str, *says: object) -> Html:
    """One thing that is known, by its name."""
    return tag("div", tag("dt", name), tag("dd", says))


def facts(*pairs: Html | None) -> Html:
    """What is known, each by its name."""
    return tag("dl", pairs, class_="facts")


def empty(*children: object) -> Html:
    """What stands where a list has nothing."""
    return tag("div", children, class_="empty")


def none_so_far() -> Html:
    """What stands in a page of a list that has none, where a later one may have some."""
    return empty(
        tag("h2", "None so far"), tag("p", "Only the newest ones were searched: older ones are on the next page.")
    )


def field(name: str, label: str, *, value: str = "", required: bool = False, hint: str = "", key: str = "") -> Html:
    """A line to write something into."""
    unique = f"{key}{name}"
    return tag(
        "label",
        tag("span", label),
        tag(
            "input",
            type="text",
            name=name,
            id=unique,
            value=value,
            required=required,
            placeholder=hint or None,
            maxlength="2000",
            autocomplete="off",
        ),
        class_="field",
    )


def choices(name: str, label: str, options: Iterable[str], chosen: str) -> Html:
    """A choice of words in a filter; the first stands for all."""
    return tag(
        "label",
        tag("span", label),
        tag(
            "select",
            tag("option", "any", value="", selected=not chosen),
            (tag("option", word, value=word, selected=word == chosen) for word in options),
            name=name,
        ),
        class_="field",
    )


def filter_form(href: str, what: str, words: Mapping[str, str], *inputs: Html) -> Html:
    """The filter of a list. A narrow screen folds it and says what is set: the list begins on the first screen."""
    chosen = ", ".join(word for name, word in words.items() if word and name != "before")
    form = tag(
        "form",
        inputs,
        tag("button", "Filter"),
        method="get",
        action=href,
        class_="filters",
        role="search",
        aria_label=f"Filter the {what}",
    )
    return tag("details", tag("summary", f"Filter: {cut(chosen, 60)}" if chosen else "Filter"), form, class_="filter")


def rows(items: Iterable[Html], name: str) -> Html:
    """A list whose rows hold still while somebody reads them: what is new is announced above it."""
    return join(
        tag("p", "", class_="news", data_for=name, role="status"),
        tag("ol", items, class_="rows", id=name, data_list=True),
    )


def row(key: str, href: str, state: Html, title: str, about: str, note: object = None, at: object = None) -> Html:
    """One row of a list: the state, what it is, what is known of it, and when."""
    return tag(
        "li",
        tag("div", state, class_="row-state"),
        tag(
            "div",
            tag("a", cut(title, 120), href=href, class_="row-title"),
            " ",
            tag("span", cut(about, 120), class_="mono soft row-id"),
            class_="row-name",
        ),
        tag("div", note, class_="row-note"),
        tag("div", at, class_="row-at"),
        id=key,
        class_="row",
    )


def pager(href: str, query: Mapping[str, str], following: str | None) -> Html:
    """The way to the page after this one, and back to the first. `query` is what the list is filtered by."""
    filters = {key: word for key, word in query.items() if key != "before" and word}
    first = f"{href}?{urlencode(filters)}" if filters else href
    links = [
        tag("a", "« newest", href=first) if query.get("before") else None,
        tag("a", "older »", href=f"{href}?{urlencode({**filters, 'before': following})}", rel="next")
        if following
        else None,
    ]
    return tag("nav", links, class_="pager", aria_label="More of this list") if any(links) else Html("")
