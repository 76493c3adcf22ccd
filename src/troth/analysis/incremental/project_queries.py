"""What is collected from every file for questions about the whole project, and which such questions there are.

A part is what one file says of a kind, without places: two versions of a file that say the same leave all answers as
they are that were read from that kind. Who collects something declares it with `@part` beside the code that reads it
(`Program.said`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from troth.analysis.facts.model import FileFacts

    Finder = Callable[[Any], Collection[str]]  # given the program, which stands above this room

__all__ = ["PARTS", "QUESTIONS", "part", "question"]

PARTS: dict[str, Callable[[FileFacts], Any]] = {}


QUESTIONS: dict[str, Finder] = {}


def question(name: str) -> Callable[[Finder], Finder]:
    """Declare how names are worked out for the whole project that are kept between runs (`Program.names_found`)."""

    def declare(function: Finder) -> Finder:
        QUESTIONS[name] = function
        return function

    return declare


def part(kind: str) -> Callable[[Callable[[FileFacts], Any]], Callable[[FileFacts], Any]]:
    """Declare what a file says of that kind; something false for a file that says nothing of it."""

    def declare(function: Callable[[FileFacts], Any]) -> Callable[[FileFacts], Any]:
        PARTS[kind] = function
        return function

    return declare
