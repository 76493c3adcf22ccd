"""Keep a row for each conversation: with whom, where it stands, and when its last run began or ended.

The log of a conversation is the truth. Its row follows from it, and is written in the same commit, so that a list of
conversations reads no logs. Nothing here begins or commits.
"""

from collections.abc import Callable, Mapping, Sequence
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
                self._execute(
                    "UPDATE conversations SET title = ?, changed_at = ? WHERE id = ? AND title IS NULL",
                    (_title(payload), now, conversation_id),
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

    def note_beginning(
        self, conversation_id: str, entries: Sequence[tuple[str, Mapping[str, Any]]], now: float
    ) -> bool:
        """`note` for the first entries of a log, all at once; false, and nothing is done, where there is a row already.

        Each change of a row costs more than the entry itself: what lists count is kept with it.
        """
        agent, title, run = "", None, None
        for kind, payload in entries:
            if kind == OPENED:
                agent = str(payload.get("agent") or "")
            elif kind == STARTED:
                run = str(payload.get("run"))
            elif kind == MESSAGE and title is None and payload.get("role") == "user":
                title = _title(payload)
        state = "idle" if run is None else "running"
        cursor = self._execute(
            "INSERT INTO conversations (id, agent, state, opened_at, changed_at, title, run) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (conversation_id, agent, state, now, now, title, run),
        )
        return bool(cursor.rowcount == 1)


def _title(message: Mapping[str, Any]) -> str:
    """The beginning of what was said. Half of a letter, and what PostgreSQL keeps in no text, are in the log alone."""
    text = str(message.get("text") or "")[:_TITLE].replace("\0", "\ufffd")
    return text.encode("utf-8", "replace").decode()
