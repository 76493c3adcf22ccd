"""Find which functions may enter or loop over something plainly that can only be entered or looped over with `async`.

No call need stand there (`with self.lock:`), so the names of callees do not tell; what does is the names of classes
that know `async with` or `async for` alone, of those who make their objects, and of what holds these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND
from troth.analysis.facts.model import PARAM_ANNOTATION
from troth.analysis.facts.names import last_name
from troth.analysis.incremental.dependencies import Words
from troth.analysis.semantics.resolve import library

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from troth.analysis.facts.model import ClassFacts, FileFacts, Node
    from troth.analysis.incremental.dependencies import Reads
    from troth.analysis.semantics.symbols import Function

__all__ = ["Entering", "held_in", "is_only_async", "makers_of"]

_TWINS = (("__aenter__", "__enter__"), ("__aiter__", "__iter__"))


class Entering:
    """The names by which such objects are made and held in a project; who looks for one is noted."""

    def __init__(self, makers: Collection[str], holders: Collection[str], reads: Reads | None = None) -> None:
        self._makers: Collection[str] = set(makers) if reads is None else Words(reads, "prefilter makers", makers)
        self._holders: Collection[str] = set(holders) if reads is None else Words(reads, "prefilter holders", holders)

    def may_be_taken_by(self, function: Function) -> bool:
        """Whether the function takes by `with` or `for` what such a name makes or holds."""
        facts = function.facts
        if not facts.taken or not self._makers:
            return False
        is_any_made = False
        for taken_object in facts.taken:
            if " " in taken_object:
                continue  # by an async statement
            if taken_object[-1] == ")":
                if taken_object[:-2] in self._makers:
                    return True
            elif taken_object.removeprefix(".") in self._holders:
                return True
            elif taken_object[0] != ".":
                param = function.params.get(taken_object)
                if (
                    param is not None
                    and param[PARAM_ANNOTATION] is not None
                    and _is_one(param[PARAM_ANNOTATION], None, self._makers)
                ):
                    return True
                is_any_made = True  # a variable: of what, its function says
        return is_any_made and any(callee.rpartition(".")[2] in self._makers for callee in facts.calls)


def makers_of(files: Iterable[FileFacts], packages: Collection[str]) -> frozenset[str]:
    """The names of the classes, of the project and of libraries, and of what makes their objects."""
    makers: set[str] = set()
    for top in packages:
        makers |= library.only_async_names(top)
    for file in files:
        makers.update(c.name for c in file.classes if is_only_async(c))
    return frozenset(makers)


def held_in(file: FileFacts, makers: Collection[str]) -> list[str]:
    """The attributes and variables of a file that hold such an object, by their value or annotation."""
    if not makers:
        return []
    names = [name for name, annotation, value in file.variables if _is_one(annotation, value, makers)]
    for c in file.classes:
        names += [name for name, _, annotation, value in c.self_attributes if _is_one(annotation, value, makers)]
        names += [name for name, annotation in c.annotations if _is_one(annotation, None, makers)]
    return names


def _is_one(annotation: Node | None, value: Node | None, makers: Collection[str]) -> bool:
    if value is not None and value[KIND] == "call" and last_name(value[CALL_FUNC]) in makers:
        return True
    return annotation is not None and annotation[KIND] in {"name", "attr"} and last_name(annotation) in makers


def is_only_async(facts: ClassFacts) -> bool:
    """Whether a class knows `async with` or `async for` alone."""
    methods = {name for name, _ in facts.methods}
    return any(async_name in methods and sync_name not in methods for async_name, sync_name in _TWINS)
