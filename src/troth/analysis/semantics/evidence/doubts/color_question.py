"""Color question: the function asks `iscoroutine(x)`, so that a call without `await` is intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.resolve.color_checks import asks_for_color_of

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES = [
    EvidenceCase(
        "asked for beforehand",
        "import inspect\n\n\nclass Store:\n    async def persist_order(self): ...\n\n\n"
        "async def main(store):\n    if inspect.isawaitable(store):\n        return\n"
        "    store.persist_order()  # lost\n",
    ),
]


def doubts(question: Question) -> bool:
    """By the words of the function."""
    return asks_for_color_of(question.program, question.function, question.text)
