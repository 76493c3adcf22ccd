"""Call sites: the same callee, as it is written, is awaited elsewhere and hardly ever used without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, CALL_KEYWORDS, KIND, VALUE
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

CASES = [
    EvidenceCase(
        "the same words in one class",
        "class Service:\n    def __init__(self, backend):\n        self.backend = backend\n\n"
        "    async def one(self):\n        await self.backend.reload_index()\n\n"
        "    async def two(self):\n        await self.backend.reload_index()\n\n"
        "    async def three(self):\n        self.backend.reload_index()  # lost\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By counting, within the reach that the words have; see `evidence/call_site_evidence.py`."""
    if not question.function.is_async or _is_of_the_other_kind(question):
        return None
    witness = siblings_of(question.program).speak_of(question.text, question.function, question.origin_of_base)
    return None if witness is None else Testimony(witness.reason, by_sites=True, firm=witness.firm)


def _is_of_the_other_kind(question: Question) -> bool:
    """`agent.run(text, stream=True)` gives a stream where `await agent.run(text)` gives an answer.

    The same words say something of it only where this file awaits a call that streams as well.
    """
    return _streams(question.node) and not any(
        _streams(awaited[VALUE]) and last_name(awaited[VALUE][CALL_FUNC]) == question.name
        for function in question.program.index.functions_naming({question.name})
        if function.module is question.function.module
        for awaited in of_kind(function.body(), "await")
        if awaited[VALUE][KIND] == "call"
    )


def _streams(call: Node) -> bool:
    return ("stream", ("const", "bool", "True")) in call[CALL_KEYWORDS]
