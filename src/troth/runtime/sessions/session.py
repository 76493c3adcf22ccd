"""Describe a session and its members as they are at one moment."""

import json
from dataclasses import dataclass
from typing import Any

from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.sessions.state import SessionState
from troth.runtime.store.rows.sessions import MemberRow, SessionRow

__all__ = ["MemberView", "Session", "view_of"]


@dataclass(frozen=True, slots=True)
class MemberView:
    """One agent in a session: `present`, `suspended`, `left` or `killed`. `ring` counts an elevation that lasts."""

    agent: str
    state: str
    ring: Ring
    score: float
    joined_at: float
    left_at: float | None

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "agent": self.agent,
            "state": self.state,
            "ring": int(self.ring),
            "score": self.score,
            "joined_at": self.joined_at,
            "left_at": self.left_at,
        }


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it was when it was asked for. `left` names what resisted when it was to end."""

    id: str
    creator: str
    state: SessionState
    config: SessionConfig
    created_at: float
    ends_at: float
    ended_at: float | None
    reason: str | None
    left: tuple[str, ...]
    members: tuple[MemberView, ...]

    @property
    def present(self) -> tuple[str, ...]:
        """Who is in it."""
        return tuple(member.agent for member in self.members if member.state in ("present", "suspended"))

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "id": self.id,
            "creator": self.creator,
            "state": self.state.value,
            "created_at": self.created_at,
            "ends_at": self.ends_at,
            "ended_at": self.ended_at,
            "reason": self.reason,
            "left": list(self.left),
            "members": [member.to_json() for member in self.members],
        }


def view_of(row: SessionRow, members: list[MemberRow], now: float) -> Session:
    """The session that these rows tell of."""
    ending = json.loads(row.ending) if row.ending else {}
    return Session(
        row.id,
        row.creator,
        SessionState(row.state),
        SessionConfig.from_json(row.config),
        row.created_at,
        row.ends_at,
        row.ended_at,
        ending.get("reason"),
        tuple(ending.get("left", ())),
        tuple(_member(member, now) for member in members),
    )


def _member(row: MemberRow, now: float) -> MemberView:
    ring = row.ring
    if row.elevated is not None and row.elevated_until is not None and now < row.elevated_until:
        ring = min(row.elevated, ring)
    return MemberView(row.agent, row.state, Ring(ring), row.score, row.joined_at, row.left_at)
