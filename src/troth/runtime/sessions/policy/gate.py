"""Judge whether a member may do something now: inside the commit that does it, on what that commit sees."""

import math
from typing import NamedTuple

from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.errors import RefusedError
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.sessions.state import SessionState
from troth.runtime.store import Transaction
from troth.runtime.store.rows.sessions import StandingRow

__all__ = ["GateRefusal", "check_standing", "current_ring", "judge"]

_ACTIVE = SessionState.ACTIVE.value
_MEMBER = {
    None: "is not in the session",
    "left": "has left the session",
    "killed": "was killed, and membership is revoked; `readmit` lets it join again",
    "suspended": "is suspended for attempts beyond its ring; `readmit` ends the suspension",
}


class GateRefusal(NamedTuple):
    """A rule that says no, and why."""

    rule: str
    message: str

    def error(self) -> RefusedError:
        """The same to be raised."""
        return RefusedError(self.rule, self.message)


def current_ring(row: StandingRow, now: float) -> Ring:
    """The ring a member has now, elevated or not."""
    if row.elevated is not None and row.elevated_until is not None and now < row.elevated_until:
        return Ring(min(row.elevated, row.ring))
    return Ring(row.ring)


def check_standing(row: StandingRow | None, session: str, agent: str, what: str, now: float) -> GateRefusal | None:
    """Nothing if the session goes on and the agent is a member of it."""
    if row is not None and row.state == "present" and row.session_state == _ACTIVE and now < row.ends_at:
        return None
    if row is None:
        return GateRefusal("session", f"{what} was refused: there is no session {session!r}. Nothing was done.")
    about = _about(session, agent, what)
    if row.session_state != _ACTIVE:
        return GateRefusal("state", f"{about}: the session is {row.session_state}. Nothing was done.")
    if now >= row.ends_at:
        return GateRefusal("duration", f"{about}: the session's time is over. Nothing was done.")
    return GateRefusal("membership", f"{about}: the agent {_MEMBER[row.state]}. Nothing was done.")


def _about(session: str, agent: str, what: str) -> str:
    return f"{what} of {agent!r} in session {session!r} was refused"


def judge(
    tx: Transaction,
    session: str,
    agent: str,
    what: str,
    needed: Ring,
    config: SessionConfig,
    rings: dict[tuple[str, str], int],
    now: float,
) -> GateRefusal | int:
    """The member's ring if it may; otherwise which rule says no. Uses up its rate, and counts what goes too far.

    `rings` remembers the ring of each member, to be tried first; what counts is what the commit sees.
    """
    rows = tx.sessions
    expected = rings.get((session, agent))
    if expected is not None and expected <= needed:
        limits = config.rates.get(expected)  # type: ignore[call-overload]  # a ring is its number
        if limits is not None and rows.use_token(session, agent, expected, limits[0], limits[1], now):
            return expected
    row = rows.standing(session, agent)
    refusal = check_standing(row, session, agent, what, now)
    if refusal is not None:
        return refusal
    assert row is not None  # else it would have been refused
    ring = row.ring if row.elevated is None else current_ring(row, now)
    if ring > needed:
        return _beyond(tx, session, agent, row, config, now, _about(session, agent, what), Ring(ring), needed)
    rate = config.rates.get(ring)  # type: ignore[call-overload]  # a ring is its number
    if rate is None:
        return ring
    per_second, at_once = rate
    tokens = at_once
    if row.tokens is not None:
        tokens = min(at_once, row.tokens + max(0.0, now - row.tokens_at) * per_second)
    if tokens < 1.0:
        about = _about(session, agent, what)
        return GateRefusal(
            "rate",
            f"{about}: ring {int(ring)} may act {per_second:g} times a second. Nothing was done; try again later.",
        )
    rows.set_tokens(session, agent, tokens - 1.0, now)
    if row.elevated is None:
        rings[session, agent] = ring
    return ring


def _beyond(
    tx: Transaction,
    session: str,
    agent: str,
    row: StandingRow,
    config: SessionConfig,
    now: float,
    about: str,
    ring: Ring,
    needed: Ring,
) -> GateRefusal:
    fade = max(0.0, now - row.breach_at) / config.breach_window * config.breach_limit
    breach = max(0.0, row.breach - fade) + (ring - needed)
    tx.sessions.set_breach(session, agent, breach, now)
    message = f"{about}: it needs ring {int(needed)}, and the agent is in ring {int(ring)}. Nothing was done."
    if math.ceil(breach) >= config.breach_limit:  # what fades between two attempts is no attempt less
        tx.sessions.set_member_state(session, agent, "suspended")
        return GateRefusal("breach", f"{message} It is suspended, because it tried this too often.")
    return GateRefusal("ring", message)
