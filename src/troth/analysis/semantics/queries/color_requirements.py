"""What outside a function's own text asks for the color it has: a base, a protocol, a framework, a decorator."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from troth.analysis.facts.names import decorator_name
from troth.analysis.incremental.project_queries import part
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.classes import is_protocol, says_protocol
from troth.analysis.semantics.infer.never_awaitable import keeps_color
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics.program import Program

__all__ = ["is_harmless", "is_protocol", "is_required", "keeps_color", "says_protocol"]

_HARMLESS = frozenset({"staticmethod", "classmethod", "override", "final", "abstractmethod", "property"})


def is_required(program: Program, function: Function) -> bool:
    """Whether something outside the function's own text asks for the color it has."""
    name = function.name
    if name.startswith("__") and name.endswith("__"):
        return True
    if name.startswith("test") or any(
        not is_harmless(program, function, decorator) for decorator in function.facts.decorators
    ):
        return True
    if function.owner is not None:
        return _asked_for_by_base(program, function, function.owner)
    if function.parent is not None and function.parent.name == "__await__":
        return True  # what it makes is asked for its `__await__`
    if function.parent is None and name in (function.module.exports or ()):
        return True
    file = function.module.path.rpartition("/")[2]
    hooks = semantics().module_hooks
    return any(name in hook.names and any(fnmatchcase(file, pattern) for pattern in hook.files) for hook in hooks)


def is_harmless(program: Program, function: Function, decorator: Node) -> bool:
    """Whether a decorator lets the function have either color."""
    if decorator_name(decorator) in _HARMLESS:
        return True
    return keeps_color(program, function, decorator)


def _asked_for_by_base(program: Program, function: Function, owner: Class) -> bool:
    name = function.name
    for ancestor in program.classes.order(owner):
        if ancestor is None:
            if not name.startswith("_"):
                return True  # an unknown base may call it by that name
        elif isinstance(ancestor, LibraryClass):
            if library.member(ancestor.qualified, name) is not None:
                return True
            verb = semantics().hook(ancestor.qualified, name)
            if verb is not None and (verb != "either" or not program.calling.is_named(name)):
                return True  # one that takes both colors asks for none, but only our own awaits would gain by it
        elif name in ancestor.methods and (is_protocol(ancestor) or (ancestor is not owner and _asks(ancestor, name))):
            return True
    return any(name in methods and methods <= owner.methods.keys() for methods in _protocols(program))


def _asks(base: Class, name: str) -> bool:
    """Whether a base says nothing itself but that the method is async: whoever fulfils it has to be."""
    declared = base.module.function(base.methods[name][-1])
    return declared.is_async and declared.is_abstract


def _protocols(program: Program) -> list[frozenset[str]]:
    """The method names of each Protocol of the project: a class that has them all may be used for it."""
    return [methods for protocols in program.said("protocols").values() for methods in protocols]


@part("protocols")
def _protocols_in(file: FileFacts) -> list[frozenset[str]]:
    return [frozenset(dict(c.methods)) for c in file.classes if c.methods and says_protocol(c)]
