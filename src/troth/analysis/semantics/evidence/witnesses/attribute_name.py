"""Attribute name: the project keeps objects of one class under the name of this receiver.

Asked only where it matters: a method with the name of an async one is called on it. What is found is a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, KIND, NAME_ID
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.evidence.call_site_evidence import COMMON_RECEIVERS, siblings_of
from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.evidence.words import threshold
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import FunctionValue, Instance, Nothing, Value, members_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.resolve.library import LibraryClass

__all__ = ["CASES", "KeptAs"]

CASES = [
    EvidenceCase(
        "an attribute that one class keeps",
        "class Pool:\n    async def send(self, data): ...\n\n\nclass Owner:\n    def __init__(self):\n"
        "        self.worker_pool = Pool()\n\n\nasync def main(owner):\n    owner.worker_pool.send(1)  # lost\n",
    ),
]

_SHORTEST = threshold("attribute_name", "shortest")
_MOST_HOLDERS = threshold("attribute_name", "most_holders")


class KeptAs:
    """Looks for what is kept under a name; every answer is kept."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._held: MutableMapping[str, Value | None] = program.answers()
        self._named: MutableMapping[tuple[str, str], Value | None] = program.answers()

    def behind(self, node: Node, function: Function, wanted: str) -> Value | None:
        """What a name or an attribute holds in `function`; `wanted` is the method that is called on it."""
        if wanted not in self._program.async_names or is_test(function.module.path):
            return None  # tests have objects of their own that are called like the real ones
        if node[KIND] == "name":
            return self._called_after(node[NAME_ID], wanted) if function.is_async else None
        if node[KIND] != "attr" or (
            node[ATTR_BASE] == ("name", "self") and self._is_its_own(function, node[ATTR_NAME])
        ):
            return None
        return self._under(node[ATTR_NAME]) or self._called_after(node[ATTR_NAME], wanted)

    def _is_its_own(self, function: Function, name: str) -> bool:
        """Whether the class around sets the attribute, or may have it from a base: to something that nobody knows."""
        owner = function.class_around
        return owner is not None and (
            name in owner.annotations
            or any(name == self_attribute[0] for self_attribute in owner.facts.self_attributes)
            or None in self._program.classes.order(owner)
        )

    def _under(self, name: str) -> Value | None:
        """The object that all classes keep under that name which say what they keep."""
        if name not in self._held:
            self._held[name] = None  # while it is being found out
            self._held[name] = self._look(name)
        return self._held[name]

    def _look(self, name: str) -> Value | None:
        if any(self._program.counts.colors(name)):
            return None
        holders = [cls for cls in self._program.index.classes_keeping(name) if not is_test(cls.module.path)]
        if not 0 < len(holders) <= _MOST_HOLDERS:
            return None
        by_class: dict[Class | LibraryClass, Class] = {}
        resolved_count = 0
        for cls in holders:
            alternatives = members_of(self._program.classes.member(cls, name, Instance(cls)))
            resolved_count += None not in alternatives
            for alternative in alternatives:
                if isinstance(alternative, Instance) and not alternative.guess:
                    by_class.setdefault(alternative.cls, cls)
                elif alternative is not None and not isinstance(alternative, Nothing):
                    return None
        if len(by_class) != 1 or not ("_" in name.strip("_") or (len(holders) > 1 and len(holders) == resolved_count)):
            return None  # a `transport` is another thing in every library
        held, holder = next(iter(by_class.items()))
        why = (f"`{name}` of `{holder.name}`, which only this class has, is one", *holder.place)
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
        if len(classes) != 1 or not siblings_of(self._program).is_awaited_of(word, wanted):
            return None
        cls = classes[0]
        member = self._program.classes.member(cls, wanted, Instance(cls))
        if not isinstance(member, FunctionValue) or not isinstance(member.function, Function):
            return None
        if not member.function.is_async or is_test(cls.module.path):
            return None
        return Instance(cls, (), (f"`{word}` is named after it", *cls.place), guess=True)
