"""Library name: a library that the file imports has a method of that name, and only as a coroutine function.

Of something that comes from a library, in another version than the one that is known, only that library speaks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE
from troth.analysis.facts.names import callee_text, dotted
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.evidence.witnesses.definition_name import is_plain_elsewhere
from troth.analysis.semantics.evidence.words import threshold
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library_variants import is_plain_here

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["CASES", "testify"]

_TELLING = threshold("library_name", "telling")
_OF_A_CLASS = re.compile(r"(?:^|\.)[A-Z][^.()]*\.[^.]+$")  # `Api.whoami`, not `Api().whoami`

CASES = [
    EvidenceCase(
        "of an unknown object",
        "import discord\n\n\nasync def main(channel):\n    channel.create_webhook(name='x')  # lost\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By the tables of the libraries that the file imports."""
    if not question.is_method or not question.function.is_async:
        return None
    if _comes_from_plain_client(question) or _is_set_by_its_class(question):
        return None
    reason = _by_library(question.program, question.name, question.path, question.origin_of_base)
    return None if reason is None else Testimony(reason)


def _comes_from_plain_client(question: Question) -> bool:
    """`client = chromadb.PersistentClient()`: not the `AsyncHttpClient` that is all the table knows the methods of."""
    makers = [
        maker
        for maker in _makers(question)
        if maker[:1].isupper() and maker.endswith("Client") and not library.is_called_async(f".{maker}")
    ]
    return bool(makers) and any(
        library.is_called_async(f".{name}") and name.endswith("Client")
        for top in question.program.module(question.path).packages
        for name in library.async_names(top)
    )


def _is_set_by_its_class(question: Question) -> bool:
    """`self.async_add_entities = async_add_entities`: a callback that was handed in, and no method of a library."""
    base, _, attribute = dotted(question.callee).partition(".")
    owner = question.function.owner
    if base != "self" or owner is None:
        return False
    return any(name == attribute for name, *_ in owner.facts.self_attributes)


def _makers(question: Question) -> Iterator[str]:
    """The last names of what is called to make the receiver: a variable, or an attribute of the object itself."""
    function = question.function
    name = dotted(question.callee[ATTR_BASE])
    base, _, attribute = name.partition(".")
    made = [function.origins.get(name, "")] if name else []
    if base == "self" and function.owner is not None:
        attributes = function.owner.facts.self_attributes
        made += [callee_text(value) for own, _, _, value in attributes if own == attribute and value is not None]
    for maker in made:
        if maker.endswith("()"):
            yield maker.removesuffix("()").rpartition(".")[2]


def _by_library(program: Inference, name: str, asking: str, external: str) -> Reason | None:
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
            if is_plain_here(program, top, name):
                return None
            if name in library.methods_of_async_twins(top) and not _asks_for_async(program, top, asking):
                continue  # it has sync clients as well, and one of these may be meant
            return Reason(f"`{name}` of {top} is a coroutine function in every class that has it")
    return None


def _asks_for_async(program: Inference, top: str, asking: str) -> bool:
    """Whether a file has something of a package whose name says that it is async."""
    answers: MutableMapping[tuple[str, str], bool] = program.answers_to("users of async packages")
    answer = answers.get((top, asking))
    if answer is None:
        file = program.module(asking).facts
        imported = (f"{i.module}.{i.name or ''}" for i in file.imports if i.module.partition(".")[0] == top)
        names = (name for f in file.functions for name in (*f.calls, *f.awaited) if name.startswith(f"{top}."))
        answer = answers[top, asking] = any(map(library.is_called_async, (*imported, *names)))
    return answer
