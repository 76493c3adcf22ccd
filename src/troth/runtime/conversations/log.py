"""What is written in a conversation's log, and what state a log tells of.

The log is the conversation: everything else is read off it. A run is open from its `run.started` to its `run.ended`;
whoever finds an open run that nobody living holds knows that it was cut off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from troth.runtime.agents.model import Message
from troth.runtime.store import DamagedStoreError, Event

__all__ = ["State", "Status", "fold", "message_of", "stream_of"]

OPENED = "opened"
MESSAGE = "message"
TOKENS = "tokens"
STARTED = "run.started"
STEPPED = "step.done"
ENDED = "run.ended"
ASKED = "asked"
ATTEMPTED = "tool.attempt"
CALLBACK_FAILED = "callback.failed"


class Status(StrEnum):
    """Where a conversation stands.

    IDLE         nothing has run yet
    RUNNING      a run is under way, here or in another process
    FINISHED     the last run has said all it had to say
    PAUSED       the last run stopped at a step's end because it was asked to
    INTERRUPTED  the last run was stopped, or its process died; `run` goes on
    CANCELLED    whoever waited for the last run cancelled it
    FAILED       the last run raised
    """

    IDLE = "idle"
    RUNNING = "running"
    FINISHED = "finished"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class State:
    """What the log tells so far. `cursor` is the number of the last entry that was read."""

    cursor: int = 0
    open_run: str | None = None
    outcome: Status = Status.IDLE
    error: dict[str, Any] | None = None
    last_message: int = 0
    """The number of the last message that somebody sent to the agent."""
    answered: int = 0
    """Up to which entry a run has taken notice of what was sent."""
    pause_asked: bool = False
    interrupt_asked: bool = False

    @property
    def has_news(self) -> bool:
        """Whether there is a message that no run has taken notice of."""
        return self.last_message > self.answered

    @property
    def is_finished(self) -> bool:
        """Whether the last run came to its own end, and nothing was sent since."""
        return self.open_run is None and self.outcome is Status.FINISHED and not self.has_news


def stream_of(conversation_id: str) -> str:
    """The stream that is the conversation's log."""
    return f"conversation/{conversation_id}"


def fold(state: State, events: Sequence[Event]) -> State:
    """The state after `events`."""
    for event in events:
        try:
            state = _next(state, event)
        except _NOT_AS_WRITTEN as cause:
            raise _damaged(event) from cause
    return replace(state, cursor=events[-1].seq) if events else state


def message_of(event: Event) -> Message:
    """The message that an entry of that kind holds."""
    try:
        message = Message.from_json(event.payload)
    except _NOT_AS_WRITTEN as cause:
        raise _damaged(event) from cause
    if not isinstance(message.text, str):
        raise _damaged(event)
    return message


_NOT_AS_WRITTEN = (KeyError, TypeError, ValueError, AttributeError)  # what an entry of another shape ends in


def _damaged(event: Event) -> DamagedStoreError:
    entry = f"entry {event.seq} of stream {event.stream!r}"
    return DamagedStoreError(entry, f"it does not say what an entry {event.kind!r} says")


def _next(state: State, event: Event) -> State:
    match event.kind:
        case "message" if event.payload["role"] in ("user", "system"):
            return replace(state, last_message=event.seq)
        case "run.started":
            return replace(state, open_run=event.payload["run"], pause_asked=False, interrupt_asked=False, error=None)
        case "step.done":
            return replace(state, answered=max(state.answered, event.payload["seen"]))
        case "run.ended":
            if event.payload["run"] != state.open_run:
                return state  # a run that lost its lease comes late; the log has gone on without it
            outcome = Status(event.payload["outcome"])
            return replace(state, open_run=None, outcome=outcome, error=event.payload.get("error"))
        case "asked":
            if event.payload["what"] == "pause":
                return replace(state, pause_asked=True)
            return replace(state, interrupt_asked=True)
        case _:
            return state
