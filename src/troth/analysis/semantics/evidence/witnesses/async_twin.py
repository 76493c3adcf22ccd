"""Async twin: `ainvoke`, `asave`, `aread`: the method is called as async twins of sync methods are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.evidence.words import pattern

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

_TWIN = pattern("async_twin")

CASES = [
    EvidenceCase("of a chain", "async def main(chain):\n    chain.ainvoke({})  # lost\n"),
]


def testify(question: Question) -> Testimony | None:
    """By the name, where nothing plain in the project is called so."""
    if not question.is_method or not question.function.is_async or _TWIN.match(question.name) is None:
        return None
    if question.program.counts.is_plain_somewhere(question.name):
        return None
    return Testimony(Reason(f"`{question.name}` is how the async twin of a method is called"))
