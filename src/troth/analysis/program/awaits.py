"""Knows for which calls a function waits, where it waits in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import At
    from troth.analysis.program.entities import Function

__all__ = ["awaited_calls"]


def awaited_calls(function: Function) -> tuple[At, ...]:
    """The places of the calls that are awaited, where the function waits in no other way; else nothing."""
    places: list[At] = []
    for place in _awaited(function.body()):
        if place is None:
            return ()
        places.append(place)
    return tuple(places)


def _awaited(node: Any) -> Iterator[At | None]:
    if not isinstance(node, tuple) or not node or node[0] == "lambda":
        return
    if node[0] == "await":
        yield node[1][-1] if node[1][0] == "call" else None
        yield from _awaited(node[1])
        return
    if (node[0] in ("for", "with") and node[1] is True) or (node[0] == "comp" and any(one[0] for one in node[3])):
        yield None
    for part in node:
        yield from _awaited(part)
