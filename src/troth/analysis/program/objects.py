"""Knows what a function does with objects: which attribute it reads or sets on what, and which key it asks of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.program.flow import Flow

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.program.entities import Function
    from troth.analysis.program.link import Program
    from troth.analysis.program.values import Value

__all__ = ["Access", "accesses"]


class Access(NamedTuple):
    """`base.name` is read (`how` is "attribute") or set ("set"), or `base[name]` is asked for ("item").

    `node` is the base as written. An item has no place of its own: `at` is None there.
    """

    how: str
    base: Value | None
    name: str
    node: Node
    at: At | None


class _Recorder(Flow):
    """A walk that remembers what is done with objects."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.met: dict[object, Access] = {}

    def attribute(self, base: Value | None, name: str, at: At, base_node: Node | None = None) -> Value | None:
        self.met["attribute", at] = Access("attribute", base, name, base_node or (), at)
        return super().attribute(base, name, at, base_node)

    def on_index(self, node: Node) -> Value | None:
        index = node[2]
        if index[0] == "const" and index[1] == "str" and len(index) == 3:
            self.met["item", node] = Access("item", self.value(node[1]), index[2], node[1], None)
        return super().on_index(node)

    def _assign(self, target: Node, value: Value | None) -> None:
        if target[0] == "attr":
            self.met["set", target[3]] = Access("set", self.value(target[1]), target[2], target[1], target[3])
        super()._assign(target, value)


def accesses(program: Program, function: Function) -> tuple[Access, ...]:
    """What `function` does with objects, as it is walked through."""
    walk = _Recorder(program, function)
    walk.run()
    return tuple(walk.met.values())
