"""Call sites: the same callee, as it is written, is awaited elsewhere and hardly ever used without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.question import Case, Testimony

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

CASES = [
    Case(
        "the same words in one class",
        "class Service:\n    def __init__(self, backend):\n        self.backend = backend\n\n"
        "    async def one(self):\n        await self.backend.reload_index()\n\n"
        "    async def two(self):\n        await self.backend.reload_index()\n\n"
        "    async def three(self):\n        self.backend.reload_index()  # lost\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By counting, within the reach that the words have; see `evidence/call_site_evidence.py`."""
    if not question.function.is_async:
        return None
    witness = siblings_of(question.program).speak_of(question.text, question.function, question.origin_of_base)
    return None if witness is None else Testimony(witness.reason, by_sites=True, firm=witness.firm)
