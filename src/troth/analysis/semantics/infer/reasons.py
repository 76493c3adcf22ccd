"""Say why a call is known to make an awaitable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.findings.phrases import with_article
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import OF_CLASS, CallableType, FunctionValue, Instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.analysis.semantics.incident import Site
    from troth.analysis.semantics.resolve.library import LibraryFunction
    from troth.analysis.semantics.symbols import Function

__all__ = ["Reasons", "reasons_of_class"]

_LONGEST = 40  # links of a chain that are told


class Reasons:
    """Tells chains of reasons, nearest link first, the definition last."""

    def __init__(self, effect_of: Callable[[Function], str]) -> None:
        self._effect_of = effect_of
        self._told = 0  # links of the chain that is being told

    def of_own(self, func: FunctionValue, function: Function) -> tuple[Reason, ...]:
        """Why calling a function of the project gives an awaitable."""
        return (*self._receiver(func), self._definition(function))

    def _receiver(self, func: FunctionValue) -> tuple[Reason, ...]:
        return reasons_of_class(func.receiver) if isinstance(func.receiver, Instance) else ()

    def _definition(self, function: Function) -> Reason:
        effect = self._effect_of(function)
        path, line = function.place
        name = function.qualname
        if effect == "generator":
            return Reason(f"`{name}` is an async generator", path, line)
        if effect == "context":
            return Reason(f"`{name}` is an async context manager", path, line)
        if function.is_async:
            return Reason(f"`{name}` is `async def`", path, line)
        return Reason(f"`{name}` gives a coroutine through its decorator", path, line)

    def of_property(self, base: Instance, name: str) -> tuple[Reason, ...]:
        """Why reading a property gives an awaitable."""
        if isinstance(base.cls, Class) and name in base.cls.methods:
            return (self._definition(base.cls.module.function(base.cls.methods[name][-1])),)
        return (Reason(f"`{base.cls.name}.{name}` is an async property"),)

    def of_returning(self, function: Function | None, inner: Site | None, how: str) -> tuple[Reason, ...]:
        """Why a sync function gives an awaitable: it returns one."""
        reasons: list[Reason] = []
        if function is not None:
            path, line = function.place
            reasons.append(Reason(f"`{function.qualname}` is a plain `def` that returns a coroutine", path, line))
        elif how:
            reasons.append(Reason(how))
        if inner is not None and self._told < _LONGEST:
            self._told += 1
            try:
                reasons.extend(inner.reasons)
            finally:
                self._told -= 1
        return tuple(reasons)

    def of_returning_future(self, function: Function) -> tuple[Reason, ...]:
        """Why a sync function gives something to be awaited: it says so, or its body does."""
        return (Reason(f"`{function.qualname}` gives an awaitable, not its result", *function.place),)

    def of_callable(self, func: CallableType) -> tuple[Reason, ...]:
        """Why calling something annotated gives an awaitable."""
        return (Reason(func.how or "it is annotated as a callable that returns an awaitable"),)

    def of_library(self, func: FunctionValue, function: LibraryFunction) -> tuple[Reason, ...]:
        """Why a function of a library gives an awaitable."""
        package = function.qualname.partition(".")[0]
        kind = "an async generator" if "g" in function.flags else "a coroutine function"
        if "m" in function.flags:
            kind = "a function whose result has to be awaited or entered"
        elif function.returns.startswith(library.LAZY):
            kind = "a function that makes a request, which is sent when it is awaited"
        elif "a" not in function.flags and "g" not in function.flags:
            kind = "a function that starts a task"
        return (*self._receiver(func), Reason(f"`{function.qualname}` of {package} is {kind}"))

    def of_only_async(self, member: Instance, how: str) -> tuple[Reason, ...]:
        """Why an object wants `async with` or `async for`."""
        place = getattr(member.cls, "place", None)
        plain = "with" if how == "__aenter__" else "for"
        text = f"`{member.cls.name}` has `{how}` for `async {plain}`, and nothing for a plain `{plain}`"
        return (*reasons_of_class(member), Reason(text, *place) if place is not None else Reason(text))


def reasons_of_class(instance: Instance) -> tuple[Reason, ...]:
    """Why an object is believed to be of its class, where something says so."""
    if instance.why is None:
        return ()
    text, path, line = instance.why
    return (Reason(text.replace(OF_CLASS, with_article(instance.cls.name)), path, line),)
