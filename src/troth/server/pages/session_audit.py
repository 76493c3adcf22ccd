"""Show the audit of a session: its entries, the verdict, and the first entry that does not hold."""

import json

from troth.runtime.sessions.audit.verify import AuditVerdict
from troth.runtime.sessions.session import Session
from troth.runtime.store.rows.sessions import AuditRow
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.access.scopes import Scope
from troth.server.pages.frame.parts import badge, moment, panel
from troth.server.pages.frame.view import View

__all__ = ["ENTRIES", "audit_list", "entry_of"]

ENTRIES = 50
"""How many entries are on one page."""


def entry_of(view: View, number: int) -> AuditRow | None:
    """The entry of that number, whichever session it is of."""
    entries = view.context.store.read_sessions(lambda rows: rows.audit(after=number - 1, limit=1))
    return entries[0] if entries and entries[0].seq == number else None


def audit_list(
    view: View,
    session: Session,
    entries: list[AuditRow],
    after: int,
    verdict: AuditVerdict | None,
    broken: AuditRow | None,
) -> Html:
    """The entries after a number, and what a verification found; `entries` may have one more than is shown.

    `broken` is the first entry that does not hold, if it is there: it may be one of another session.
    """
    shown = entries[:ENTRIES]
    broken_at = verdict.entry if verdict is not None and verdict.is_broken else None
    items = (
        tag(
            "li",
            tag("span", row.seq, class_="soft mono"),
            tag(
                "span",
                tag("b", row.kind),
                f" {row.agent} ",
                _data(row),
                tag("b", " ✗ the first entry that does not hold", class_="failed") if row.seq == broken_at else None,
            ),
            moment(row.at),
            id=f"entry-{row.seq}",
        )
        for row in shown
    )
    links = [
        tag("a", "« first", href=view.link("sessions", session.id) + "#audit") if after else None,
        tag("a", "later »", href=f"{view.link('sessions', session.id, after=shown[-1].seq)}#audit")
        if len(entries) > ENTRIES
        else None,
    ]
    return join(
        tag("h2", "Audit", id="audit"),
        _verdict(view, session, verdict, broken),
        tag("ol", items, class_="events audit"),
        tag("nav", links, class_="pager", aria_label="More of the audit") if any(links) else None,
    )


def _data(row: AuditRow) -> Html:
    """What an entry says, word by word; as it stands where it is no object, or cannot be read any more."""
    try:
        data = json.loads(row.data)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return tag("code", cut(row.data, 300), class_="soft")
    pairs = (
        tag("span", tag("span", cut(name, 80), class_="soft"), " ", tag("code", cut(_word(entry), 300)), class_="pair")
        for name, entry in data.items()
        if entry not in (None, [], {}, "")
    )
    return join(*(piece for pair in pairs for piece in (pair, " ")))


def _word(entry: object) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)


def _where(view: View, session: Session, broken: AuditRow) -> Html:
    """The way to the first entry that does not hold, and in which session it is."""
    href = f"{view.link('sessions', broken.session, after=broken.seq - 1, verify='1')}#entry-{broken.seq}"
    whose = "this session" if broken.session == session.id else f"session {broken.session}"
    return join("See ", tag("a", f"entry {broken.seq}", href=href), f" of {whose}. What was written before it holds.")


def _verdict(view: View, session: Session, verdict: AuditVerdict | None, broken: AuditRow | None) -> Html:
    """Whether the trail holds; verifying reads all of it, so it is asked for."""
    if verdict is None:
        if not view.may(Scope.ADMIN):
            return Html("")
        return tag(
            "p", tag("a", "Verify the whole trail", href=f"{view.link('sessions', session.id, verify='1')}#audit")
        )
    anchor = {
        "valid": "Its newest entry is the one that is anchored outside of the store.",
        "broken": "",
        "consistent, head not anchored": "It is unclear whether its end was cut off.",
    }[verdict.word]
    return panel(
        badge(verdict.word),
        None if verdict.is_broken else f" {verdict.entries:,} {'entry' if verdict.entries == 1 else 'entries'}",
        tag("p", verdict.problem, class_="message") if verdict.problem else None,
        tag("p", anchor) if anchor else None,
        tag("p", _where(view, session, broken)) if broken is not None else None,
        kind="good" if verdict.is_valid else "failed" if verdict.is_broken else "",
    )
