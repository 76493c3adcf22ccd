"""Show a conversation as one row of a list: where it stands, with whom it is, and what it is about."""

from troth.runtime.store.list_records import ConversationItem
from troth.runtime.workflows.render.markup import Html, cut
from troth.server.pages.frame.parts import badge, moment, row
from troth.server.pages.frame.view import View

__all__ = ["agent_name", "talk_row"]


def agent_name(agent: str) -> str:
    """What an agent is called where nobody has given it a name: its class, without the modules that it lies in."""
    return agent.rpartition(".")[2] or "agent"


def talk_row(view: View, talk: ConversationItem) -> Html:
    """The row."""
    href, title = view.link("conversations", talk.id), agent_name(talk.agent)
    note = cut(talk.title or "", 200)
    return row(f"talk-{talk.id}", href, badge(talk.state), title, talk.id, note, moment(talk.changed_at))
