"""Find what keeps a class from being entered by `async with`, and which of its methods change together."""

from collections.abc import Iterable

from troth.analysis.recolor.project.entries import ASYNC_NAMES, is_entering
from troth.analysis.recolor.reach.color_requirements import required_by
from troth.analysis.recolor.reach.family import family
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["kept_entering", "with_partners"]


def with_partners(program: Program, functions: Iterable[Function]) -> tuple[Function, ...]:
    """`functions`, and for each `__enter__` the `__exit__` beside it, and the other way round, with all overrides."""
    chosen = dict.fromkeys(functions)
    partners = [
        function.owner.module.function(index)
        for function in chosen
        if is_entering(function) and function.owner is not None
        for name in ASYNC_NAMES
        for index in function.owner.methods.get(name, ())
    ]
    return tuple(dict.fromkeys([*chosen, *(family(program, partners) if partners else ())]))


def kept_entering(program: Program, function: Function, together: Iterable[Function]) -> str | None:
    """Why a class cannot be entered by `async with` instead; None if it can."""
    owner = function.owner
    if owner is None:
        return "is called by Python itself, which would not await it"
    order = program.classes.order(owner)
    for base in order:
        if base is None:
            return "may be called by a base class that is not known"
        if isinstance(base, LibraryClass) and base.name == "ContextDecorator":
            return "is called by `contextlib.ContextDecorator`, which would not await it"
    for cls in (*order, *program.classes.children(owner)):
        if isinstance(cls, Class) and set(ASYNC_NAMES.values()) & cls.methods.keys():
            return f"has its counterpart already: `{cls.name}` can be entered by `async with`"
    if not all(any(isinstance(base, Class) and name in base.methods for base in order) for name in ASYNC_NAMES):
        return "is called by Python itself, and the other half of the context manager is not in the project"
    return required_by(program, function, tuple(together))
