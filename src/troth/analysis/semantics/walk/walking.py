"""What a walk asks of the program, beside inference and the judge."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.judging import Judged

if TYPE_CHECKING:
    from troth.analysis.semantics.incident import LossIncident
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.walk.coroutine_sinks import Consumers

__all__ = ["Walking"]


class Walking(Judged):
    """What becomes of an awaitable that is handed on, and what the last walk has met."""

    consumers: Consumers
    walked: set[Function]
    walked_files: tuple[str, ...]

    @abstractmethod
    def fate(self, function: Function, param: str) -> str:
        """What becomes of an awaitable given to that parameter: "lost", "handed over", "asked" or "kept"."""

    @abstractmethod
    def incidents(self) -> tuple[LossIncident, ...]:
        """Everything that went wrong with awaitables on the last walk."""
