"""Proxy objects: a `__getattr__` of the project runs coroutines itself, and a plain function may well hold one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import Case
from troth.analysis.semantics.infer.dynamic_attributes import has_stand_ins

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES: list[Case] = []


def doubts(question: Question) -> bool:
    """In plain functions, where the project has such objects."""
    return not question.function.is_async and has_stand_ins(question.program)
