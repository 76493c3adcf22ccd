"""What remains of a walk through a function: what it returns and assigns, the calls it makes, what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.names import callee_text

# For real, as types of fields: compiled code makes them together with the classes.
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.incident import KeyAsked, LossIncident, Operand

__all__ = ["Call", "Given", "Summary"]

Given = tuple[str | None, Value | None]


class Call(NamedTuple):
    """One call. `given` are its arguments in order, with the keyword where there is one."""

    caller: Function
    node: Node
    callee: Value | None
    given: tuple[Given, ...]
    is_awaited: bool

    @property
    def at(self) -> At:
        """Its place."""
        return self.node[-1]  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """The callee as written."""
        return callee_text(self.node[1])


class Summary:
    """What remains of a walk; of a walk that was not made, or is going on, nothing."""

    __slots__ = (
        "attributes",
        "bound",
        "calls",
        "incidents",
        "keys",
        "narrowed",
        "operands",
        "returned_result",
        "returns",
        "stored",
        "yields",
    )

    def __init__(self) -> None:
        self.returns: Value | None = None
        self.yields: Value | None = None
        self.attributes: dict[str, Value | None] = {}
        self.bound: dict[str, Value | None] = {}
        self.incidents: tuple[LossIncident, ...] = ()
        self.stored: list[tuple[Node, Value]] = []
        self.returned_result = False
        self.calls: tuple[Call, ...] = ()
        self.keys: tuple[KeyAsked, ...] = ()
        self.operands: tuple[Operand, ...] = ()
        self.narrowed: dict[int, dict[str, Value]] = {}
