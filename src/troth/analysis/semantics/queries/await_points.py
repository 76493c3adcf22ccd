"""Find for which calls a function waits, where it waits in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import AT, COMP_GENERATORS, KIND, VALUE
from troth.analysis.facts.nodes import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.symbols import Function

__all__ = ["awaited_calls", "awaits_in"]


def awaited_calls(function: Function) -> tuple[At, ...]:
    """The places of the calls that are awaited, where the function waits in no other way; else nothing."""
    return awaits_in(function.body())


def awaits_in(body: tuple[Node, ...]) -> tuple[At, ...]:
    """The places of the calls that are awaited in `body`, where it waits in no other way; else nothing."""
    places: list[At] = []
    for place in _awaited(body):
        if place is None:
            return ()
        places.append(place)
    return tuple(places)


def _awaited(body: tuple[Node, ...]) -> Iterator[At | None]:
    for node in walk(body, skip=("lambda",)):
        if node[KIND] == "await":
            yield node[VALUE][AT] if node[VALUE][KIND] == "call" else None
        elif (node[KIND] in ("for", "with") and node[1]) or (
            node[KIND] == "comp" and any(clause[0] for clause in node[COMP_GENERATORS])
        ):
            yield None
