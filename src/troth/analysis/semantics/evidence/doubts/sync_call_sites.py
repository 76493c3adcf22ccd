"""Sync call sites: several functions call the same words, and nobody awaits them: a plain client's namesake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.question import Case

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES: list[Case] = []


def doubts(question: Question) -> bool:
    """By the other calls."""
    return siblings_of(question.program).is_used_plainly(question.text, question.function)
