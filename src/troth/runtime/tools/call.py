"""Say what a call of a tool is, and what came of it."""

import json
from dataclasses import dataclass
from typing import Any

from troth.runtime.store.records import Place

__all__ = ["PendingCall", "ToolOutcome"]

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that a model asked for and that has no answer yet. `arguments` is JSON text, perhaps not valid."""

    id: str
    """The model's own name for it, which the answer has to carry. Two calls of one conversation may share it."""
    name: str
    arguments: str
    conversation: str
    seq: int
    """The entry of the conversation's log that asks for it."""
    index: int
    """Which of that entry's calls it is, counted from 0."""
    attempt: int = 1
    is_interrupted: bool = False
    """Somebody stopped the run that it was asked for in. It is answered so, and not called again unasked."""

    @property
    def key(self) -> str:
        """The same for every attempt and after every crash, and no other call's."""
        return f"{self.conversation}:{self.seq}.{self.index}:{self.name}"

    @property
    def place(self) -> Place:
        """Where it stands in its conversation, as `7.0`."""
        return Place(self.conversation, f"{self.seq}.", self.index)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The answer of a tool, or its error as data: a model can read both, and go on."""

    call_id: str
    tool: str
    value: Any = None
    error: str | None = None

    def text(self) -> str:
        """What the model is told. A string stays as it is; everything else is JSON."""
        if self.error is not None:
            return _encode({"error": self.error})
        return self.value if isinstance(self.value, str) else _encode(self.value)


def error_in(text: str) -> str | None:
    """The error that an answer tells, as `ToolOutcome.text` writes it; None for any other answer."""
    if not text.startswith('{"error"'):
        return None
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    is_error = isinstance(answer, dict) and len(answer) == 1 and isinstance(answer.get("error"), str)
    return str(answer["error"]) if is_error else None
