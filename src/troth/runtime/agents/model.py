"""What an agent and a language model say to each other, whoever makes the model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from troth.errors import RunError
from troth.runtime.tools import Tool

__all__ = [
    "AsyncModel",
    "Message",
    "Model",
    "ModelError",
    "Reply",
    "Request",
    "SyncModel",
    "ToolCall",
    "Usage",
]

Role = Literal["system", "user", "assistant", "tool"]


class ModelError(RunError):
    """The model did not answer as it should. `status` is the HTTP status, where there was one."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called. `arguments` is JSON text as the model wrote it, perhaps not valid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the talk. A `tool` message answers the call with the id `call_id`."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As kept in the event log."""
        row: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.calls:
            row["calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.calls]
        if self.call_id is not None:
            row["call_id"] = self.call_id
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Message":
        """What `to_json` wrote."""
        calls = tuple(ToolCall(**call) for call in row.get("calls", ()))
        return cls(row["role"], row["text"], calls, row.get("call_id"))


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost. `cost` is in the currency of whoever set the prices; 0 where nobody did."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, self.cost + other.cost
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked. `on_token` hears pieces of the answer's text as they come, where the request was made."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    on_token: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What it answered, complete: a reply that was cut short is a `ModelError`, never a short reply."""

    message: Message
    usage: Usage = Usage()


@runtime_checkable
class SyncModel(Protocol):
    """A language model for sync code. Raises `ModelError` where there is no whole answer."""

    def reply(self, request: Request) -> Reply:
        """Answer, on the caller's thread."""
        ...


@runtime_checkable
class AsyncModel(Protocol):
    """A language model for a loop. Raises `ModelError` where there is no whole answer."""

    async def areply(self, request: Request) -> Reply:
        """Answer, without blocking the loop; cancelling it ends the request."""
        ...


@runtime_checkable
class Model(SyncModel, AsyncModel, Protocol):
    """A language model in both colors, with one meaning."""
