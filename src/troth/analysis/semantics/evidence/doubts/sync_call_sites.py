"""Sync call sites: sync functions use what the same words give, and nobody awaits it: a sync client's namesake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND
from troth.analysis.facts.names import callee_text
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES = [
    EvidenceCase(
        "a sync function beside reads the result",
        "class Ledger:\n    async def sign_order(self, order): ...\n\n\n"
        "def publish(account, order):\n    return account.sign_order(order).raw\n\n\n"
        "async def main(account, order):\n    return account.sign_order(order).raw  # lost\n",
    ),
]


def doubts(question: Question) -> bool:
    """By the other calls: several of a sync function, or one in the same file whose result is read on the spot."""
    siblings = siblings_of(question.program)
    return siblings.is_used_plainly(question.text, question.function) or _is_read_beside(question)


def _is_read_beside(question: Question) -> bool:
    if not question.function.is_async or not question.is_method or question.text.startswith(("self.", "cls.")):
        return False
    beside = [
        function
        for function in question.program.index.functions_naming({question.name})
        if function.module is question.function.module and function is not question.function
    ]
    if any(question.text in function.facts.awaited for function in beside):
        return False
    return any(
        _is_read(node, question.text)
        for function in beside
        if not function.is_async and question.text in function.facts.calls
        for node in walk(function.body())
    )


def _is_read(node: Node, text: str) -> bool:
    """Whether that is an attribute or an item of what a call of these words gives."""
    return node[KIND] in {"attr", "index"} and node[1][KIND] == "call" and callee_text(node[1][CALL_FUNC]) == text
