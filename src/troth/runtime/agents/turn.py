"""Knows how one turn of a tool-calling agent goes: ask the model, do what it asks for, tell it what came of it.

A generator that never waits: it yields what it needs and is sent the answer, so the two colors cannot drift apart.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.errors import MisuseError
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
    answered: list[str | None] = []
    for message in reversed(talk):
        if message.role == "tool":
            answered.append(message.call_id)  # since then: some models begin to count anew with each answer
        if message.calls:
            return _without(message.calls, answered)
        if message.role == "assistant":
            return []
    return []


def _without(calls: Sequence[ToolCall], answered: list[str | None]) -> list[ToolCall]:
    """Those that have no answer; of two with one id, each needs one of its own."""
    left = []
    for call in calls:
        if call.id in answered:
            answered.remove(call.id)
        else:
            left.append(call)
    return left


def _check_reply(reply: object) -> None:
    if not isinstance(reply, Reply):
        raise MisuseError(
            f"The model answered with {reply!r} of type `{type(reply).__name__}`, and not with a `Reply`.\n"
            "Nothing of it was used.\nReturn `Reply(Message('assistant', text))` from `reply` and `areply`."
        )


def turn(system: str | None, talk: Sequence[Message]) -> Generator[AskModel | Say | CallTools, Any, bool]:
    """One turn. Returns whether another one is wanted: it is as long as the model calls tools."""
    calls: Sequence[ToolCall] = pending_calls(talk)
    if not calls:
        head = [Message("system", system)] if system is not None else []
        reply: Reply = yield AskModel([*head, *talk])
        _check_reply(reply)
        yield Say(reply.message, reply)
        calls = reply.message.calls
    if not calls:
        return False
    outcomes: Sequence[ToolOutcome] = yield CallTools(calls)
    for outcome in outcomes:
        yield Say(Message("tool", outcome.text(), call_id=outcome.call_id))
    return True
