"""Tell everything that is kept of a session as one JSON value: for `troth session show`, and for whoever shows it."""

import json
from typing import Any

from troth.runtime.sessions.activity import read_activity
from troth.runtime.sessions.kill import Kill
from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.sessions.session import Session
from troth.runtime.store import Store
from troth.runtime.store.rows.sessions import AuditRow, KillRow, SessionRows

__all__ = ["session_details"]

_MANY = 200  # texts, refusals and entries of the audit trail that are told


def session_details(store: Store, session: Session) -> dict[str, Any]:
    """The session: what each member did, limits, open acts and work, kills, refusals, texts, the last of its audit."""

    def read(rows: SessionRows) -> dict[str, Any]:
        did = read_activity(rows, session.id)
        return {
            **session.to_json(),
            "members": [
                {**member.to_json(), "did": [activity.to_json() for activity in did.get(member.agent, ())]}
                for member in session.members
            ],
            "limits": {
                "max_members": session.config.max_members,
                "max_duration": session.config.max_duration,
                "min_score": session.config.min_score,
            },
            "asks": [Ask.of(row).to_json() for row in rows.open_asks(session.id)],
            "work": [
                {"id": row.id, "agent": row.agent, "kind": row.kind, "what": row.what, "begun_at": row.begun_at}
                for row in rows.open_work(session.id)
            ],
            "kills": [_kill(row) for row in rows.kills(session.id)],
            "refused": [_entry(row) for row in rows.audit(session=session.id, kinds=["refused"], limit=_MANY)],
            "files": [
                {"path": row.path, "owner": row.owner, "written_at": row.written_at, "text": row.text}
                for row in rows.files(session.id, "/")[:_MANY]
            ],
            "audit": [_entry(row) for row in rows.newest_audit(session.id, _MANY)],
        }

    return store.read_sessions(read)


def _kill(row: KillRow) -> dict[str, Any]:
    if row.answer is not None:
        return Kill.of(row).to_json()
    lists: dict[str, list[str]] = {name: [] for name in ("stopped", "undone", "handed_over", "left")}
    return {
        "id": row.id,
        "session": row.session,
        "agent": row.agent,
        "reason": row.reason,
        "at": row.at,
        "terminated": False,
        **lists,
    }


def _entry(row: AuditRow) -> dict[str, Any]:
    return {"number": row.seq, "at": row.at, "agent": row.agent, "kind": row.kind, "data": json.loads(row.data)}
