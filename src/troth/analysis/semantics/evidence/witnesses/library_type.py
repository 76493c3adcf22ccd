"""Library type: the same method of the same class of an unknown library is awaited elsewhere, and hardly ever not.

Call sites go by words, and the words for one sender differ from class to class. Where annotations and imports tell
which class of a library an object has, that class is what is counted: `output: Sender[int]` here is `requests:
Sender[str]` there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.findings.phrases import with_article
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.evidence.words import pattern, threshold
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.name_index import receiver_in
from troth.analysis.semantics.values import External

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "testify"]

_FEWEST = threshold("library_type", "fewest")
_FIRM = threshold("library_type", "firm")
_SHARE = threshold("library_type", "share")
_DENSE = threshold("library_type", "dense")
_TELLING = threshold("library_type", "telling")
_PLAIN_SITES = threshold("library_type", "plain_sites")
_SETTING_UP = pattern("setting_up")

CASES = [
    EvidenceCase(
        "another name for an object of the same class",
        "from acme.channels import Sender\n\n\nclass Actor:\n"
        "    def __init__(self, output: Sender[int], requests: Sender[str]) -> None:\n"
        "        self._output = output\n        self._requests = requests\n\n"
        "    async def one(self, reply: Sender[int]) -> None:\n        await reply.send(1)\n\n"
        "    async def two(self) -> None:\n        await self._output.send(1)\n\n"
        '    async def three(self) -> None:\n        self._requests.send("x")  # lost\n',
    ),
    EvidenceCase(
        "method after method of the class is awaited",
        "from acme import Client\n\n\n"
        + "".join(
            f"async def {word}(client: Client):\n    await client.fetch_{word}()\n\n\n"
            for word in ("users", "teams", "roles", "items", "rooms", "bills", "tasks", "notes")
        )
        + "async def main(account: Client):\n    account.fetch_stars()  # lost\n",
    ),
]


class _Company(NamedTuple):
    """The methods of a class that are awaited, those that async functions call without, and how many of all do.

    `place` is where the first is awaited.
    """

    awaited: set[str]
    bare: set[str]
    plain_sites: dict[str, int]
    place: tuple[str, int]


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
    if library.knows(external.partition(".")[0]):
        return None
    return _by_method(question, external, name) or _by_class(question, external, name)


def _by_method(question: Question, external: str, name: str) -> Testimony | None:
    if question.program.counts.awaited_names[name] < _FEWEST:
        return None
    uses = _uses(question.program, external, name)
    if uses.awaited < _FEWEST or (uses.bare - 1) * _SHARE > uses.awaited:
        return None
    text = external.removesuffix(f"().{name}").rpartition(".")[2]
    reason = Reason(f"`{name}` of {with_article(text)} is awaited in {uses.awaited} other functions", *uses.place)
    return Testimony(reason, by_sites=True, firm=uses.awaited >= _FIRM and uses.bare <= 1)


def _by_class(question: Question, external: str, name: str) -> Testimony | None:
    """Where method after method of the class is awaited, and hardly any called otherwise, so has to be the next one."""
    if name in GENERIC or name.startswith("_") or len(name) < _TELLING or _SETTING_UP.match(name):
        return None
    program, owner = question.program, external.removesuffix(f".{name}")
    word = receiver_in(question.text)
    answers: MutableMapping[tuple[str, str], _Company] = program.answers_to("company of library types")
    company = answers.get((owner, word))
    if company is None:
        answers[owner, word] = _Company(set(), set(), {}, ("", 0))  # while it is being found out
        company = answers[owner, word] = _company_of(program, owner, word)
    if len(company.awaited) < _DENSE or len(company.bare - company.awaited - {name}) * _DENSE > len(company.awaited):
        return None
    if name not in company.awaited and _is_meant_plainly(name, company):
        return None
    text = owner.removesuffix("()").rpartition(".")[2]
    return Testimony(
        Reason(f"{len(company.awaited)} other methods of {with_article(text)} are awaited", *company.place),
        by_sites=True,
    )


def _is_meant_plainly(name: str, company: _Company) -> bool:
    """Whether several functions call the method without awaiting, or others of its kind: `get_power` and `get_mute`."""
    if company.plain_sites.get(name, 0) >= _PLAIN_SITES:
        return True
    kind = f"{name.partition('_')[0]}_"
    beside = any(other.startswith(kind) for other in company.plain_sites if other != name)
    return beside and not any(other.startswith(kind) for other in company.awaited)


def _company_of(program: Inference, owner: str, word: str) -> _Company:
    """What is called of the class where its library is imported, and everywhere of objects with the same name."""
    top = owner.partition(".")[0]
    near = (
        function
        for path in program.paths
        if top in program.module(path).packages
        for function in map(program.module(path).function, range(len(program.module(path).facts.functions)))
    )
    named = program.index.functions_calling_on(word) if word else ()
    everybody = list(dict.fromkeys((*near, *named)))
    functions = [function for function in everybody if function.is_async]
    awaited: set[str] = set()
    place = ("", 0)
    for function in functions:
        methods = _methods_of(program, function, function.facts.awaited, owner)
        if methods and not awaited:
            place = (function.module.path, function.facts.at[0])
        awaited |= methods
    if len(awaited) < _DENSE:
        return _Company(set(), set(), {}, place)
    bare: set[str] = set()
    plain_sites: dict[str, int] = {}
    for function in everybody:
        methods = _methods_of(program, function, function.facts.calls, owner)
        if function.is_async:
            bare |= methods
        for method in methods - awaited:
            plain_sites[method] = plain_sites.get(method, 0) + 1
    return _Company(awaited, bare, plain_sites, place)


def _methods_of(program: Inference, function: Function, callees: tuple[str, ...], owner: str) -> set[str]:
    """The last names of those callees that are methods of the class."""
    methods: set[str] = set()
    for callee in callees:
        name = callee.rpartition(".")[2]
        if "." not in callee or " " in callee or name in methods:
            continue
        members = program.alternatives(function, callee)
        if members is not None and any(isinstance(m, External) and m.path == f"{owner}.{name}" for m in members):
            methods.add(name)
    return methods


def _uses(program: Inference, external: str, name: str) -> _Uses:
    answers: MutableMapping[str, _Uses] = program.answers_to("uses of library types")
    answer = answers.get(external)
    if answer is None:
        answers[external] = _Uses(0, 0, ("", 0))  # while it is being found out
        answer = answers[external] = _counted(program, external, name)
    return answer


def _counted(program: Inference, external: str, name: str) -> _Uses:
    top, end = external.partition(".")[0], f".{name}"
    functions = [f for f in program.index.functions_naming({name}) if f.is_async and top in f.module.packages]
    awaiting = [f for f in functions if _has(program, f, f.facts.awaited, end, external)]
    if len(awaiting) < _FEWEST:
        return _Uses(0, 0, ("", 0))
    bare = sum(_has(program, f, f.facts.calls, end, external) for f in functions)
    first = awaiting[0]
    return _Uses(len(awaiting), bare, (first.module.path, first.facts.at[0]))


def _has(program: Inference, function: Function, callees: tuple[str, ...], end: str, external: str) -> bool:
    """Whether one of the callees is that method."""
    for callee in callees:
        if callee.endswith(end) and " " not in callee:
            members = program.alternatives(function, callee)
            if members is not None and any(isinstance(m, External) and m.path == external for m in members):
                return True
    return False
