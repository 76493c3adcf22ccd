"""Sessions: the governed places in which agents act."""

from troth.runtime.sessions.state import SessionState
from troth.runtime.store.list_records import SessionItem
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import (
    badge,
    choices,
    empty,
    field,
    filter_form,
    moment,
    none_so_far,
    pager,
    row,
    rows,
)
from troth.server.pages.frame.view import View
from troth.server.pages.lists.queries import ListFilter, find_sessions

__all__ = ["show"]

_SHOWN = 50


async def show(view: View) -> HtmlPage:
    """The page."""
    words = view.words("state", "text", "before")
    if words["state"] and words["state"] not in set(SessionState):
        raise ApiError(400, "invalid_field", f"There is no state {words['state']!r} of a session.", param="state")
    runtime, owner = view.context.runtime, view.caller.sees
    filters = ListFilter((words["state"],) if words["state"] else (), text=words["text"])
    page = await view.ask(lambda: find_sessions(runtime, filters, words["before"], _SHOWN, owner))
    form = filter_form(
        view.link("sessions"),
        "sessions",
        words,
        choices("state", "state", SessionState, words["state"]),
        field("text", "text", value=words["text"], hint="id or creator"),
    )
    body = join(
        tag("h1", "Sessions"),
        form,
        rows((_row(view, session) for session in page), "sessions-rows") if page.items else _nothing(words, page.next),
        pager(view.link("sessions"), words, page.next),
    )
    return HtmlPage("Sessions", body, "sessions", "on=all")


def _row(view: View, session: SessionItem) -> Html:
    href = view.link("sessions", session.id)
    present = f"{session.present} present" if session.present else "no members present"
    note = f"{present}, by {cut(session.creator, 80)}"
    return row(f"session-{session.id}", href, badge(session.state), session.id, "", note, moment(session.created_at))


def _nothing(words: dict[str, str], following: str | None) -> Html:
    if following is not None:
        return none_so_far()
    if any(words.values()):
        return empty(tag("h2", "No matching sessions"), tag("p", "Remove a word from the filter to see more."))
    return empty(
        tag("h2", "There are no sessions yet"),
        tag(
            "p",
            "A session is a governed place where agents act, with limits, an audit trail, and a kill that works.",
        ),
        tag(
            "p",
            "Make one with ",
            tag("code", "runtime.hypervisor.create(…)"),
            " or ",
            tag("code", "POST /v1/sessions"),
            ".",
        ),
    )
