"""Knows which calls a function makes: what each callee is, what is given to it, and whether it is awaited on the spot.

The walk that follows promises through a function notes its calls on the way. A function is walked only when something
asks about it, and rules ask by the names a function mentions; most functions of a project are never looked at.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.program import library
from troth.analysis.program.calls import callee_text
from troth.analysis.program.library import LibraryFunction
from troth.analysis.program.values import ClassObject, External, FunctionValue, Instance, Value, members_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from troth.analysis.facts.model import At, Node
    from troth.analysis.program.entities import Class, Function, Module
    from troth.analysis.program.link import Program

__all__ = ["Call", "Calling", "names_of"]

Given = tuple[str | None, Value | None]
_ByName = dict[str, list[tuple[int, int]]]
_MADE = re.compile(r"(\b[A-Z]\w*)\(\)\.")  # `threading.Lock().acquire`: a method of an object that was just made


class Call(NamedTuple):
    """One call. `given` are its arguments in order, with the keyword where there is one."""

    caller: Function
    node: Node
    callee: Value | None
    given: tuple[Given, ...]
    is_awaited: bool

    @property
    def at(self) -> At:
        """Its place."""
        return self.node[-1]  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """The callee as written."""
        return callee_text(self.node[1])


class Calling:
    """The calls of functions, each walked once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._asked: tuple[tuple[str, ...], _ByName] | None = None

    def of(self, function: Function) -> tuple[Call, ...]:
        """The calls that `function` makes itself, in the order of the text; those of functions inside it are theirs."""
        return self.program.summary(function).calls

    def is_named(self, name: str) -> bool:
        """Whether some function of the project calls and awaits something of that name."""
        return name in self._awaited_names

    @cached_property
    def _awaited_names(self) -> frozenset[str]:
        return frozenset(
            callee.rpartition(".")[2]
            for module in self.program.own_modules()
            for facts in module.facts.functions
            for callee in facts.awaited
        )

    def functions_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """The functions of the project in which a callee's last name is one of `names`."""
        return self._naming(self._by_name, self.program.paths, names)

    def asked_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """Those of them that stand in the asked files."""
        return self._naming(self._asked_by_name(), self.program.asked, names)

    def names_asked(self) -> Collection[str]:
        """The last names of everything that is called in the asked files."""
        return self._asked_by_name().keys()

    def _naming(self, by_name: _ByName, paths: Sequence[str], names: Iterable[str]) -> Iterator[Function]:
        found = {place for name in names for place in by_name.get(name, ())}
        for number, index in sorted(found):
            yield self.program.module(paths[number]).function(index)

    def _asked_by_name(self) -> _ByName:
        asked = self.program.asked
        if asked == self.program.paths:
            return self._by_name
        if self._asked is None or self._asked[0] != asked:
            self._asked = asked, _by_name(map(self.program.module, asked))
        return self._asked[1]

    def functions_named(self, name: str) -> list[Function]:
        """The functions and methods of the project that are called `name`."""
        paths = self.program.paths
        return [self.program.module(paths[number]).function(index) for number, index in self._defined.get(name, ())]

    def constructors_of(self, name: str) -> list[Function]:
        """The `__init__` of each class of the project that is called `name`."""
        return [cls.module.function(cls.methods["__init__"][-1]) for cls in self._classes.get(name, ())]

    @cached_property
    def _classes(self) -> dict[str, list[Class]]:
        known: dict[str, list[Class]] = {}
        for one in self.functions_named("__init__"):
            if one.owner is not None:
                known.setdefault(one.owner.name, []).append(one.owner)
        return known

    @cached_property
    def _defined(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, module in enumerate(self.program.own_modules()):
            for index, facts in enumerate(module.facts.functions):
                known.setdefault(facts.name, []).append((number, index))
        return known

    @cached_property
    def _by_name(self) -> _ByName:
        return _by_name(self.program.own_modules())


def _by_name(modules: Iterable[Module]) -> _ByName:
    """Functions, as the number of the file and their own, by the last names of what they call."""
    known: _ByName = {}
    for number, module in enumerate(modules):
        for index, facts in enumerate(module.facts.functions):
            place = (number, index)
            for callee in facts.calls:
                known.setdefault(callee.rpartition(".")[2], []).append(place)
            for callee in facts.awaited:
                last = callee.rpartition(".")[2]
                known.setdefault(last if "." in callee else callee.rpartition(" ")[2], []).append(place)
    return known


def names_of(value: Value | None) -> Iterator[str]:
    """The full names under which tables may know what is called: for a method by each ancestor, the nearest first."""
    for one in members_of(value):
        if isinstance(one, External):
            yield one.path
            if "()." in one.path and (made := _MADE.sub(r"\1.", one.path)) != one.path:
                yield made
        elif isinstance(one, ClassObject) and isinstance(one.cls, library.LibraryClass):
            yield one.cls.qualified
        elif isinstance(one, FunctionValue) and isinstance(one.function, LibraryFunction):
            receiver = one.receiver
            if isinstance(receiver, Instance | ClassObject) and isinstance(receiver.cls, library.LibraryClass):
                for ancestor in library.lineage(receiver.cls.qualified):
                    yield f"{ancestor}.{one.function.name}"
            yield one.function.qualname
