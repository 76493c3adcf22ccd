"""Make spans of what happens in conversations, from the entries of their logs: turns, and the tools called in them."""

import asyncio
import logging
import threading
from dataclasses import dataclass, field
from typing import Any

from troth.bridge import call
from troth.runtime.conversations import Conversation
from troth.runtime.conversations.log import stream_of
from troth.runtime.conversations.transcript import used_in
from troth.runtime.store import Event, Follower, Store, StoreError
from troth.server.telemetry import tracing
from troth.server.telemetry.names import Attribute, SpanName
from troth.server.telemetry.trace_context import KIND, of_payload

__all__ = ["TurnSpans", "trace_turn"]

log = logging.getLogger("troth.telemetry")

_LOOK_BACK = 200  # entries before a turn in which its trace is looked for
_telling: "set[asyncio.Task[None]]" = set()  # a loop keeps its tasks only weakly


@dataclass
class _Open:
    span: Any
    run: str
    tools: dict[str, Any] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0


class TurnSpans:
    """Takes the entries of one conversation in order; what `on_event` of a conversation calls.

    The trace of a turn is the last one that somebody who sent a message brought along.
    """

    def __init__(self, conversation_id: str, agent: str, *, has_content: bool = False) -> None:
        self._id = conversation_id
        self._agent = agent
        self._has_content = has_content
        self._trace: dict[str, str] = {}
        self._open: _Open | None = None
        self._cursor = 0
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Take one entry."""
        if not tracing.is_used():
            return
        with self._lock:
            if event.seq > self._cursor:
                self._cursor = event.seq
                self._take(event)

    def _take(self, event: Event) -> None:
        match event.kind:
            case kind if kind == KIND:
                self._trace = of_payload(event.payload)
            case "run.started":
                values = {Attribute.CONVERSATION: self._id, Attribute.AGENT: self._agent}
                span = tracing.begin(SpanName.TURN, at=event.at, parent=self._trace, values=values)
                self._open = _Open(span, event.payload["run"])
            case "message" if self._open is not None:
                self._message(self._open, event)
            case "agent.usage" if self._open is not None:
                usage = used_in(event)
                self._open.input_tokens += usage.input_tokens
                self._open.output_tokens += usage.output_tokens
            case "run.ended" if self._open is not None and event.payload["run"] == self._open.run:
                self._end(self._open, event)
                self._open = None

    def _message(self, turn: _Open, event: Event) -> None:
        message = event.payload
        if message["role"] == "tool":
            values = {Attribute.CONTENT_OUT: message.get("text")} if self._has_content else {}
            tracing.finish(turn.tools.pop(message.get("call_id", ""), None), at=event.at, values=values)
            return
        for tool_call in message.get("calls", ()):
            values = {
                Attribute.TOOL: tool_call["name"],
                Attribute.TOOL_CALL: tool_call["id"],
                Attribute.CONVERSATION: self._id,
            }
            if self._has_content:
                values[Attribute.CONTENT_IN] = tool_call["arguments"]
            turn.tools[tool_call["id"]] = tracing.begin(SpanName.TOOL, at=event.at, parent=turn.span, values=values)

    def _end(self, turn: _Open, event: Event) -> None:
        for tool in turn.tools.values():  # never answered
            tracing.finish(tool, at=event.at, error="it was not answered")
        values = {
            Attribute.OUTCOME: event.payload["outcome"],
            Attribute.INPUT_TOKENS: turn.input_tokens or None,
            Attribute.OUTPUT_TOKENS: turn.output_tokens or None,
        }
        problem = event.payload.get("error")
        error = None if not problem else str(problem.get("type"))
        if problem and self._has_content:
            error = f"{error}: {problem.get('message')}"
        tracing.finish(turn.span, at=event.at, values=values, error=error)


def trace_turn(store: Store, conversation: Conversation, number: int, *, has_content: bool = False) -> None:
    """Make spans of the turn that began with entry `number`, from its log, as it goes on; on the loop that runs here.

    Only whoever carries a turn out makes its spans, so each is made once.
    """
    if tracing.is_used():
        spans = TurnSpans(conversation.id, type(conversation.agent).__name__, has_content=has_content)
        task = asyncio.create_task(_trace(store, conversation, number, spans), name=f"troth-spans-{conversation.id}")
        _telling.add(task)
        task.add_done_callback(_telling.discard)


async def _trace(store: Store, conversation: Conversation, number: int, spans: TurnSpans) -> None:
    stream = stream_of(conversation.id)
    try:
        for event in await call(lambda: store.events(stream, after=max(0, number - _LOOK_BACK), limit=_LOOK_BACK)):
            if event.kind == KIND and event.seq < number:
                spans(event)
        with Follower(store, stream, after=number - 1) as follower:
            while True:
                for event in await follower.atake():
                    spans(event)
                    if event.kind == "run.ended":
                        return
    except StoreError as problem:
        log.warning("A turn of %r has no whole span: %s", conversation.id, problem)
