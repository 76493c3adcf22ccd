"""Executor future: only event loops have `run_in_executor`, and it gives a future."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

CASES = [
    EvidenceCase("of an unknown loop", "async def main(loop, work):\n    loop.run_in_executor(None, work)  # lost\n"),
]


def testify(question: Question) -> Testimony | None:
    """By the name alone."""
    if not question.is_method or question.name != "run_in_executor":
        return None
    return Testimony(
        Reason("`run_in_executor` of an event loop gives a future"), awaitable="future", is_shape=True, is_proof=True
    )
