"""Overridden base: `super().save()` in an async `save`, where another override of that name awaits it.

One method alone says nothing of a base that nobody knows: it may be the sync one that was made async here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_ARGS, KIND
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

CASES = [
    EvidenceCase(
        "another override awaits it",
        "from somewhere import Base\n\n\nclass One(Base):\n    async def setup_it(self):\n"
        "        super().setup_it()  # lost\n\n\nclass Two(Base):\n    async def setup_it(self):\n"
        "        await super().setup_it()\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By the others of its name, which await the base's."""
    callee, function = question.callee, question.function
    if (
        not function.is_async
        or callee[KIND] != "attr"
        or callee[ATTR_NAME] != function.name
        or callee[ATTR_BASE][:2] != ("call", ("name", "super"))
        or callee[ATTR_BASE][CALL_ARGS]
        or function.name.startswith("__")
        or _is_asked_for(question)
    ):
        return None
    awaited = f"?.{function.name}"
    for namesake in question.program.index.functions_named(function.name):
        if namesake is not function and awaited in namesake.facts.awaited:
            return Testimony(Reason(f"`{function.qualname}`, which overrides it, is `async def`"), is_shape=True)
    return None


def _is_asked_for(question: Question) -> bool:
    """`if hasattr(super(), "stop")`: whoever asks does not know of a base that has it."""
    function = question.function
    if "hasattr" not in function.facts.calls:
        return False
    source = question.program.text(function.module.path).cut(*function.facts.at)
    return re.search(rf"""\bhasattr\(\s*super\(\)\s*,\s*["']{function.name}["']""", source) is not None
