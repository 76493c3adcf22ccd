"""Find which calls a function makes: what each callee is, what is given to it, and whether it is awaited on the spot.

The walk that follows awaitables through a function notes its calls on the way. A function is walked only when something
asks about it, and rules ask by the names a function mentions; most functions of a project are never looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.incremental.dependencies import Words
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.resolve.name_index import called_in
from troth.analysis.semantics.summary import Call
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, External, FunctionValue, Instance, Value, members_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["Call", "Calling", "names_of"]

_ByName = dict[str, list[tuple[int, int]]]
_MADE = re.compile(r"(\b[A-Z]\w*)\(\)\.")  # `threading.Lock().acquire`: a method of an object that was just made


class Calling:
    """The calls of functions, each walked once."""

    def __init__(self, program: Inference) -> None:
        self.program = program
        self._asked: tuple[tuple[str, ...], _ByName] | None = None

    def of(self, function: Function) -> tuple[Call, ...]:
        """The calls that `function` makes itself, in the order of the text; those of functions inside it are theirs."""
        return self.program.summary(function).calls

    def is_named(self, name: str) -> bool:
        """Whether some function of the project calls and awaits something of that name."""
        return self.program.index.is_awaited(name)

    def functions_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """The functions of the project in which a callee's last name is one of `names`."""
        return self.program.index.functions_naming(names)

    def asked_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """Those of them that stand in the asked files."""
        paths = self.program.asked
        if len(paths) == len(self.program.paths):
            yield from self.functions_naming(names)
            return
        by_name = self._asked_by_name()
        if isinstance(names, Words):
            names = names.among(by_name)  # whoever goes through the names themselves is not noted as their reader
        elif isinstance(names, set | frozenset) and len(names) > len(by_name):  # of the whole project, about one file
            names = [name for name in by_name if name in names]
        places = {place for name in names for place in by_name.get(name, ())}
        for number, index in sorted(places):
            yield self.program.module(paths[number]).function(index)

    def names_asked(self) -> Collection[str]:
        """The last names of everything that is called in the asked files."""
        if len(self.program.asked) == len(self.program.paths):
            return self.program.index.called_names()
        return self._asked_by_name().keys()

    def _asked_by_name(self) -> _ByName:
        """The functions of the asked files, by the last names of what they call."""
        paths = self.program.asked
        if self._asked is None or self._asked[0] != paths:
            by_name: _ByName = {}
            for number, module in enumerate(map(self.program.module, paths)):
                for index, facts in enumerate(module.facts.functions):
                    for name in called_in(facts):
                        by_name.setdefault(name, []).append((number, index))
            self._asked = paths, by_name
        return self._asked[1]

    def functions_named(self, name: str) -> list[Function]:
        """The functions and methods of the project that are called `name`."""
        return self.program.index.functions_named(name)

    def constructors_of(self, name: str) -> list[Function]:
        """The `__init__` of each class of the project that is called `name`."""
        return self.program.index.constructors_of(name)


def names_of(value: Value | None) -> Iterator[str]:
    """The full names under which tables may know what is called: for a method by each ancestor, the nearest first."""
    for member in members_of(value):
        if isinstance(member, External):
            yield member.path
            if "()." in member.path and (method_path := _MADE.sub(r"\1.", member.path)) != member.path:
                yield method_path
        elif isinstance(member, ClassObject):
            if not (isinstance(member.cls, Class) and member.cls.module.own):
                yield member.cls.qualified
        elif isinstance(member, FunctionValue) and isinstance(member.function, LibraryFunction):
            receiver = member.receiver
            if isinstance(receiver, Instance | ClassObject) and isinstance(receiver.cls, library.LibraryClass):
                for ancestor in library.lineage(receiver.cls.qualified):
                    yield f"{ancestor}.{member.function.name}"
            yield member.function.qualname
        elif (
            isinstance(member, FunctionValue)
            and isinstance(member.function, Function)
            and not member.function.module.own
        ):
            yield f"{member.function.module.name}.{member.function.qualname}"  # of an installed package that was read
