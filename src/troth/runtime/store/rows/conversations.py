"""Keep a row for each conversation: with whom, where it stands, and when its last run began or ended.

The log of a conversation is the truth. Its row follows from it, and is written in the same commit, so that a list of
conversations reads no logs. Nothing here begins or commits.
"""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CONVERSATIONS", "ENDED", "MESSAGE", "OPENED", "STARTED", "ConversationRows"]

CONVERSATIONS = "conversation/"
"""How the names of their streams begin."""

OPENED, MESSAGE, STARTED, ENDED = "opened", "message", "run.started", "run.ended"
_TITLE = 200  # letters of the first message that are kept to know a conversation by


class ConversationRows:
    """The rows of conversations, seen through one connection."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[..., Any]) -> None:
        self._execute = execute

    def note(self, conversation_id: str, kind: str, payload: Mapping[str, Any], now: float) -> None:
        """Follow one entry of a log. Those that change nothing that a list shows cost nothing."""
        if kind == MESSAGE:
            if payload.get("role") == "user":
                title = str(payload.get("text") or "")[:_TITLE]
                self._execute(
                    "UPDATE conversations SET title = ?, changed_at = ? WHERE id = ? AND title IS NULL",
                    (title, now, conversation_id),
                )
        elif kind == STARTED:
            self._execute(
                "UPDATE conversations SET state = 'running', run = ?, changed_at = ? WHERE id = ?",
                (str(payload.get("run")), now, conversation_id),
            )
        elif kind == ENDED:
            # A run that lost its lease comes late; the conversation has gone on without it.
            self._execute(
                "UPDATE conversations SET state = ?, run = NULL, changed_at = ? WHERE id = ? AND run = ?",
                (str(payload.get("outcome")), now, conversation_id, str(payload.get("run"))),
            )
        elif kind == OPENED:
            self._execute(
                "INSERT INTO conversations (id, agent, state, opened_at, changed_at) VALUES (?, ?, 'idle', ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                (conversation_id, str(payload.get("agent") or ""), now, now),
            )
