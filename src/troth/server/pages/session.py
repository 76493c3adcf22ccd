"""A session: its members, what each may do and did, what was refused; the workspace, the kills and the audit."""

import json
from dataclasses import dataclass

from troth.runtime.sessions.activity import Activity, read_activity
from troth.runtime.sessions.kill import Kill
from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.sessions.session import Session
from troth.runtime.store.rows.sessions import AuditRow, FileRow, KillRow, MemberRow, SessionRows, WorkRow
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag, text_box
from troth.server.access.scopes import Scope, check_scope
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import address, badge, fact, facts, field, moment, panel, times
from troth.server.pages.frame.view import View
from troth.server.pages.session_activity import activity_lists, below, refusals
from troth.server.pages.session_audit import ENTRIES, audit_list, entry_of
from troth.server.pages.session_members import members_table
from troth.server.routes.sessions import seen_session

__all__ = ["act", "show"]

_FILES = 200


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the store has of a session."""

    members: dict[str, MemberRow]
    did: dict[str, list[Activity]]
    work: list[WorkRow]
    kills: list[KillRow]
    files: list[FileRow]
    entries: list[AuditRow]
    changes: list[AuditRow]


async def show(view: View) -> HtmlPage:
    """The page."""
    hypervisor, session = await seen_session(view.context, view.caller, view.id)
    after = view.number("after")
    contents = await view.ask(lambda: view.context.store.read_sessions(lambda rows: _read(rows, session.id, after)))
    asks = await view.ask(lambda: hypervisor.asks(session.id))
    verdict, broken = None, None
    if view.word("verify") and view.may(Scope.ADMIN):
        verdict = await view.ask(hypervisor.verify_audit)
        number = verdict.entry if verdict.is_broken else None
        broken = None if number is None else await view.ask(lambda: entry_of(view, number))
    body = join(
        tag(
            "div",
            tag("h1", "Session"),
            badge(session.state),
            tag("code", session.id, class_="id", data_copy="id"),
            class_="title",
        ),
        (_ask(view, ask) for ask in asks),
        _ending(session),
        [_kill(kill) for kill in contents.kills],
        _about(view, session),
        tag("h2", "Members"),
        members_table(view, session, contents.members),
        _work(view, contents.work, {ask.id for ask in asks}),
        refusals(view, session, contents.did),
        activity_lists(view, session, contents.did),
        _workspace(session.id, contents),
        audit_list(view, session, contents.entries, after, verdict, broken),
    )
    return HtmlPage(
        f"{session.state}: session {session.id}", body, "sessions", address(on="session", id=session.id)[1:]
    )


def _read(rows: SessionRows, session_id: str, after: int) -> _Rows:
    changes = (
        "workspace.written",
        "workspace.deleted",
        "workspace.permitted",
        "workspace.snapshot",
        "workspace.restored",
    )
    return _Rows(
        {member.agent: member for member in rows.members(session_id)},
        read_activity(rows, session_id),
        rows.open_work(session_id),
        rows.kills(session_id),
        rows.files(session_id, "/")[:_FILES],
        rows.audit(session=session_id, after=after, limit=ENTRIES + 1),
        rows.audit(session=session_id, kinds=changes, limit=ENTRIES),
    )


def _ask(view: View, ask: Ask) -> Html:
    path = address("sessions", ask.session)
    fields = {"token": view.visitor.token(), "do": "answer", "ask": ask.id, "digest": ask.digest}
    form = tag(
        "form",
        (tag("input", type="hidden", name=name, value=value) for name, value in fields.items()),
        field("by", "your name", value=view.caller.owner, required=True, key=f"by-{ask.id}-"),
        field("reason", "why", key=f"why-{ask.id}-"),
        tag("button", "Allow", name="answer", value="yes", class_="primary"),
        tag("button", "Refuse", name="answer", value="no", class_="danger"),
        method="post",
        action=view.root + path,
        class_="answer",
    )
    yes = sum(1 for _, is_yes, _ in ask.answers if is_yes)
    return panel(
        tag("b", f"{ask.agent} wants to do {ask.what}"),
        tag("p", cut(ask.reason, 1000)) if ask.reason else None,
        text_box(shown_json(ask.arguments), 4000, "value"),
        tag("p", f"{yes} of {ask.people} approved; it expires ", moment(ask.expires_at), class_="soft"),
        form if view.may(Scope.ACT) else None,
        kind="next question",
    )


def _ending(session: Session) -> Html:
    if not session.reason and not session.left:
        return Html("")
    return panel(
        tag("b", f"{session.state}: ", cut(session.reason or "", 1000)),
        [tag("p", f"resists: {cut(reason, 500)}") for reason in session.left],
        kind="failed" if session.left else "",
    )


def _kill(row: KillRow) -> Html:
    """What came of a kill, in its own words."""
    if row.answer is None:
        return panel(
            tag("b", f"{row.agent} is being killed"),
            f", reason: {cut(row.reason, 1000)} · ",
            moment(row.at),
            kind="next",
        )
    kill = Kill.of(row)
    word = "is terminated" if kill.terminated else "is NOT terminated; its membership is revoked"
    lists = [
        fact(name.replace("_", " "), tag("ul", (tag("li", cut(entry, 500)) for entry in getattr(kill, name))))
        for name in ("stopped", "undone", "handed_over", "left")
        if getattr(kill, name)
    ]
    return panel(
        tag("b", f"{'✓' if kill.terminated else '✗'} {kill.agent} {word}"),
        tag("p", f"reason: {cut(kill.reason, 1000)} · ", moment(kill.at)),
        facts(*lists) if lists else None,
        kind="good" if kill.terminated else "failed",
    )


def _about(view: View, session: Session) -> Html:
    config = session.config
    sandbox = f"below a score of {config.min_score:g} an agent is in the sandbox"
    limits = f"{len(session.present)} of {config.max_members} members; {sandbox}"
    runs = tag("a", "the runs that it carries out", href=view.link("runs", session=session.id))
    return facts(
        fact("created", moment(session.created_at), f" by {session.creator}"),
        fact("ended", moment(session.ended_at)) if session.ended_at else fact("ends", moment(session.ends_at)),
        fact("limits", limits),
        fact("runs", runs),
        fact("commands", ", ".join(config.commands)) if config.commands is not None else None,
        fact("folders", ", ".join(config.paths)) if config.paths is not None else None,
    )


_ROOMS = {"run": "runs", "conversation": "conversations", "job": "jobs"}
"""Where each kind of work has a page; an act has none."""


def _linked(view: View, row: WorkRow) -> Html:
    what = cut(row.what, 120)
    return tag("a", what, href=view.link(_ROOMS[row.kind], row.id)) if row.kind in _ROOMS else tag("span", what)


def _work(view: View, work: list[WorkRow], asked: set[str]) -> Html:
    """What is under way. An act that waits for a yes does not work."""
    if not work:
        return Html("")
    items = (
        tag(
            "li",
            tag("span", "◷", class_="waiting") if row.id in asked else tag("span", "▶", class_="running"),
            tag(
                "span",
                tag("b", row.agent),
                f" {row.kind} ",
                _linked(view, row),
                " waits for approval" if row.id in asked else None,
            ),
            moment(row.begun_at),
        )
        for row in work
    )
    return join(tag("h2", "At work"), tag("ul", items, class_="events"))


def _workspace(session_id: str, contents: _Rows) -> Html:
    if not contents.files and not contents.changes:
        return Html("")
    files = (
        tag(
            "tr",
            tag(
                "td",
                tag(
                    "details",
                    tag("summary", tag("code", cut(below(session_id, row.path), 200))),
                    tag("pre", cut(row.text, 4000)),
                ),
            ),
            tag("td", row.owner),
            tag("td", moment(row.written_at)),
        )
        for row in contents.files
    )
    history = (
        tag(
            "li",
            tag("b", row.agent),
            f" {row.kind.removeprefix('workspace.')} {cut(below(session_id, _path(row)), 200)} ",
            moment(row.at),
        )
        for row in contents.changes
    )
    return join(
        tag("h2", "Workspace"),
        tag("div", tag("table", tag("tbody", files)), class_="scroll") if contents.files else None,
        tag("details", tag("summary", f"history: {times(len(contents.changes), 'change')}"), tag("ul", history))
        if contents.changes
        else None,
    )


def _path(row: AuditRow) -> str:
    data = json.loads(row.data)
    return str(data.get("path") or data.get("snapshot") or "") if isinstance(data, dict) else ""


async def act(view: View, form: dict[str, str]) -> str:
    """Kill an agent, or answer an act that waits."""
    hypervisor, session = await seen_session(view.context, view.caller, view.id)
    match form.get("do"):
        case "kill":
            check_scope(view.caller, Scope.KILL)
            reason = form.get("reason", "").strip()
            if not reason:
                raise ApiError(400, "invalid_field", "Give a reason: it is part of the audit trail.", param="reason")
            agent, substitute = form.get("agent", ""), form.get("substitute") or None
            await view.ask(lambda: hypervisor.kill(session.id, agent, reason=reason, substitute=substitute))
        case "answer":
            check_scope(view.caller, Scope.ACT)
            by = form.get("by", "").strip() or view.caller.owner
            ask_id, is_yes, digest = form.get("ask", ""), form.get("answer") == "yes", form.get("digest") or None
            reason = form.get("reason", "").strip()
            if ask_id not in {ask.id for ask in await view.ask(lambda: hypervisor.asks(session.id))}:
                raise ApiError(409, "not_asked", "Nothing in this session waits for that answer.")
            await view.ask(lambda: hypervisor.answer(ask_id, by=by, yes=is_yes, reason=reason, digest=digest))
        case _:
            raise ApiError(400, "invalid_request", "This button is not supported, so nothing was done.")
    return address("sessions", session.id)
