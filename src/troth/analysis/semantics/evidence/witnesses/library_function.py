"""Library function: function after function of an unknown library is awaited, and all get the same kind of argument.

A client of an API often is a package with a module for each part of it: `users.get_user(sdk.http, …)`. Each of these
functions is called once in a project, so that no other call of it says anything. What the others of the package do says
enough where the call hands over the same carrier, by name, that nearly all awaited ones are handed (`http`, `client`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import CALL_ARGS, CALL_FUNC, CALL_KEYWORDS, KIND, VALUE
from troth.analysis.facts.names import callee_text, dotted
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.evidence.words import pattern, threshold
from troth.analysis.semantics.resolve import library

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Module

__all__ = ["CASES", "testify"]

_DENSE = threshold("library_function", "dense")
_FEWEST = threshold("library_function", "fewest")
_SHARE = threshold("library_function", "share")
_SETTING_UP = pattern("setting_up")

CASES = [
    EvidenceCase(
        "the one that is not awaited",
        "from acme.api import rooms, users\n\n\n"
        + "".join(
            f"async def {name}(sdk):\n    return await {name.rpartition('_')[2]}.{name}(sdk.http, 1)\n\n\n"
            for name in ("get_users", "drop_users", "find_users", "name_users", "get_rooms", "drop_rooms", "find_rooms")
        )
        + "async def main(sdk):\n    rooms.name_rooms(sdk.http, 2)  # lost\n",
    ),
]


class _Package(NamedTuple):
    """The functions of a package that are awaited, those that are called without, and what most awaited ones get."""

    awaited: frozenset[str]
    bare: frozenset[str]
    carriers: frozenset[str]
    place: tuple[str, int]


def testify(question: Question) -> Testimony | None:
    """By what else is called of the package that the function comes from."""
    external, name = question.external, question.name
    if not question.function.is_async or "(" in external or external.count(".") < 2 or not name.islower():
        return None
    if name.startswith("_") or _SETTING_UP.match(name) or library.knows(external.partition(".")[0]):
        return None
    package = _package_of(question.program, _home_of(external))
    if len(package.awaited - {external}) < _FEWEST or external in package.awaited:
        return None
    if len(package.bare - package.awaited - {external}) * _DENSE > len(package.awaited):
        return None
    if package.carriers.isdisjoint(_handed(question.node)):
        return None
    why = f"{len(package.awaited)} other functions of `{_home_of(external)}` are awaited, and get the same argument"
    return Testimony(Reason(why, *package.place), by_sites=True, firm=True)


def _home_of(external: str) -> str:
    """The package whose modules have the functions: `acme.api` of `acme.api.users.get_user`."""
    parts = external.split(".")
    return ".".join(parts[: -2 if len(parts) > 3 else -1])


def _package_of(program: Inference, home: str) -> _Package:
    answers: MutableMapping[str, _Package] = program.answers_to("functions of library packages")
    answer = answers.get(home)
    if answer is None:
        answers[home] = _Package(frozenset(), frozenset(), frozenset(), ("", 0))  # while it is being found out
        answer = answers[home] = _counted(program, home)
    return answer


def _counted(program: Inference, home: str) -> _Package:
    awaited: dict[str, tuple[str, int]] = {}
    bare: set[str] = set()
    carriers: Counter[str] = Counter()
    for module in _modules_importing(program, home.partition(".")[0]):
        paths = _paths_in(module, home)
        for function in map(module.function, range(len(module.facts.functions))):
            waiting = {callee: path for callee in function.facts.awaited if (path := _path_of(paths, callee, home))}
            bare |= {_path_of(paths, callee, home) for callee in function.facts.calls if callee not in waiting}
            for node in of_kind(function.body(), "await") if waiting else ():
                path = waiting.get(callee_text(node[VALUE][CALL_FUNC]), "") if node[VALUE][KIND] == "call" else ""
                if path and path not in awaited:
                    awaited[path] = (module.path, function.facts.at[0])
                    carriers.update(set(_handed(node[VALUE])))
    bare.discard("")
    most = frozenset(carrier for carrier, number in carriers.items() if number * _SHARE >= len(awaited) * (_SHARE - 1))
    return _Package(frozenset(awaited), frozenset(bare), most, next(iter(awaited.values()), ("", 0)))


def _modules_importing(program: Inference, top: str) -> Iterator[Module]:
    for path in program.paths:
        module = program.module(path)
        if top in module.packages:
            yield module


def _paths_in(module: Module, home: str) -> dict[str, str]:
    """What the names stand for that a file imports from the package, as far as the imports alone tell."""
    top = home.partition(".")[0]
    return {
        i.local: f"{i.module}.{i.name}" if i.name else i.module if i.local != top else top
        for i in module.facts.imports
        if not i.level and i.module.partition(".")[0] == top
    }


def _path_of(paths: dict[str, str], callee: str, home: str) -> str:
    """Where a callee comes from, if it is a function of the package."""
    root, dot, rest = callee.partition(".")
    path = f"{paths.get(root, '')}{dot}{rest}"
    is_of_it = root in paths and path.count(".") > 1 and path.rpartition(".")[2].islower() and " " not in callee
    return path if is_of_it and _home_of(path) == home else ""


def _handed(call: Node) -> Iterator[str]:
    """The last names of the variables and attributes that a call hands over."""
    for argument in (*call[CALL_ARGS], *(value for _, value in call[CALL_KEYWORDS])):
        name = dotted(argument)
        if name:
            yield name.rpartition(".")[2]
