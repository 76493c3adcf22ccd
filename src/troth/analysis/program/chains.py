"""Knows which plain functions lead to a certain kind of call, and by what way.

Color is not the only thing that climbs a call chain: whoever calls a function that blocks, blocks. The climb goes by
names first (a function is looked at only if it mentions the name of one that leads there) and is settled by what the
names stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.program.entities import Function
from troth.analysis.program.values import FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from troth.analysis.program.calling import Call, Calling
    from troth.analysis.program.link import Program

__all__ = ["Chains", "Link", "plain_target"]

_LONGEST = 8  # links of a chain; longer ones tell a reader nothing


class Link(NamedTuple):
    """A call on the way, and the rest of the way; `rest` is None at the call that all is about."""

    call: Call
    rest: Link | None

    @property
    def end(self) -> Call:
        """The call that all is about."""
        return self.call if self.rest is None else self.rest.end

    @property
    def length(self) -> int:
        """How many calls the way has."""
        return 1 if self.rest is None else 1 + self.rest.length

    def reasons(self) -> tuple[Reason, ...]:
        """The way in words, one place each."""
        path = self.call.caller.module.path
        here = Reason(f"`{self.call.caller.qualname}` calls `{self.call.text}`", path, self.call.at[0])
        return (here,) if self.rest is None else (here, *self.rest.reasons())


def plain_target(call: Call, program: Program | None = None) -> Function | None:
    """The one plain function of the project that the call runs, here and now; None for anything else.

    With the `program` given, a method that a subclass overrides is nobody's in particular.
    """
    found = members_of(call.callee)
    if len(found) != 1 or not isinstance(found[0], FunctionValue):
        return None
    function = found[0].function
    if not isinstance(function, Function) or function.is_async or function.is_generator or function.facts.decorators:
        return None
    if program is not None and program.overridden_otherwise(function, found[0].receiver):
        return None
    return function


class Chains:
    """The plain functions that lead to calls of one kind, each with its shortest way there."""

    def __init__(
        self,
        calling: Calling,
        names: Iterable[str],
        is_end: Callable[[Call], bool],
        *,
        stops: Callable[[Function], bool],
    ) -> None:
        """`names` are the last names of these calls; `stops` tells functions that take care of it themselves."""
        self._calling = calling
        self._is_end = is_end
        self._stops = stops
        self.ends: list[Call] = []
        self.ways: dict[Function, Link] = {}
        self._climb(frozenset(names))

    def _climb(self, names: frozenset[str]) -> None:
        fresh: dict[Function, Link] = {}
        for function in self._calling.functions_naming(names):
            for call in self._calling.of(function):
                if self._is_end(call):
                    self.ends.append(call)
                    if self._may_lead(function):
                        fresh.setdefault(function, Link(call, None))
        for _ in range(_LONGEST):
            self.ways.update(fresh)
            if not fresh:
                return
            found: dict[Function, Link] = {}
            for function in self._calling.functions_naming(f.name for f in fresh):
                if function in self.ways or not self._may_lead(function):
                    continue
                for call in self._calling.of(function):
                    target = plain_target(call, self._calling.program)
                    if target in fresh:
                        found.setdefault(function, Link(call, fresh[target]))
            fresh = found

    def _may_lead(self, function: Function) -> bool:
        return function.index != 0 and not function.is_async and not function.is_generator and not self._stops(function)

    def entered_from_async(self) -> list[Link]:
        """The calls in async functions that lead there, with the way from the call on."""
        found: list[Link] = []
        for function in self._calling.functions_naming(f.name for f in self.ways):
            if not function.is_async or self._stops(function):
                continue
            for call in self._calling.of(function):
                target = plain_target(call, self._calling.program)
                if target is not None and target in self.ways:
                    found.append(Link(call, self.ways[target]))
        return found
