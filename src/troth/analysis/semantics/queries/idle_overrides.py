"""The methods that are async only because a base class of the project declares them so.

Whoever awaits the base's method picks one of its overrides at run time, as a dispatcher does with the handlers of a
table: one `await` makes all of them async.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import KIND, NAME_ID
from troth.analysis.semantics.queries.color_requirements import is_required
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["IdleOverride", "idle_overrides"]

_FEWEST = 3  # fewer overrides are an interface like any other


class IdleOverride(NamedTuple):
    """A method that never waits, the method of the base that makes it async, and how many overrides are like it."""

    function: Function
    base: Function
    idle: int
    overrides: int


def idle_overrides(program: Program) -> Iterator[IdleOverride]:
    """Those in the asked files, the bases' own methods that say nothing included."""
    by_function: dict[Function, tuple[list[Function], int]] = {}
    for module in map(program.module, program.asked):
        for index, facts in enumerate(module.facts.functions):
            if facts.owner < 0 or facts.flags & 3 != 1 or not program.calling.is_named(facts.name):
                continue
            function = module.function(index)
            if function.waits:
                continue
            base = _declared(program, function)
            if base is None or is_required(program, base) or not all(map(_is_plain, function.facts.decorators)):
                continue
            if base not in by_function:
                by_function[base] = _overrides(program, base)
            idle, every = by_function[base]
            if len(idle) >= _FEWEST:
                yield IdleOverride(function, base, len(idle), every)


def _is_plain(decorator: Node) -> bool:
    return decorator[KIND] == "name" and decorator[NAME_ID] in {"override", "abstractmethod", "final"}


def _declared(program: Program, function: Function) -> Function | None:
    """The method of the farthest class above, which may be its own, that says what the overrides look like."""
    owner = function.owner
    assert owner is not None
    above = [
        ancestor
        for ancestor in program.classes.order(owner)
        if isinstance(ancestor, Class) and function.name in ancestor.methods
    ]
    base = above[-1]
    declared = base.module.function(base.methods[function.name][-1])
    is_its_own = base is owner and not any(function.name in child.methods for child in program.classes.children(base))
    return None if is_its_own or not declared.is_async or declared.is_generator else declared


def _overrides(program: Program, base: Function) -> tuple[list[Function], int]:
    owner = base.owner
    assert owner is not None
    every = [
        child.module.function(child.methods[base.name][-1])
        for child in program.classes.children(owner)
        if base.name in child.methods
    ]
    if any(not function.is_async for function in every):
        return [], len(every)  # both colors are taken already
    return [function for function in every if not function.is_abstract and not function.waits], len(every)
