"""Foreign fixture: a test is given an object that no fixture of the project makes, so a plugin of pytest does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, KIND, NAME_ID
from troth.analysis.facts.model import PARAM_ANNOTATION
from troth.analysis.facts.nodes import words_of
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.infer.pytest_fixtures import takes_fixtures

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["CASES", "doubts"]

CASES = [
    EvidenceCase(
        "a clock that a plugin stops",
        "import pytest\n\n\nclass FakeMember:\n    async def move_to(self, channel): ...\n\n\n"
        "async def test_backoff(freezer):\n    freezer.move_to('2025-01-01')  # lost\n",
    ),
]

_GIVEN_OTHERWISE = ("parametrize", "patch", "given")  # decorators that fill parameters


def doubts(question: Question) -> bool:
    """By the parameter: no type, no values in a decorator, and no fixture of its name anywhere in the project."""
    function, callee = question.function, question.callee
    if not question.is_method or callee[ATTR_BASE][KIND] != "name" or not takes_fixtures(function):
        return False
    if not is_test(question.path) and "pytest" not in function.module.packages:
        return False
    name = callee[ATTR_BASE][NAME_ID]
    param = function.params.get(name)
    if param is None or param[PARAM_ANNOTATION] is not None or name in {"self", "cls"}:
        return False
    words = {word for decorator in function.facts.decorators for word in words_of(decorator)}
    return words.isdisjoint(_GIVEN_OTHERWISE) and not _is_made_here(question.program, name)


def _is_made_here(program: Inference, name: str) -> bool:
    return any(function.decorated_with("fixture") for function in program.index.functions_named(name))
