"""Protocol method: `__aenter__`, `__aexit__` and `__anext__` give awaitables, whatever object has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

_METHODS = frozenset({"__aenter__", "__aexit__", "__anext__"})

CASES = [
    EvidenceCase(
        "entered by hand",
        "async def main(manager):\n    manager.__aenter__()  # lost\n    await manager.__aexit__(None, None, None)\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """The language says so."""
    if not question.is_method or question.name not in _METHODS:
        return None
    reason = Reason(f"`{question.name}` gives an awaitable, whatever has it")
    return Testimony(reason, is_shape=True, is_proof=True, sure=True)
