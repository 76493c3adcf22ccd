"""Say why a call is known to make a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import CallableType, ClassObject, FunctionValue, Instance

if TYPE_CHECKING:
    from troth.analysis.semantics.incident import Misuse, Site
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.resolve.library import LibraryFunction
    from troth.analysis.semantics.symbols import Function

__all__ = ["MISUSED", "Reasons"]

_LONGEST = 40  # links of a chain that are told


def article(name: str) -> str:
    """The indefinite article of a name, by its first letter."""
    return "an" if name.lstrip("_")[:1].lower() in set("aeiou") else "a"


class Reasons:
    """Tells chains of reasons, nearest link first, the definition last."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._told = 0  # links of the chain that is being told

    def of_own(self, func: FunctionValue, function: Function) -> tuple[Reason, ...]:
        """Why calling a function of the project gives a promise."""
        return (*self._receiver(func), self._definition(function))

    def _receiver(self, func: FunctionValue) -> tuple[Reason, ...]:
        receiver = func.receiver
        if isinstance(receiver, Instance) and receiver.why is not None:
            text, path, line = receiver.why
            return (Reason(f"the receiver is {article(receiver.cls.name)} `{receiver.cls.name}` ({text})", path, line),)
        if isinstance(receiver, Instance | ClassObject):
            return ()
        return ()

    def _definition(self, function: Function) -> Reason:
        effect = self._program.effects.of(function)
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
        """Why reading a property gives a promise."""
        if isinstance(base.cls, Class) and name in base.cls.methods:
            return (self._definition(base.cls.module.function(base.cls.methods[name][-1])),)
        return (Reason(f"`{base.cls.name}.{name}` is an async property"),)

    def of_returning(self, function: Function | None, inner: Site | None, how: str) -> tuple[Reason, ...]:
        """Why a plain function gives a promise: it returns one."""
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
        """Why a plain function gives something to be awaited: it says so, or its body does."""
        return (Reason(f"`{function.qualname}` gives an awaitable, not its result", *function.place),)

    def of_callable(self, func: CallableType) -> tuple[Reason, ...]:
        """Why calling something annotated gives a promise."""
        return (Reason(func.how or "it is annotated as a callable that returns an awaitable"),)

    def of_library(self, func: FunctionValue, function: LibraryFunction) -> tuple[Reason, ...]:
        """Why a function of a library gives a promise."""
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
        reasons = [Reason(text, *place) if place is not None else Reason(text)]
        if member.why is not None:
            reasons.insert(0, Reason(f"the object is a `{member.cls.name}`: {member.why[0]}", *member.why[1:]))
        return tuple(reasons)

    def of_misuses(self, site: Site, misuses: list[Misuse], variable: str) -> tuple[Reason, ...]:
        """What the code does with the variable that holds the promise."""
        reasons: list[Reason] = []
        for misuse in misuses[:2]:
            text = f"`{variable}` is {MISUSED.get(misuse.kind, 'used as a result')}"
            if misuse.kind == "attribute":
                text = f"`{variable}.{misuse.text}` is read"
            elif misuse.kind in {"text", "argument", "handed over"} and misuse.text:
                text = f"`{variable}` is given to {misuse.text}"
            reasons.append(Reason(f"{text} although it is a coroutine", site.function.module.path, misuse.at[0]))
        return tuple(reasons)


MISUSED = {
    "condition": "tested for truth",
    "perhaps condition": "tested for truth",
    "comparison": "compared",
    "attribute": "asked for an attribute",
    "subscript": "subscripted",
    "iteration": "looped over",
    "async iteration": "looped over with `async for`",
    "arithmetic": "used in an operation",
    "unpacking": "unpacked",
    "text": "turned into text",
    "argument": "given away as a result",
    "returned inside": "returned in a collection of results",
    "with": "entered with `with`",
    "async with": "entered with `async with`",
}
