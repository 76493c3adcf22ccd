"""Conversations: those in which something was said last come first."""

from troth.runtime.conversations.log import Status
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import choices, empty, field, filter_form, none_so_far, pager, rows
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import ListFilter, find_conversations
from troth.server.pages.lists.talk_row import talk_row

__all__ = ["show"]

_SHOWN = 50


async def show(view: View) -> HtmlPage:
    """The page."""
    words = view.words("state", "text", "before")
    filters = ListFilter((words["state"],) if words["state"] else (), text=words["text"])
    runtime, owner = view.context.runtime, view.caller.sees
    page = await view.ask(lambda: find_conversations(runtime, filters, words["before"], _SHOWN, owner))
    form = filter_form(
        view.link("conversations"),
        "conversations",
        words,
        choices("state", "state", Status, words["state"]),
        field("text", "text", value=words["text"], hint="id, agent or words"),
    )
    body = join(
        tag("h1", "Conversations"),
        form,
        rows((talk_row(view, talk) for talk in page), "talks-rows") if page.items else _nothing(view, words, page.next),
        pager(view.link("conversations"), words, page.next),
    )
    return HtmlPage("Conversations", body, "conversations", "on=all")


def _nothing(view: View, words: dict[str, str], following: str | None) -> Html:
    if following is not None:
        return none_so_far()
    if any(words.values()):
        return empty(tag("h2", "No matching conversations"), tag("p", "Remove a word from the filter to see more."))
    agents = ", ".join(view.context.agents)
    return empty(
        tag("h2", "No conversations yet"),
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
