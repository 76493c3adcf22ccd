"""Knows who of a project says a name: calls it, defines it, derives from it, is decorated with it, mentions it.

Each of these is one look through all files, made when the first question comes. Whoever asks is noted as a reader of
what all files say under that name; `said` gives what one file says under each, so that two versions of it can be
compared.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC, GENERATOR
from troth.analysis.facts.names import decorator_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.facts.model import ClassFacts, FileFacts, FunctionFacts
    from troth.analysis.program.entities import Class, Function
    from troth.analysis.program.link import Program

__all__ = ["Index", "called_in", "class_keys", "function_keys", "said"]

_ANY = "?"  # a base that is no name: what it means only a look at it can tell


class Index:
    """Functions, classes and files by the names they say; places are the number of the file and their own."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def _note(self, kind: str, name: str) -> None:
        reads = self._program.reads
        if reads is not None:
            reads.log.append((kind, name))

    def functions_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """The functions in which a callee's last name is one of `names`, in the order of files."""
        found: set[tuple[int, int]] = set()
        for name in names:
            self._note("calls", name)
            found.update(self._calls.get(name, ()))
        yield from self._functions(sorted(found))

    def functions_named(self, name: str) -> list[Function]:
        """The functions and methods that are called `name`."""
        self._note("defs", name)
        return list(self._functions(self._defs.get(name, ())))

    def plain_callers(self, name: str) -> Iterator[Function]:
        """The plain functions, no generators and not decorated, that call something of that last name."""
        self._note("plain calls", name)
        yield from self._functions(place for place, _ in self._plain_calls.get(name, ()))

    def names_of_plain_callers(self, name: str) -> set[str]:
        """Their names alone."""
        self._note("plain calls", name)
        return {one for _, one in self._plain_calls.get(name, ())}

    def constructors_of(self, name: str) -> list[Function]:
        """The `__init__` of each class that is called `name`."""
        self._note("inits", name)
        return list(self._functions(self._inits.get(name, ())))

    def decorated_with(self, name: str) -> list[Function]:
        """The functions with a decorator whose last name is `name`."""
        self._note("decorated", name)
        return list(self._functions(self._decorated.get(name, ())))

    def is_awaited(self, name: str) -> bool:
        """Whether some function calls and awaits something of that name."""
        self._note("awaited", name)
        return name in self._awaited

    def classes_based_on(self, name: str) -> Iterator[Class]:
        """The classes that have a base of that last name, or one that is no name."""
        self._note("bases", name)
        self._note("bases", _ANY)
        yield from self._classes_at(self._bases.get(name, ()))
        yield from self._classes_at(self._bases.get(_ANY, ()))

    def other_names(self, name: str) -> Iterable[str]:
        """The names under which something called `name` is imported or assigned somewhere."""
        self._note("aliases", name)
        return self._aliases.get(name, ())

    def classes_like(self, word: str) -> list[Class]:
        """The classes at module level that are called `word`, whatever their case and underscores."""
        self._note("convention", word)
        return list(self._classes_at(self._conventional.get(word, ())))

    def files_mentioning(self, names: Iterable[str]) -> list[str]:
        """The files in which one of `names` stands as a value, not only as a callee."""
        found: set[int] = set()
        for name in names:
            self._note("mentions", name)
            found.update(self._mentions.get(name, ()))
        return [self._program.paths[number] for number in sorted(found)]

    def is_data(self, name: str) -> bool:
        """Whether some class keeps data under that name."""
        self._note("data", name)
        return name in self._data

    def _functions(self, places: Iterable[tuple[int, int]]) -> Iterator[Function]:
        program = self._program
        for number, index in places:
            yield program.module(program.paths[number]).function(index)

    def _classes_at(self, places: Iterable[tuple[int, int]]) -> Iterator[Class]:
        program = self._program
        for number, index in places:
            yield program.module(program.paths[number]).cls(index)

    # -- one look each ---------------------------------------------------------------------------------------------

    @cached_property
    def _calls(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for index, f in enumerate(file.functions):
                place = (number, index)
                for name in called_in(f):
                    known.setdefault(name, []).append(place)
        return known

    @cached_property
    def _defs(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for index, f in enumerate(file.functions):
                known.setdefault(f.name, []).append((number, index))
        return known

    @cached_property
    def _plain_calls(self) -> dict[str, list[tuple[tuple[int, int], str]]]:
        known: dict[str, list[tuple[tuple[int, int], str]]] = {}
        for number, file in self._program.all_facts():
            for index, f in enumerate(file.functions):
                if _is_plain(f):
                    place = (number, index), f.name
                    for name in {callee.rpartition(".")[2] for callee in f.calls}:
                        known.setdefault(name, []).append(place)
        return known

    @cached_property
    def _inits(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for c in file.classes:
                for name, indexes in c.methods:
                    if name == "__init__":
                        known.setdefault(c.name, []).append((number, indexes[-1]))
        return known

    @cached_property
    def _decorated(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for index, f in enumerate(file.functions):
                for decorator in f.decorators:
                    known.setdefault(decorator_name(decorator), []).append((number, index))
        return known

    @cached_property
    def _awaited(self) -> frozenset[str]:
        return frozenset(name for _, file in self._program.all_facts() for f in file.functions for name in _awaited(f))

    @cached_property
    def _bases(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for index, c in enumerate(file.classes):
                for name in _based_on(c):
                    known.setdefault(name, []).append((number, index))
        return known

    @cached_property
    def _aliases(self) -> dict[str, set[str]]:
        known: dict[str, set[str]] = {}
        for _, file in self._program.all_facts():
            for name, other in _renamed(file):
                known.setdefault(name, set()).add(other)
        return known

    @cached_property
    def _conventional(self) -> dict[str, list[tuple[int, int]]]:
        known: dict[str, list[tuple[int, int]]] = {}
        for number, file in self._program.all_facts():
            for index, c in enumerate(file.classes):
                if c.parent == 0:
                    known.setdefault(_conventional(c), []).append((number, index))
        return known

    @cached_property
    def _data(self) -> frozenset[str]:
        return frozenset(name for _, file in self._program.all_facts() for c in file.classes for name in _kept(c))

    @cached_property
    def _mentions(self) -> dict[str, list[int]]:
        known: dict[str, list[int]] = {}
        for number, file in self._program.all_facts():
            for name in file.mentions:
                known.setdefault(name, []).append(number)
        return known


def called_in(f: FunctionFacts) -> set[str]:
    """The last names of all that a function calls."""
    names = {callee.rpartition(".")[2] for callee in f.calls}
    for callee in f.awaited:
        names.add(callee.rpartition(".")[2] if "." in callee else callee.rpartition(" ")[2])
    return names


def _is_plain(f: FunctionFacts) -> bool:
    return not (f.flags & (ASYNC | GENERATOR) or f.decorators or not f.calls)


def _awaited(f: FunctionFacts) -> Iterator[str]:
    for callee in f.awaited:
        yield callee.rpartition(".")[2]


def _based_on(c: ClassFacts) -> Iterator[str]:
    for base in c.bases:
        node = base[1] if base[0] == "index" else base
        yield node[1] if node[0] == "name" else node[2] if node[0] == "attr" else _ANY


def _renamed(file: FileFacts) -> Iterator[tuple[str, str]]:
    for imported in file.imports:
        if imported.name is not None and imported.local != imported.name:
            yield imported.name, imported.local
    for name, _, value in file.variables:
        if value is not None and value[0] in {"name", "attr"}:
            yield value[1 if value[0] == "name" else 2], name


def _kept(c: ClassFacts) -> Iterator[str]:
    for name, _ in c.annotations:
        yield name
    for name, _, _, _ in c.self_attributes:
        yield name


def _conventional(c: ClassFacts) -> str:
    return c.name.strip("_").lower()


def function_keys(file: FileFacts) -> list[str]:
    """A name for each function that stays the same when others come and go."""
    return _numbered(f.qualname for f in file.functions)


def class_keys(file: FileFacts) -> list[str]:
    """A name for each class that stays the same when others come and go."""
    return _numbered(c.qualname for c in file.classes)


def _numbered(names: Iterable[str]) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    keys: list[str] = []
    for name in names:
        counts[name] += 1
        keys.append(f"{name}#{counts[name]}")
    return keys


def said(file: FileFacts) -> dict[tuple[str, str], list[str]]:
    """What a file adds under each name, by the kind of question; places in it do not matter."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, f in zip(function_keys(file), file.functions, strict=True):
        for name in called_in(f):
            found["calls", name].append(key)
        if _is_plain(f):
            for name in {callee.rpartition(".")[2] for callee in f.calls}:
                found["plain calls", name].append(key)
        found["defs", f.name].append(key)
        for decorator in f.decorators:
            found["decorated", decorator_name(decorator)].append(key)
        for name in _awaited(f):
            found["awaited", name] = [""]
    for key, c in zip(class_keys(file), file.classes, strict=True):
        for name in _based_on(c):
            found["bases", name].append(key)
        for name in _kept(c):
            found["data", name] = [""]
        if any(name == "__init__" for name, _ in c.methods):
            found["inits", c.name].append(key)
        if c.parent == 0:
            found["convention", _conventional(c)].append(key)
    for name, other in sorted(set(_renamed(file))):
        found["aliases", name].append(other)
    for name in file.mentions:
        found["mentions", name] = [""]
    return found
