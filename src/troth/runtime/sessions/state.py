"""Tell in which states a session can be, and what can be done in each."""

from collections.abc import Mapping
from enum import StrEnum

from troth.runtime.sessions.errors import SessionStateError

__all__ = ["ALLOWED", "SessionState", "check_state"]


class SessionState(StrEnum):
    """Where a session stands.

    CREATED      nobody has joined yet
    HANDSHAKING  agents join; nobody acts
    ACTIVE       members act
    TERMINATING  nobody acts any more; what is open is cancelled and undone
    ARCHIVED     over; it can be read
    """

    CREATED = "created"
    HANDSHAKING = "handshaking"
    ACTIVE = "active"
    TERMINATING = "terminating"
    ARCHIVED = "archived"


_OPEN = frozenset({SessionState.CREATED, SessionState.HANDSHAKING, SessionState.ACTIVE})

ALLOWED: Mapping[str, frozenset[SessionState]] = {
    "join": _OPEN,
    "activate": frozenset({SessionState.HANDSHAKING}),
    "act": frozenset({SessionState.ACTIVE}),
    "leave": _OPEN | {SessionState.TERMINATING},
    "elevate": frozenset({SessionState.HANDSHAKING, SessionState.ACTIVE}),
    "kill": _OPEN | {SessionState.TERMINATING},
    "readmit": _OPEN,
    "terminate": _OPEN | {SessionState.TERMINATING},
}
"""In which states each operation is done."""


def check_state(session_id: str, operation: str, state: str) -> None:
    """Refuse an operation in a state in which it is not done, and say what could be done instead."""
    now = SessionState(state)
    if now in ALLOWED[operation]:
        return
    instead = [name for name, states in ALLOWED.items() if now in states]
    needed = ", ".join(one.value for one in SessionState if one in ALLOWED[operation])
    advice = f"In this state you can {', '.join(instead)}." if instead else "The session is over, and can only be read."
    raise SessionStateError(
        f"The session {session_id!r} is {now.value}, and `{operation}` is possible only in the states {needed}.\n"
        f"Nothing was changed. {advice}"
    )
