"""Receiver methods: method after method of an object is awaited, and one call is not.

Where a class or a file awaits method after method of one object, and calls hardly any of it otherwise, a call that is
not awaited stands out, though nobody else calls that method. Where the name of the object says which it is
(`dataset_ctl`, not `client`), the whole project speaks of it, if it never calls any of it otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.evidence.call_site_evidence import COMMON_RECEIVERS
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.doubts.suffixed_twins import is_plain_twin
from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.evidence.words import pattern, threshold, words
from troth.analysis.semantics.resolve.name_index import receiver_in

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import FunctionFacts
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function, Module

__all__ = ["CASES", "Company"]

CASES = [
    EvidenceCase(
        "the one that is not awaited",
        "async def main(robot):\n    await robot.raise_arm()\n    await robot.lower_arm()\n"
        "    await robot.turn_left()\n    await robot.turn_right()\n    robot.drive_forward()  # lost\n",
    ),
]

_FEW = threshold("receiver_methods", "few")
_FEWEST = threshold("receiver_methods", "fewest")
_TELLING = threshold("receiver_methods", "telling")
_FEWEST_NAMED = threshold("receiver_methods", "fewest_named")
_FEWEST_SITES = threshold("receiver_methods", "fewest_sites")
_UNNAMED = frozenset({"self", "cls", "?"})
_SETTING_UP = pattern("setting_up")
_DOING = words("method_names", "doing")
_ENDING = words("method_names", "ending")


class _Kept(NamedTuple):
    """What is called of one object, by who awaits it and who does not."""

    awaited: set[str]
    bare: set[str]
    line: int


class _Named(NamedTuple):
    """The same of all objects of one name; `sites` counts the functions that await, `aside` those that do not."""

    awaited: set[str]
    sites: int
    aside: dict[str, int]
    place: tuple[str, int]


_Objects = dict[str, dict[str, _Kept]]  # by what the object is called, and by the class in which it is called so


class Company:
    """Looks at what else is called of an object."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._known: MutableMapping[str, _Objects] = program.answers()
        self._named: MutableMapping[str, _Named | None] = program.answers()

    def speak_of(self, text: str, function: Function, *, is_tested: bool) -> Reason | None:
        """Why a callee, as it is written in `function`, is believed to give an awaitable.

        Where the result is tested, more has to speak for it.
        """
        receiver, _, name = text.rpartition(".")
        if self._program.counts.is_plain_somewhere(name):
            return None
        usage = self._here(receiver, function)
        if usage is not None and is_plain_twin(name, usage.awaited):
            return None
        if usage is None or not _speaks(name, usage, is_tested=is_tested):
            return None if is_tested else self._everywhere(receiver, name)
        plainly = len(usage.bare - usage.awaited - {name})
        message = (
            f"{len(usage.awaited)} other methods of `{receiver}` are awaited here, {plainly or 'none'} called plainly"
        )
        return Reason(message, function.module.path, usage.line)

    def _here(self, receiver: str, function: Function) -> _Kept | None:
        homes = self._in(function.module).get(receiver)
        return None if homes is None else homes.get(_home(function, receiver))

    def _everywhere(self, receiver: str, name: str) -> Reason | None:
        """Why an object of that name is believed to be async through and through, wherever it is met."""
        word = receiver.rpartition(".")[2]
        if "_" not in word.strip("_") or len(word) <= _TELLING or word in COMMON_RECEIVERS:
            return None
        if name.startswith("_") or _SETTING_UP.match(name):
            return None
        if word not in self._named:
            self._named[word] = self._all_of(word)
        named = self._named[word]
        if named is None or any(callee != name for callee in named.aside) or named.aside.get(name, 0) > 1:
            return None
        message = f"{len(named.awaited)} methods of `{word}` are awaited in this project, and none is called plainly"
        return Reason(message, *named.place)

    def _all_of(self, word: str) -> _Named | None:
        awaited: set[str] = set()
        aside: dict[str, int] = {}
        sites, place = 0, None
        for function in self._program.index.functions_calling_on(word):
            if is_test(function.module.path):
                continue
            names = _methods_of(word, function.facts.awaited)
            if names:
                awaited |= names
                sites += 1
                place = place or (function.module.path, function.facts.at[0])
            for name in _methods_of(word, function.facts.calls):
                aside[name] = aside.get(name, 0) + 1
        if len(awaited) < _FEWEST_NAMED or sites < _FEWEST_SITES or place is None:
            return None
        return _Named(awaited, sites, aside, place)

    def _in(self, module: Module) -> _Objects:
        """The objects of a file of which enough methods are awaited to speak for others."""
        answer = self._known.get(module.path)
        if answer is None:
            answer = self._known[module.path] = _objects(module.facts.functions)
        return answer


def _speaks(name: str, kept: _Kept, *, is_tested: bool) -> bool:
    """Whether the company that a call keeps speaks for it; what is tested, or done by plain objects too, needs more."""
    if name in kept.awaited or name.startswith("_") or _SETTING_UP.match(name):
        return False
    if name in _ENDING and any(callee.startswith("wait") for callee in kept.awaited):
        return False  # `writer.close()`, and then `await writer.wait_closed()`
    is_told_less = is_tested or name in _DOING
    plainly = len(kept.bare - kept.awaited - {name})
    if plainly * _FEW > len(kept.awaited) or (plainly and is_told_less):
        return False
    return (name in _DOING and not is_tested) or (name not in GENERIC and len(name) >= _TELLING)


def _methods_of(word: str, callees: tuple[str, ...]) -> set[str]:
    return {callee.rpartition(".")[2] for callee in callees if receiver_in(callee) == word}


def _objects(functions: tuple[FunctionFacts, ...]) -> _Objects:
    objects: _Objects = {}
    for f in functions:
        for callee in f.awaited:
            receiver, dot, name = callee.rpartition(".")
            if dot and " " not in callee and receiver not in _UNNAMED:
                homes = objects.setdefault(receiver, {})
                homes.setdefault(_home_of(f, functions, receiver), _Kept(set(), set(), f.at[0])).awaited.add(name)
    telling = {
        receiver: {home: usage for home, usage in homes.items() if len(usage.awaited) >= _FEWEST}
        for receiver, homes in objects.items()
        if any(len(usage.awaited) >= _FEWEST for usage in homes.values())
    }
    for f in functions if telling else ():
        for callee in f.calls:
            receiver, _, name = callee.rpartition(".")
            if receiver in telling:
                usage = telling[receiver].get(_home_of(f, functions, receiver))
                if usage is not None:
                    usage.bare.add(name)
    return telling


def _home(function: Function, receiver: str) -> str:
    """The place in which the same words mean the same object: the file, or for `self` the class."""
    return _home_of(function.facts, function.module.facts.functions, receiver)


def _home_of(f: FunctionFacts, functions: tuple[FunctionFacts, ...], receiver: str) -> str:
    if not receiver.startswith(("self.", "cls.")):
        return ""
    while f.owner == -1 and f.parent > 0:
        f = functions[f.parent]
    return f.qualname.rpartition(".")[0] if f.owner != -1 else ""
