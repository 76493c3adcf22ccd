"""Read what a client says: the messages of a chat, the input of a response."""

from collections.abc import Sequence
from typing import Any

from troth.runtime.agents.model import Message, Role
from troth.server.errors import ApiError

__all__ = ["read_input", "read_messages"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("text", "input_text", "output_text")


def read_messages(rows: Sequence[Any], param: str = "messages") -> list[Message]:
    """What was said, in order; refused if it holds anything but text."""
    messages = [_read(row, f"{param}[{number}]") for number, row in enumerate(rows)]
    if not any(message.role != "assistant" for message in messages):
        raise ApiError(400, "invalid_field", f"`{param}` contains nothing to answer.", param=param)
    return messages


def read_input(value: str | Sequence[Any]) -> list[Message]:
    """The input of a response: a text, or messages."""
    return [Message("user", value)] if isinstance(value, str) else read_messages(value, "input")


def _read(row: Any, param: str) -> Message:
    if not isinstance(row, dict):
        raise ApiError(400, "invalid_field", f"`{param}` is not a message.", param=param)
    if row.get("type", "message") != "message":
        raise _unsupported(f"{param}.type", f"An item of the type {row['type']!r} is not supported.")
    word = row.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise _unsupported(f"{param}.role", f"A message of the role {word!r} is not supported.")
    unknown = {name for name, value in row.items() if value is not None} - _KNOWN
    if unknown:
        name = min(unknown)
        raise _unsupported(f"{param}.{name}", f"The field `{name}` of a message is not supported.")
    return Message(role, _text(row.get("content"), f"{param}.content"))


_KNOWN = {"type", "role", "content", "id", "status", "phase"}


def _text(content: Any, param: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ApiError(400, "invalid_field", f"`{param}` is neither a string nor a list of parts.", param=param)
    texts = []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if isinstance(part, dict) else None
        if kind not in _TEXTS or not isinstance(text, str):
            raise _unsupported(f"{param}[{number}]", f"A part of the type {kind!r} is not supported.")
        texts.append(text)
    return "".join(texts)


def _unsupported(param: str, message: str) -> ApiError:
    return ApiError(
        400, "unsupported_parameter", f"{message} Nothing was done.", param=param, advice="Send text alone."
    )
