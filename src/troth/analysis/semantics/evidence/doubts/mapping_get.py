"""Mapping get: `client.hooks.get("request", [])` has the shape of a dictionary's `get`, with a key and a default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_ARGS, CALL_KEYWORDS, KIND
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

_DEFAULTS = frozenset({"const", "list", "dict", "tuple", "set"})

CASES = [
    EvidenceCase(
        "an attribute of an async client",
        "from acme import AsyncClient\n\n\nasync def one(client: AsyncClient):\n"
        '    await client.users.get("x")\n\n\nasync def two(client: AsyncClient):\n'
        '    return len(client.event_hooks.get("request", []))  # lost\n',
    ),
]


def doubts(question: Question) -> bool:
    """By what is passed: a string, and a literal in the second place."""
    if question.name not in {"get", "pop", "setdefault"} or not question.is_method:
        return False
    arguments = question.node[CALL_ARGS]
    return (
        len(arguments) == 2
        and not question.node[CALL_KEYWORDS]
        and arguments[0][:2] == ("const", "str")
        and arguments[1][KIND] in _DEFAULTS
    )
