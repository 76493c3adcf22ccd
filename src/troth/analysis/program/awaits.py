"""Knows whether the body of a function ever waits, and for which calls."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import body_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import At
    from troth.analysis.program.entities import Function

__all__ = ["awaited_calls", "waits"]


@lru_cache(maxsize=4096)
def waits(function: Function) -> bool:
    """Whether there is an `await`, an `async for` or an `async with` in the function itself, not in one inside it."""
    return bool(function.facts.awaited) or _waits(body_of(function.facts))


def _waits(node: Any) -> bool:
    if not isinstance(node, tuple):
        return False
    if node:
        tag = node[0]
        if tag == "await" or (tag in ("for", "with") and node[1] is True):
            return True
        if tag == "comp" and any(generator[0] for generator in node[3]):
            return True
        if tag == "lambda":
            return False
    return any(_waits(part) for part in node)


def awaited_calls(function: Function) -> tuple[At, ...]:
    """The places of the calls that are awaited, where the function waits in no other way; else nothing."""
    places = tuple(_awaited(body_of(function.facts)))
    return () if None in places else places  # type: ignore[return-value]


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
