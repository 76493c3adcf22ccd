"""Sync context: the file that `with open(…) as file` gives is not the one of `async with`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES: list[EvidenceCase] = []


def doubts(question: Question) -> bool:
    """Where the method has a common name, and the receiver comes from a plain `with`."""
    return question.is_entered_plainly and question.name in GENERIC
