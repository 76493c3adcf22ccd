"""Foreign receiver: the function calls something else of the same object that no class with such a method has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts"]

CASES = [
    EvidenceCase(
        "an object with keys",
        "class CaseBackend:\n    async def read_state(self): ...\n\n\n"
        "async def main(tree):\n    print(list(tree.flow.keys()))\n    tree.flow.read_state()  # lost\n",
    ),
]


def doubts(question: Question) -> bool:
    """By the other calls in the same function, where all that the classes have is known."""
    receiver = question.text.rpartition(".")[0]
    if not receiver or receiver in {"self", "cls"} or "…" in receiver:
        return False
    others = set(_called_of(receiver, question)) - {question.name}
    owners = _owners(question) if others else []
    return bool(owners) and any(all(_lacks(owner, other, question) for owner in owners) for other in others)


def _called_of(receiver: str, question: Question) -> Iterator[str]:
    start = f"{receiver}."
    for callee in question.function.facts.calls:
        if callee.startswith(start) and callee.removeprefix(start).isidentifier():
            yield callee.removeprefix(start)


def _owners(question: Question) -> list[Class]:
    """The classes that define the method, and those that derive from them."""
    program = question.program
    owners = [function.owner for function in program.index.functions_named(question.name) if function.owner is not None]
    return [relative for owner in owners for relative in (owner, *program.classes.children(owner))]


def _lacks(owner: Class, name: str, question: Question) -> bool:
    classes = question.program.classes
    if classes.has(owner, name) is not False or classes.has(owner, "__getattr__") is not False:
        return False
    ancestors = [ancestor for ancestor in classes.order(owner) if isinstance(ancestor, Class)]
    return not any(name == attribute for ancestor in ancestors for attribute, *_ in ancestor.facts.self_attributes)
