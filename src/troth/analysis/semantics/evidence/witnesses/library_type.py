"""Library type: the same method of the same class of an unknown library is awaited elsewhere, and hardly ever not.

Call sites go by words, and the words for one sender differ from class to class. Where annotations and imports tell
which class of a library an object has, that class is what is counted: `output: Sender[int]` here is `requests:
Sender[str]` there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import Case, Testimony
from troth.analysis.semantics.evidence.words import threshold
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.values import External

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "testify"]

_FEWEST = threshold("library_type", "fewest")
_FIRM = threshold("library_type", "firm")
_SHARE = threshold("library_type", "share")

CASES = [
    Case(
        "another name for an object of the same class",
        "from acme.channels import Sender\n\n\nclass Actor:\n"
        "    def __init__(self, output: Sender[int], requests: Sender[str]) -> None:\n"
        "        self._output = output\n        self._requests = requests\n\n"
        "    async def one(self, reply: Sender[int]) -> None:\n        await reply.send(1)\n\n"
        "    async def two(self) -> None:\n        await self._output.send(1)\n\n"
        '    async def three(self) -> None:\n        self._requests.send("x")  # lost\n',
    ),
]


class _Uses(NamedTuple):
    """How many functions await a method, how many async ones call it without, and where the first awaits it."""

    awaited: int
    bare: int
    place: tuple[str, int]


def testify(question: Question) -> Testimony | None:
    """By the other calls of the method, whatever the objects are called."""
    external, name = question.external, question.name
    if not question.is_method or not question.function.is_async or not external.endswith(f"().{name}"):
        return None
    if question.program.counts.awaited_names[name] < _FEWEST or library.knows(external.partition(".")[0]):
        return None
    uses = _uses(question.program, external, name)
    if uses.awaited < _FEWEST or (uses.bare - 1) * _SHARE > uses.awaited:
        return None
    text = external.removesuffix(f"().{name}").rpartition(".")[2]
    reason = Reason(f"`{name}` of a `{text}` is awaited in {uses.awaited} other functions", *uses.place)
    return Testimony(reason, by_sites=True, firm=uses.awaited >= _FIRM and uses.bare <= 1)


def _uses(program: Program, external: str, name: str) -> _Uses:
    answers: MutableMapping[str, _Uses] = program.answers_to("uses of library types")
    answer = answers.get(external)
    if answer is None:
        answers[external] = _Uses(0, 0, ("", 0))  # while it is being found out
        answer = answers[external] = _counted(program, external, name)
    return answer


def _counted(program: Program, external: str, name: str) -> _Uses:
    top, end = external.partition(".")[0], f".{name}"
    functions = [f for f in program.calling.functions_naming({name}) if f.is_async and top in f.module.packages]
    awaiting = [f for f in functions if _has(program, f, f.facts.awaited, end, external)]
    if len(awaiting) < _FEWEST:
        return _Uses(0, 0, ("", 0))
    bare = sum(_has(program, f, f.facts.calls, end, external) for f in functions)
    first = awaiting[0]
    return _Uses(len(awaiting), bare, (first.module.path, first.facts.at[0]))


def _has(program: Program, function: Function, callees: tuple[str, ...], end: str, external: str) -> bool:
    """Whether one of the callees is that method."""
    for callee in callees:
        if callee.endswith(end) and " " not in callee:
            members = program.glance.alternatives(function, callee)
            if members is not None and any(isinstance(m, External) and m.path == external for m in members):
                return True
    return False
