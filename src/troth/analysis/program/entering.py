"""Knows which functions may enter or loop over something plainly that can only be entered or looped over with `async`.

No call need stand there (`with self.lock:`), so the names of callees do not tell; what does is the names of classes
that know `async with` or `async for` alone, of those who make their objects, and of what holds these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import last_name
from troth.analysis.program import library

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from troth.analysis.facts.model import ClassFacts, FunctionFacts, Node
    from troth.analysis.program.entities import Function, Module

__all__ = ["Entering"]

_TWINS = (("__aenter__", "__enter__"), ("__aiter__", "__iter__"))


class Entering:
    """The names by which such objects are made and held in a project."""

    def __init__(self, modules: Sequence[Module], packages: Collection[str]) -> None:
        self._makers: set[str] = set()
        for top in packages:
            self._makers |= library.only_async_names(top)
        for module in modules:
            self._makers.update(c.name for c in module.facts.classes if _is_only_async(c))
        self._holders = {name for module in modules for name in self._held(module)} if self._makers else set()
        self._mentioned: dict[Module, frozenset[bytes]] = {}

    def _held(self, module: Module) -> list[str]:
        """The attributes and variables of a file that hold such an object, by their value or annotation."""
        found = [name for name, annotation, value in module.facts.variables if self._is_one(annotation, value)]
        for c in module.facts.classes:
            found += [name for name, _, annotation, value in c.self_attributes if self._is_one(annotation, value)]
            found += [name for name, annotation in c.annotations if self._is_one(annotation, None)]
        return found

    def _is_one(self, annotation: Node | None, value: Node | None) -> bool:
        if value is not None and value[0] == "call" and last_name(value[1]) in self._makers:
            return True
        return annotation is not None and annotation[0] in {"name", "attr"} and last_name(annotation) in self._makers

    def falls_on(self, function: Function) -> bool:
        """Whether the function may take one of them plainly."""
        facts = function.facts
        body = facts.body
        if not self._makers or (b"with" not in body and b"for" not in body and b"comp" not in body):
            return False
        makes = any(callee.rpartition(".")[2] in self._makers for callee in facts.calls) or any(
            param[1] is not None and self._is_one(param[1], None) for param in facts.params
        )
        if not makes and not any(name in body for name in self._holders_in(function.module)):
            return False
        return self._takes_plainly(facts, anything=makes)

    def _holders_in(self, module: Module) -> frozenset[bytes]:
        if module not in self._mentioned:
            held = self._holders.intersection(module.facts.mentions)
            self._mentioned[module] = frozenset(name.encode() for name in held)
        return self._mentioned[module]

    def _takes_plainly(self, facts: FunctionFacts, *, anything: bool) -> bool:
        return any(self._may_be_one(node, anything=anything) for node in _taken(body_of(facts)))

    def _may_be_one(self, node: Node, *, anything: bool) -> bool:
        if node[0] == "call":
            return last_name(node[1]) in self._makers
        if node[0] == "await":
            return anything and self._may_be_one(node[1], anything=False)
        return node[0] in {"name", "attr"} and ((anything and node[0] == "name") or last_name(node) in self._holders)


def _is_only_async(facts: ClassFacts) -> bool:
    methods = {name for name, _ in facts.methods}
    return any(one in methods and other not in methods for one, other in _TWINS)


def _taken(node: Any) -> list[Node]:
    """What the plain `with`, `for` and comprehensions among the statements take."""
    if not isinstance(node, tuple) or not node:
        return []
    found = [one for part in node for one in _taken(part)]
    if node[0] == "with" and node[1] is False:
        found += [item[0] for item in node[2]]
    elif node[0] == "for" and node[1] is False:
        found.append(node[3])
    elif node[0] == "comp" and len(node) == 5:
        found += [iterable for is_async, _, iterable, _ in node[3] if not is_async]
    return found
