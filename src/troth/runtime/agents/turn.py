"""How one turn of a tool-calling agent goes: ask the model, do what it asks for, tell it what came of it.

A generator that never waits: it yields what it needs and is sent the answer, so the two colors cannot drift apart.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from troth.errors import MisuseError
from troth.runtime.agents.history import History, calls_of
from troth.runtime.agents.model import Message, Reply
from troth.runtime.tools.call import PendingCall

__all__ = ["AskModel", "CallTools", "Say", "turn"]


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model; the answer is a `Reply`."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Say:
    """Add what the model replied to the talk, with what it cost; the answer is its number in the log."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class CallTools:
    """Call these tools, side by side, and add the answer of each to the talk as it comes."""

    calls: Sequence[PendingCall]


def _check_reply(reply: object) -> None:
    if not isinstance(reply, Reply):
        raise MisuseError(
            f"The model answered with {reply!r} of type `{type(reply).__name__}`, and not with a `Reply`.\n"
            "The answer was not used.\nReturn `Reply(Message('assistant', text))` from `reply` and `areply`."
        )


def turn(
    system: str | None, history: History, conversation_id: str
) -> Generator[AskModel | Say | CallTools, Any, bool]:
    """One turn. Returns whether another one is wanted: it is as long as the model calls tools."""
    calls = history.pending
    if not calls:
        head = [Message("system", system)] if system is not None else []
        reply: Reply = yield AskModel([*head, *history.messages])
        _check_reply(reply)
        seq: int = yield Say(reply)
        calls = calls_of(conversation_id, seq, reply.message.calls)
    if not calls:
        return False
    yield CallTools(calls)
    return True
