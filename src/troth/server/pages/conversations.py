"""Conversations: those in which something was said last come first."""

from troth.runtime.conversations.log import Status
from troth.runtime.store.list_records import ConversationItem
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.pages.frame.layout import Page
from troth.server.pages.frame.parts import badge, choices, empty, field, moment, pager, row, rows
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import ListFilter, find_conversations

__all__ = ["show"]

_SHOWN = 50


async def show(view: View) -> Page:
    """The page."""
    words = view.words("state", "text", "before")
    filters = ListFilter((words["state"],) if words["state"] else (), text=words["text"])
    runtime, owner = view.context.runtime, view.caller.sees
    page = await view.ask(lambda: find_conversations(runtime, filters, words["before"], _SHOWN, owner))
    form = tag(
        "form",
        choices("state", "state", Status, words["state"]),
        field("text", "text", value=words["text"], hint="id, agent or words"),
        tag("button", "Filter"),
        method="get",
        action=view.link("conversations"),
        class_="filters",
        role="search",
        aria_label="Filter the conversations",
    )
    body = join(
        tag("h1", "Conversations"),
        form,
        rows((_row(view, talk) for talk in page), "talks-rows") if page.items else _nothing(view, words),
        pager(view.link("conversations"), words, page.next),
    )
    return Page("Conversations", body, "conversations", "on=all")


def _row(view: View, talk: ConversationItem) -> Html:
    href, title = view.link("conversations", talk.id), talk.agent or "agent"
    note = cut(talk.title or "", 200)
    return row(f"talk-{talk.id}", href, badge(talk.state), title, talk.id, note, moment(talk.changed_at))


def _nothing(view: View, words: dict[str, str]) -> Html:
    if any(words.values()):
        return empty(tag("h2", "No conversation is like that"), tag("p", "Take a word out of the filter to see more."))
    agents = ", ".join(view.context.agents)
    return empty(
        tag("h2", "Nobody has talked with an agent yet"),
        tag("p", "This server has the agents ", tag("b", agents), ".")
        if agents
        else tag("p", "This server has no agents."),
        tag(
            "p",
            "Open a conversation with ",
            tag("code", "POST /v1/conversations"),
            " or ",
            tag("code", "troth chat"),
            ".",
        ),
    )
