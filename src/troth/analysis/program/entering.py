"""Knows which functions may enter or loop over something plainly that can only be entered or looped over with `async`.

No call need stand there (`with self.lock:`), so the names of callees do not tell; what does is the names of classes
that know `async with` or `async for` alone, of those who make their objects, and of what holds these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.names import last_name
from troth.analysis.program import library

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from troth.analysis.facts.model import ClassFacts, Node
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
        if not facts.taken or not self._makers:
            return False
        named: list[str] = []
        for taken in facts.taken:
            if taken[-1] == ")":
                if taken[:-2] in self._makers:
                    return True
            elif taken.removeprefix(".") in self._holders:
                return True
            elif taken[0] != ".":
                named.append(taken)
        if not named:
            return False
        return any(callee.rpartition(".")[2] in self._makers for callee in facts.calls) or any(
            name in named and annotation is not None and self._is_one(annotation, None)
            for name, annotation, _, _ in facts.params
        )


def _is_only_async(facts: ClassFacts) -> bool:
    methods = {name for name, _ in facts.methods}
    return any(one in methods and other not in methods for one, other in _TWINS)
