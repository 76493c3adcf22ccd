"""Test double: `mock_client.save()` has methods of any name, in the color that its test gave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.evidence.words import pattern

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts", "is_test_double"]

_DOUBLE = pattern("test_double")

CASES = [
    EvidenceCase(
        "called a mock",
        "class Store:\n    async def persist_order(self): ...\n\n\n"
        "async def main(mock_store):\n    mock_store.persist_order()  # lost\n",
    ),
]


def is_test_double(text: str) -> bool:
    """Whether the receiver of a callee, as it is written, is called so."""
    return _DOUBLE.search(text.rpartition(".")[0]) is not None


def doubts(question: Question) -> bool:
    """By the receiver's name."""
    return is_test_double(question.text)
