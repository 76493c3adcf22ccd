"""Sync flag: `submit(job, sync=True)` asks for the result itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_KEYWORDS
from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.evidence.words import words

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "asks_for_sync", "doubts"]

_FLAGS = words("keywords", "sync")

CASES = [
    EvidenceCase(
        "asked for at the call",
        "class Queue:\n    async def submit_job(self, job, sync=False): ...\n\n\n"
        "async def main(queue):\n    queue.submit_job(1, sync=True)  # lost\n",
    ),
]


def asks_for_sync(node: Node) -> bool:
    """Whether a call says that it wants the result itself."""
    return any(name in _FLAGS and value == ("const", "bool", "True") for name, value in node[CALL_KEYWORDS])


def doubts(question: Question) -> bool:
    """Whether the call says so."""
    return asks_for_sync(question.node)
