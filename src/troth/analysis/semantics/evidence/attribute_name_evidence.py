"""What an object is of which nothing is known but its name, by what the project keeps under that name.

Asked only where it matters: a method with the name of an async one is called on it. What is found is a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.call_site_evidence import COMMON_RECEIVERS
from troth.analysis.semantics.resolve.test_files import is_test
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import FunctionValue, Instance, Nothing, Value, members_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.resolve.library import LibraryClass

__all__ = ["KeptAs"]

_SHORTEST = 5  # letters of a variable that is called like a class
_MOST_HOLDERS = 4  # classes that keep something under one name


class KeptAs:
    """Looks for what is kept under a name; every answer is kept."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._held: MutableMapping[str, Value | None] = program.answers()
        self._named: MutableMapping[tuple[str, str], Value | None] = program.answers()

    def behind(self, node: Node, function: Function, wanted: str) -> Value | None:
        """What a name or an attribute holds in `function`; `wanted` is the method that is called on it."""
        if wanted not in self._program.async_names or is_test(function.module.path):
            return None  # tests have objects of their own that are called like the real ones
        if node[0] == "name":
            return self._called_after(node[1], wanted) if function.is_async else None
        if node[0] != "attr" or (node[1] == ("name", "self") and self._is_its_own(function, node[2])):
            return None
        return self._under(node[2]) or self._called_after(node[2], wanted)

    def _is_its_own(self, function: Function, name: str) -> bool:
        """Whether the class around sets the attribute, or may have it from a base: to something that nobody knows."""
        owner = function.class_around
        return owner is not None and (
            name in owner.annotations
            or any(name == one[0] for one in owner.facts.self_attributes)
            or None in self._program.classes.order(owner)
        )

    def _under(self, name: str) -> Value | None:
        """The object that all classes keep under that name which say what they keep."""
        if name not in self._held:
            self._held[name] = None  # while it is being found out
            self._held[name] = self._look(name)
        return self._held[name]

    def _look(self, name: str) -> Value | None:
        if any(self._program.evidence.colors(name)):
            return None
        holders = [cls for cls in self._program.index.classes_keeping(name) if not is_test(cls.module.path)]
        if not 0 < len(holders) <= _MOST_HOLDERS:
            return None
        found: dict[Class | LibraryClass, Class] = {}
        known = 0
        for cls in holders:
            alternatives = members_of(self._program.classes.member(cls, name, Instance(cls)))
            known += None not in alternatives
            for one in alternatives:
                if isinstance(one, Instance) and not one.guess:
                    found.setdefault(one.cls, cls)
                elif one is not None and not isinstance(one, Nothing):
                    return None
        if len(found) != 1 or not ("_" in name.strip("_") or (len(holders) > 1 and len(holders) == known)):
            return None  # a `transport` is another thing in every library
        held, holder = next(iter(found.items()))
        why = (f"`{name}` of `{holder.name}`, which nobody else has, is one", *holder.place)
        return Instance(held, (), why, guess=True)

    def _called_after(self, word: str, wanted: str) -> Value | None:
        """The only class of the project that is called so, if it has the method and others await that of namesakes."""
        if "_" in word or len(word) < _SHORTEST or word in COMMON_RECEIVERS:
            return None
        key = (word, wanted)
        if key not in self._named:
            self._named[key] = None  # while it is being found out
            self._named[key] = self._namesake(word, wanted)
        return self._named[key]

    def _namesake(self, word: str, wanted: str) -> Value | None:
        classes = self._program.index.classes_like(word.lower())
        if len(classes) != 1 or not self._program.evidence.siblings.is_awaited_of(word, wanted):
            return None
        cls = classes[0]
        found = self._program.classes.member(cls, wanted, Instance(cls))
        if not isinstance(found, FunctionValue) or not isinstance(found.function, Function):
            return None
        if not found.function.is_async or is_test(cls.module.path):
            return None
        return Instance(cls, (), (f"`{word}` is named after it", *cls.place), guess=True)
