"""Show who is in a session: ring, score, how much of its rate each has used, and the way to kill it."""

import time

from troth.runtime.sessions.session import MemberView, Session
from troth.runtime.sessions.state import ALLOWED
from troth.runtime.store.rows.sessions import MemberRow
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.access.scopes import Scope
from troth.server.pages.frame.parts import address, badge, field, moment
from troth.server.pages.frame.view import View

__all__ = ["members_table"]


def members_table(view: View, session: Session, rows: dict[str, MemberRow]) -> Html:
    """A row for each member."""
    if not session.members:
        return tag("p", "No agent has joined yet.", class_="soft")
    heads = ("agent", "state", "ring", "score", "rate", "since", "")
    can_kill = session.state in ALLOWED["kill"]
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", (tag("th", head, scope="col") if head else tag("td") for head in heads))),
            tag("tbody", (_member(view, session, member, rows, can_kill=can_kill) for member in session.members)),
            class_="members",
        ),
        class_="scroll",
    )


def _member(view: View, session: Session, member: MemberView, rows: dict[str, MemberRow], *, can_kill: bool) -> Html:
    kill: Html | None = None
    if can_kill and member.state != "killed":
        substitutes = [name for name in session.present if name != member.agent]
        key = f"kill-{member.agent}-"
        substitute = tag(
            "label",
            tag("span", "who takes over"),
            tag(
                "select",
                tag("option", "nobody", value=""),
                (tag("option", name) for name in substitutes),
                name="substitute",
            ),
            class_="field",
        )
        form = view.button(
            address("sessions", session.id),
            f"Kill {cut(member.agent, 40)}",
            scope=Scope.KILL,
            fields={"do": "kill", "agent": member.agent},
            inputs=[field("reason", "why", required=True, key=key), substitute if substitutes else Html("")],
            kind="danger",
        )
        kill = tag("details", tag("summary", "Kill …", class_="danger"), form) if form else None
    return tag(
        "tr",
        tag("td", tag("b", cut(member.agent, 80))),
        tag("td", badge(member.state)),
        tag("td", f"{int(member.ring)} {member.ring.name.lower()}"),
        tag("td", f"{member.score:g}"),
        tag("td", _rate(session, member, rows.get(member.agent))),
        tag("td", moment(member.joined_at)),
        tag("td", kill),
    )


def _rate(session: Session, member: MemberView, row: MemberRow | None) -> Html | str:
    """How much of its rate an agent has used."""
    rate = session.config.rates.get(member.ring)
    if rate is None or row is None:
        return "no limit"
    per_second, at_once = rate
    unused = (
        at_once if row.tokens is None else min(at_once, row.tokens + max(0.0, time.time() - row.tokens_at) * per_second)
    )
    label = f"{at_once - unused:.0f} of {at_once:g} acts used; {per_second:g} come back each second"
    meter = tag("meter", label, min="0", max=f"{at_once:g}", value=f"{at_once - unused:.1f}", aria_label=label)
    return join(meter, " ", tag("span", label, class_="soft"))
