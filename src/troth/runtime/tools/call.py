"""Knows what came of a tool call, and how it is told to the model."""

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ToolOutcome"]


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
            return json.dumps({"error": self.error}, ensure_ascii=False)
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)
