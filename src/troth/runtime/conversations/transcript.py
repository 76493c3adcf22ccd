"""Read what was said and done in a conversation off its log, for somebody who looks at it and runs nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from troth.runtime.agents.model import Message, Usage
from troth.runtime.conversations.log import State, Status, fold, message_of, stream_of
from troth.runtime.store import DamagedStoreError, Event, Store

__all__ = ["PREFIX", "Transcript", "TranscriptEntry", "entries_of", "read_conversations", "read_transcript", "used_in"]

PREFIX = stream_of("")


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One thing that was said or done: a message, the call of a tool, what the tool answered, a run's begin or end.

    `tool` is the name of the tool; `text` is then its arguments, or its answer, as the model wrote or read it. `call`
    is the id that a call and its answer have in common.
    """

    at: float
    who: Literal["system", "user", "assistant", "call", "answer", "run"]
    text: str
    tool: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as it stands: who took part, where it stands, and all that was said."""

    id: str
    agent: str
    status: Status
    opened_at: float
    last_at: float
    usage: Usage
    error: str
    """What its last run failed with."""
    entries: tuple[TranscriptEntry, ...]

    @property
    def turns(self) -> int:
        """How often the agent said something."""
        return sum(entry.who == "assistant" for entry in self.entries)

    @property
    def calls(self) -> int:
        """How many calls of tools it asked for."""
        return sum(entry.who == "call" for entry in self.entries)


def read_conversations(store: Store, conversation_ids: Iterable[str]) -> list[Transcript | DamagedStoreError]:
    """These conversations, as they stand; what is damaged hides none of the others."""
    transcripts: list[Transcript | DamagedStoreError] = []
    for conversation_id in conversation_ids:
        try:
            transcript = read_transcript(store, conversation_id)
        except DamagedStoreError as damage:
            transcripts.append(damage)
        else:
            transcripts.extend([transcript] if transcript is not None else [])
    return transcripts


def read_transcript(store: Store, conversation_id: str) -> Transcript | None:
    """The whole conversation; None where there is none of that id."""
    state, agent, usage = State(), "", Usage()
    events = list(_events(store, conversation_id))
    if not events:
        return None
    for event in events:
        state = fold(state, [event])
        if event.kind == "opened":
            agent = str(event.payload["agent"]) if isinstance(event.payload, dict) else ""
        usage += used_in(event)
    status = state.outcome
    if state.open_run is not None:
        holder = store.holder(stream_of(conversation_id))
        is_held = holder is not None and store.is_alive(holder)
        status = Status.RUNNING if is_held else Status.INTERRUPTED
    error = f"{state.error.get('type')}: {state.error.get('message')}" if state.error else ""
    entries = tuple(entries_of(events))
    return Transcript(conversation_id, agent, status, events[0].at, events[-1].at, usage, error, entries)


def _events(store: Store, conversation_id: str) -> Iterator[Event]:
    after = 0
    while page := store.events(stream_of(conversation_id), after=after):
        yield from page
        after = page[-1].seq


def entries_of(events: Iterable[Event]) -> Iterator[TranscriptEntry]:
    """What a person wants to read of a log, in its order. An answer names the tool that gave it."""
    tools: dict[str | None, str] = {}
    for event in events:
        match event.kind:
            case "message":
                yield from _of_message(event.at, message_of(event), tools)
            case "run.started":
                yield TranscriptEntry(event.at, "run", "started")
            case "run.ended":
                yield TranscriptEntry(event.at, "run", _ending(event))


def _of_message(at: float, message: Message, tools: dict[str | None, str]) -> Iterator[TranscriptEntry]:
    if message.role == "tool":
        yield TranscriptEntry(at, "answer", message.text, tools.get(message.call_id, ""), message.call_id or "")
        return
    entry = TranscriptEntry(at, message.role, message.text)
    if message.text or not message.calls:
        yield entry
    for call in message.calls:
        tools[call.id] = call.name
        yield replace(entry, who="call", text=call.arguments, tool=call.name, call=call.id)


def _ending(event: Event) -> str:
    try:
        error = event.payload.get("error")
        why = f": {error['type']}: {error['message']}" if error else ""
        return f"{event.payload['outcome']}{why}"
    except (AttributeError, KeyError, TypeError) as cause:
        place = f"entry {event.seq} of stream {event.stream!r}"
        raise DamagedStoreError(place, "it does not say how a run ended") from cause


def used_in(event: Event) -> Usage:
    """What one entry of a log says was used; nothing, if it is of another kind."""
    if event.kind != "agent.usage":
        return Usage()
    row = event.payload
    try:
        return Usage(int(row.get("input_tokens", 0)), int(row.get("output_tokens", 0)), float(row.get("cost", 0.0)))
    except (AttributeError, TypeError, ValueError) as cause:
        place = f"entry {event.seq} of stream {event.stream!r}"
        raise DamagedStoreError(place, "it does not say what was used") from cause
