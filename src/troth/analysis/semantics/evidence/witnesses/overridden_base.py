"""Overridden base: `super().save()` in an async `save`, where another override of that name awaits it.

One method alone says nothing of a base that nobody knows: it may be the plain one that was made async here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import Case, Testimony

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

CASES = [
    Case(
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
        or callee[0] != "attr"
        or callee[2] != function.name
        or callee[1][:2] != ("call", ("name", "super"))
        or callee[1][2]
        or function.name.startswith("__")
    ):
        return None
    awaited = f"?.{function.name}"
    for namesake in question.program.calling.functions_named(function.name):
        if namesake is not function and awaited in namesake.facts.awaited:
            return Testimony(Reason(f"`{function.qualname}`, which overrides it, is `async def`"), is_shape=True)
    return None
