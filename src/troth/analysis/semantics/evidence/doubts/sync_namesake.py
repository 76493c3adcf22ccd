"""Sync namesake: a sync function that calls a method of a guessed receiver more likely means the sync one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.infer.dynamic_attributes import has_stand_ins

if TYPE_CHECKING:
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "doubts"]

CASES: list[EvidenceCase] = []


def doubts(program: Inference, called: Function) -> bool:
    """Where the project has a sync function of that name, or objects that run coroutines themselves."""
    return program.counts.colors(called.name)[1] > 0 or has_stand_ins(program)
