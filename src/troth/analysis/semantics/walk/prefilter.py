"""Choose the functions that are worth a walk, by names alone.

A walk costs as much as reading the function did, and most sync functions call nothing that is async anywhere. So a
function is walked if it is `async def`, if the last name of something it calls may make an awaitable, if nobody can
tell by a name what it calls (a parameter, a variable, what a table holds), if it calls `map` in a file that hands over
something of such a name, or if it enters or loops over something that only `async with` or `async for` takes. Which of
these calls really makes an awaitable is for the walk to find out: this filter may choose too many functions, and never
too few.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC
from troth.analysis.incremental.dependencies import Words
from troth.analysis.semantics.walk.async_only_objects import Entering

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableSet

    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["Prefilter"]

_INDIRECT = frozenset({"[]", "()"})  # calls of what a table holds, or of what another call gives
_BUILTINS = frozenset(dir(builtins)) - {"anext"}


class Prefilter:
    """Names that may make awaitables, and the functions that use one of them."""

    def __init__(self, program: Inference, sets: Mapping[str, frozenset[str]]) -> None:
        """`sets` are what `prefilter_names` collected, here or in an earlier run."""
        reads = program.reads
        self.sets = sets
        self.names: MutableSet[str] = set(sets["names"])
        self.returners: MutableSet[str] = set()  # sync functions that return awaitables, as walks have shown
        self._entering = Entering(sets["makers"], sets["holders"], reads)
        if reads is not None:
            self.names = Words(reads, "prefilter names", self.names)

    def chooses(self, function: Function) -> bool:
        """Whether a walk goes through `function`."""
        facts = function.facts
        if facts.flags & ASYNC:
            return True
        for callee in facts.calls:  # a plain loop: every sync function is asked, some of them several times
            if self._may_make_awaitable(function, callee):
                return True
        return self._entering.may_be_taken_by(function) or (
            "map" in facts.calls and any(name in self.names for name in function.module.facts.mentions)
        )

    def _may_make_awaitable(self, function: Function, callee: str) -> bool:
        if callee in _INDIRECT or callee.rpartition(".")[2] in self.names:
            return True
        if "." in callee:
            return False
        return _is_parameter(function, callee) or (callee not in _BUILTINS and not function.module.binds(callee))

    def grow(self, names: set[str]) -> bool:
        """Take in that these sync functions return awaitables; False if that was known."""
        if names <= self.returners:
            return False
        self.names |= names
        self.returners |= names
        return True


def _is_parameter(function: Function, name: str) -> bool:
    """Whether a name is a parameter of the function, or of one around it."""
    around: Function | None = function
    while around is not None:
        if name in around.params:
            return True
        around = around.parent
    return False
