"""Knows what is collected from every file for a question about the whole project.

A part is what one file says of a kind, without places: two versions of a file that say the same leave all answers as
they are that were read from that kind. Who collects something declares it with `@part` beside the code that reads it
(`Program.said`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.analysis.facts.model import FileFacts

__all__ = ["PARTS", "part"]

PARTS: dict[str, Callable[[FileFacts], Any]] = {}


def part(kind: str) -> Callable[[Callable[[FileFacts], Any]], Callable[[FileFacts], Any]]:
    """Declare what a file says of that kind; something false for a file that says nothing of it."""

    def declare(function: Callable[[FileFacts], Any]) -> Callable[[FileFacts], Any]:
        PARTS[kind] = function
        return function

    return declare
