"""Fold the log of a conversation into the history that a model is told.

A log has its entries in the order in which they happened. A model has to be told them in the order in which it could
know of them: chat APIs refuse a history in which anything stands between a call and its answer, and a question that
stands before an answer looks answered. So the answers of tools stand right behind the calls they belong to, in the
order of the calls, and what was sent while the agent was at work stands behind what the agent said without knowing of
it. What a model was told never moves: each request begins with the one before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troth.runtime.agents.budget import Spent
from troth.runtime.agents.model import Message, ToolCall, Usage
from troth.runtime.store import DamagedStoreError, Event
from troth.runtime.tools.call import PendingCall, ToolOutcome

__all__ = ["NOTHING_SAID", "History", "HistoryFold", "calls_of"]


@dataclass(frozen=True, slots=True)
class History:
    """A conversation as a model is told of it, up to one entry of its log."""

    messages: Sequence[Message]
    """What a strict chat API accepts, once the pending calls are answered."""
    pending: Sequence[PendingCall]
    """The calls that the model asked for last and that have no answer yet: a run was cut off among them."""
    spent: Spent


NOTHING_SAID = History((), (), Spent())


def calls_of(conversation_id: str, seq: int, calls: Sequence[ToolCall]) -> list[PendingCall]:
    """The calls that entry `seq` of a log asks for, in their first attempt. Their keys stay the same in every other."""
    return [
        PendingCall(call.id, call.name, call.arguments, conversation_id, seq, index) for index, call in enumerate(calls)
    ]


@dataclass(slots=True)
class _AskedFor:
    """A call that a message of the agent asks for, and what came of it."""

    call: PendingCall
    attempts: int = 1
    """How many may have begun. The message that asks for the call is written before the first."""
    is_interrupted: bool = False
    answer: Message | None = None


@dataclass(slots=True)
class _Row:
    """One message in its place, with the answers that stand behind it."""

    message: Message
    seq: int
    is_sent: bool = False
    """Somebody else sent it: it may still move behind what the agent says without knowing of it."""
    calls: list[_AskedFor] = field(default_factory=list)


class HistoryFold:
    """The history of one conversation as its log grows. Not for several threads at once."""

    __slots__ = ("_conversation_id", "_is_interrupted", "_last_said", "_rows", "_spent", "_waiting", "cursor")

    def __init__(self, conversation_id: str) -> None:
        self._conversation_id = conversation_id
        self._rows: list[_Row] = []
        self._last_said: _Row | None = None
        self._waiting: list[_AskedFor] = []  # every call without an answer
        self._is_interrupted = False
        self._spent = Spent()
        self.cursor = 0  # the number of the last entry that was taken in

    def take(self, events: Iterable[Event]) -> None:
        """Take in the next entries of the log."""
        for event in events:
            self.cursor = event.seq
            try:
                self._take(event)
            except (AttributeError, KeyError, TypeError, ValueError) as cause:  # the store wrote it, in another shape
                entry = f"entry {event.seq} of stream {event.stream!r}"
                raise DamagedStoreError(entry, f"it does not say what an entry {event.kind!r} says") from cause

    def _take(self, event: Event) -> None:
        match event.kind:
            case "message":
                self._take_message(event.seq, event.payload)
            case "tool.attempt":
                for waiting_call in self._waiting:
                    if waiting_call.call.key == event.payload["key"]:
                        waiting_call.attempts = event.payload["attempt"]
            case "run.started":
                self._is_interrupted = False
            case "asked" if event.payload["what"] == "interrupt":
                self._is_interrupted = True
                for waiting_call in self._waiting:
                    waiting_call.is_interrupted = True
            case "agent.usage":
                self._count(event)

    def messages(self) -> list[Message]:
        """Every message of the log, in the order in which a model is told of it."""
        talk: list[Message] = []
        for row in self._rows:
            talk.append(row.message)
            talk.extend(tool_call.answer for tool_call in row.calls if tool_call.answer is not None)
        return talk

    def history(self) -> History:
        """What a model is told, and what has to be done before it is asked."""
        last = self._last_said
        pending = [
            replace(tool_call.call, attempt=tool_call.attempts + 1, is_interrupted=tool_call.is_interrupted)
            for tool_call in (last.calls if last is not None else ())
            if tool_call.answer is None
        ]
        messages: list[Message] = []
        for row in self._rows:
            if row.message.role == "tool":
                continue  # a second answer to a call, or one to no call at all: chat APIs refuse it
            messages.append(row.message)
            for tool_call in row.calls:
                if tool_call.answer is not None:
                    messages.append(tool_call.answer)
                elif row is not last:  # the agent went on without it, and chat APIs refuse a call without an answer
                    messages.append(_answer(tool_call.call, "no answer was recorded"))
        return History(messages, pending, self._spent)

    def _take_message(self, seq: int, payload: Mapping[str, Any]) -> None:
        message = Message.from_json(payload)
        if message.role == "tool":
            self._take_answer(seq, message, payload.get("key"))
            return
        row = _Row(message, seq)
        last_seen: int | None = payload.get("seen")
        if message.role != "assistant" and last_seen is None:
            row.is_sent = True
            self._rows.append(row)
            return
        self._rows.insert(len(self._rows) if last_seen is None else self._place_after(last_seen), row)
        if message.role == "assistant":
            self._last_said = row
            if message.calls:
                calls = calls_of(self._conversation_id, seq, message.calls)
                row.calls = [_AskedFor(call, is_interrupted=self._is_interrupted) for call in calls]
                self._waiting = [*row.calls, *self._waiting]  # an id belongs to the newest call that has it

    def _place_after(self, last_seen: int) -> int:
        """Where the words of an agent stand that knew of entry `last_seen`, and of nothing sent later."""
        at = len(self._rows)
        while at and self._rows[at - 1].is_sent and self._rows[at - 1].seq > last_seen:
            at -= 1
        return at

    def _take_answer(self, seq: int, message: Message, key: str | None) -> None:
        for index, waiting_call in enumerate(self._waiting):
            # Some models give two calls one id; the key tells those apart, where the log has it.
            if waiting_call.call.key == key if key is not None else waiting_call.call.id == message.call_id:
                waiting_call.answer = message
                del self._waiting[index]
                return
        self._rows.append(_Row(message, seq))

    def _count(self, event: Event) -> None:
        row = event.payload
        usage = Usage(int(row.get("input_tokens", 0)), int(row.get("output_tokens", 0)), float(row.get("cost", 0.0)))
        self._spent = Spent(self._spent.turns + 1, self._spent.usage + usage, self._spent.since or event.at)


def _answer(call: PendingCall, error: str) -> Message:
    return Message("tool", ToolOutcome(call.id, call.name, error=error).text(), call_id=call.id)
