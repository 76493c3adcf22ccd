"""Tell from the audit trail what each agent of a session did: its acts with their outcomes, and what it was refused."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from troth.runtime.store.rows.sessions import AuditRow, SessionRows

__all__ = ["LAST_ENTRIES", "Activity", "activity_of", "read_activity"]

LAST_ENTRIES = 1000
"""How many of a session's newest entries are looked at: what it costs does not grow with the trail."""

_ELSEWHERE = ("member", "session", "kill", "ask", "anchor", "event")  # told of, not done; or part of a step


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing that an agent did, or was refused. `number` is the audit entry with which it began."""

    number: int
    at: float
    kind: str
    what: str
    outcome: str
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def read_activity(rows: SessionRows, session_id: str) -> dict[str, list[Activity]]:
    """What each agent did last, in the order in which it began."""
    return activity_of(rows.newest_audit(session_id, LAST_ENTRIES))


def activity_of(entries: Iterable[AuditRow]) -> dict[str, list[Activity]]:
    """The activities that these entries tell of, by agent; an end without its beginning is one of its own."""
    by_agent: dict[str, list[Activity]] = {}
    begun: dict[tuple[str, str, str], tuple[str, int]] = {}
    for row in entries:
        data = _data(row)
        topic, _, word = row.kind.partition(".")
        if not row.agent or topic in _ELSEWHERE:
            continue
        key = (topic, str(data.get("run")), str(data.get("at")))
        if word in ("done", "failed") and key in begun:
            agent, index = begun.pop(key)  # whoever took the work over ends what another one began
            by_agent[agent][index] = replace(by_agent[agent][index], outcome=word)
            continue
        activities = by_agent.setdefault(row.agent, [])
        if word == "begun" and data.get("run"):
            begun[key] = (row.agent, len(activities))
        activities.append(_told(row, topic, word, data))
    return by_agent


def _data(row: AuditRow) -> Mapping[str, Any]:
    """What an entry says; nothing where somebody has made it unreadable, which verifying the trail tells."""
    try:
        data = json.loads(row.data)
    except ValueError:
        return {}
    return data if isinstance(data, Mapping) else {}


def _told(row: AuditRow, topic: str, word: str, data: Mapping[str, Any]) -> Activity:
    if topic == "refused":
        return Activity(row.seq, row.at, topic, str(data.get("what", "")), topic, str(data.get("why", "")))
    names = ("step", "what", "path", "snapshot", "name", "conversation")
    what = next((str(data[name]) for name in names if data.get(name)), "")
    outcome = "started" if word == "begun" else word
    return Activity(row.seq, row.at, topic, what, str(data.get("state") or outcome or "recorded"))
