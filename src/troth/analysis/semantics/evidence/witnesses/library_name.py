"""Library name: a library that the file imports has a method of that name, and only as a coroutine function.

Of something that comes from a library, in another version than the one that is known, only that library speaks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import Case, Testimony
from troth.analysis.semantics.evidence.witnesses.definition_name import is_plain_elsewhere
from troth.analysis.semantics.evidence.words import threshold
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library_variants import is_plain_here

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.program import Program

__all__ = ["CASES", "testify"]

_TELLING = threshold("library_name", "telling")
_OF_A_CLASS = re.compile(r"(?:^|\.)[A-Z][^.()]*\.[^.]+$")  # `Api.whoami`, not `Api().whoami`

CASES = [
    Case(
        "of an unknown object",
        "import discord\n\n\nasync def main(channel):\n    channel.create_webhook(name='x')  # lost\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By the tables of the libraries that the file imports."""
    if not question.is_method or not question.function.is_async:
        return None
    reason = _by_library(question.program, question.name, question.path, question.origin_of_base)
    return None if reason is None else Testimony(reason)


def _by_library(program: Program, name: str, asking: str, external: str) -> Reason | None:
    if name in GENERIC or len(name) < _TELLING or any(program.counts.colors(name)):
        return None
    if is_plain_elsewhere(program, name, asking):
        return None
    if name.startswith("_"):
        return None  # of what is private the tables know little
    if _OF_A_CLASS.search(external):
        return None  # a class that the table leaves out has nothing async in it
    for top in [external.partition(".")[0]] if external else sorted(program.module(asking).packages):
        home = program.finder.find(top, asking)
        if home is not None and program.finder.name_of(home) == top:
            continue  # the project is that library, and its own files say what it has
        if name in library.async_methods(top) and not program.is_older(top):
            if is_plain_here(top, name, program.allowed):
                return None
            if name in library.methods_of_async_twins(top) and not _asks_for_async(program, top, asking):
                continue  # it has plain clients as well, and one of these may be meant
            return Reason(f"`{name}` of {top} is a coroutine function in every class that has it")
    return None


def _asks_for_async(program: Program, top: str, asking: str) -> bool:
    """Whether a file has something of a package whose name says that it is async."""
    answers: MutableMapping[tuple[str, str], bool] = program.answers_to("users of async packages")
    answer = answers.get((top, asking))
    if answer is None:
        file = program.module(asking).facts
        imported = (f"{i.module}.{i.name or ''}" for i in file.imports if i.module.partition(".")[0] == top)
        names = (name for f in file.functions for name in (*f.calls, *f.awaited) if name.startswith(f"{top}."))
        answer = answers[top, asking] = any(map(library.is_called_async, (*imported, *names)))
    return answer
