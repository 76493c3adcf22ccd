"""Knows whether the body of a function ever waits."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import body_of

if TYPE_CHECKING:
    from troth.analysis.program.entities import Function

__all__ = ["waits"]


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
