"""Knows how one turn of a tool-calling agent goes: ask the model, do what it asks for, tell it what came of it.

A generator that never waits: it yields what it needs and is sent the answer, so the two colors cannot drift apart.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.runtime.agents.model import Message, Reply, ToolCall

if TYPE_CHECKING:
    from troth.runtime.tools import ToolOutcome

__all__ = ["AskModel", "CallTools", "Say", "pending_calls", "turn"]


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model; the answer is a `Reply`."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Say:
    """Add a message to the talk, with what it cost."""

    message: Message
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class CallTools:
    """Call these tools, side by side; the answer has a `ToolOutcome` for each, in the same order."""

    calls: Sequence[ToolCall]


def pending_calls(talk: Sequence[Message]) -> list[ToolCall]:
    """The calls that the model asked for last and that nobody has answered: a run was cut off among them."""
    answered = {message.call_id for message in talk if message.role == "tool"}
    for message in reversed(talk):
        if message.calls:
            return [call for call in message.calls if call.id not in answered]
        if message.role == "assistant":
            return []
    return []


def turn(system: str | None, talk: Sequence[Message]) -> Generator[AskModel | Say | CallTools, Any, bool]:
    """One turn. Returns whether another one is wanted: it is as long as the model calls tools."""
    calls: Sequence[ToolCall] = pending_calls(talk)
    if not calls:
        head = [Message("system", system)] if system is not None else []
        reply: Reply = yield AskModel([*head, *talk])
        yield Say(reply.message, reply)
        calls = reply.message.calls
    if not calls:
        return False
    outcomes: Sequence[ToolOutcome] = yield CallTools(calls)
    for outcome in outcomes:
        yield Say(Message("tool", outcome.text(), call_id=outcome.call_id))
    return True
