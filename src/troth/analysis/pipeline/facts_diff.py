"""What others can have read of a file that is not the same any more, from two versions of its facts.

Places do not count: a finding that tells of a place in the file is looked for again in any case. Functions and classes
are known by their qualified names, so that one that is put in between leaves the others as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from troth.analysis.facts.model import FileFacts, body_of, without_places
from troth.analysis.facts.names import class_keys, function_keys
from troth.analysis.incremental.counters import compared
from troth.analysis.incremental.dependencies import EVERYTHING, Note
from troth.analysis.incremental.project_queries import PARTS
from troth.analysis.semantics.resolve.name_counts import counted
from troth.analysis.semantics.resolve.name_index import said
from troth.analysis.semantics.symbols import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.analysis.facts.model import FunctionFacts

__all__ = ["Token", "Version", "between", "changed", "files_of", "read_by_functions", "tokens", "version_of"]

Token = tuple[Any, ...]
_EMPTY = FileFacts((), (), (), (), None)


class Version(NamedTuple):
    """What one version of a file says to others, but for bodies; it takes as long to find out as to compare."""

    facts: FileFacts | None
    readable: dict[Token, object]
    said: dict[tuple[str, str], list[Any]]
    counts: dict[tuple[str, object], object]


def version_of(path: str, facts: FileFacts | None) -> Version:
    """What a file says with these facts."""
    file = facts or _EMPTY
    return Version(facts, _readable(path, file), said(file), compared(counted(path, file.functions).holders()))


def changed(path: str, before: FileFacts | None, after: FileFacts | None) -> set[Token]:
    """All that may be read from a file, or from all files together, and is not the same any more."""
    return between(path, version_of(path, before), version_of(path, after))


def between(path: str, then: Version, now: Version) -> set[Token]:
    """The same, of two versions of the file."""
    old, new = then.facts or _EMPTY, now.facts or _EMPTY
    tokens: set[Token] = {("text", path)}
    tokens |= _differing(then.readable, now.readable)
    tokens |= _differing(then.said, now.said)
    tokens |= _differing(then.counts, now.counts)
    tokens |= {(kind,) for kind, part in PARTS.items() if part(old) != part(new)}
    tokens |= _bodies(path, old, new)
    if len(tokens) > 1:
        tokens |= {("file", path), EVERYTHING}
    return tokens


def _differing(old: Mapping[Any, object], new: Mapping[Any, object]) -> set[Token]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def _readable(path: str, file: FileFacts) -> dict[Token, object]:
    """What is read of functions but for their bodies, of classes and of names."""
    functions, classes = function_keys(file), class_keys(file)
    names: dict[str, list[str]] = {}
    scopes: list[str] = []
    readable: dict[Token, object] = {}

    def function(index: int) -> str:
        return functions[index] if index >= 0 else ""

    def cls(index: int) -> str:
        return classes[index] if index >= 0 else ""

    for key, f in zip(functions, file.functions, strict=True):
        words = without_places((f.name, function(f.parent), cls(f.owner), f.flags, *f[6:-1]))
        readable["function", path, key] = words
        if f.owner == -1:
            if f.parent > 0:
                scopes.append(words)
            elif f.parent == 0:
                names.setdefault(f.name, []).append(words)
    for key, c in zip(classes, file.classes, strict=True):
        methods = [(name, [function(index) for index in indexes]) for name, indexes in c.methods]
        attributes = [(name, function(index), *value) for name, index, *value in c.self_attributes]
        words = without_places((c[:2], function(c.parent), cls(c.outer), c[5:7], methods, c[8:10], attributes))
        readable["class", path, key] = words
        if c.outer == -1:
            if c.parent > 0:
                scopes.append(words)
            else:
                names.setdefault(c.name, []).append(words)
    for imported in file.imports:
        if imported.scope:
            scopes.append(repr((function(imported.scope), imported[1:])))
        elif imported.local and imported.name != "*":
            names.setdefault(imported.local, []).append(repr(imported))
    for name, annotation, value in file.variables:
        names.setdefault(name, []).append(without_places((annotation, value)))
    for name, words_of in names.items():
        readable["name", path, name] = words_of
    readable["name", path, ""] = scopes
    readable["name", path, "*"] = ([i for i in file.imports if i.name == "*" and i.scope == 0], file.exports)
    readable["name", path, "."] = {i.module.partition(".")[0] for i in file.imports if not i.level and i.module}
    return readable


def _bodies(path: str, old: FileFacts, new: FileFacts) -> set[Token]:
    before = dict(zip(function_keys(old), old.functions, strict=True))
    after = dict(zip(function_keys(new), new.functions, strict=True))
    return {
        ("body", path, key) for key in before.keys() | after.keys() if not _is_same(before.get(key), after.get(key))
    }


def _is_same(first: FunctionFacts | None, second: FunctionFacts | None) -> bool:
    if first is None or second is None or len(first.body) != len(second.body):
        return False  # a number has the same length, whichever line it is
    return first.body == second.body or without_places(body_of(first)) == without_places(body_of(second))


def tokens(readers: Mapping[object, int], bits: Mapping[str, int]) -> dict[Token, int]:
    """What was read, by names that outlast a program, with the files that came to it but for the file itself."""
    masks: dict[Token, int] = {}
    names = _Named()
    for read, mask in readers.items():
        entity = read.what if type(read) is Note else read
        if type(entity) is tuple and type(entity[0]) is str and entity[0] not in _OF_ONE_FILE:
            masks[entity] = masks.get(entity, 0) | mask  # what all files together say: nobody's own
            continue
        token = names.token(entity)
        if token is None:
            continue
        own = bits.get(token[1], 0)
        if mask != own:  # most is read by nobody else
            masks[token] = masks.get(token, 0) | mask & ~own
    return {token: mask for token, mask in masks.items() if mask}


def read_by_functions(readers: Mapping[object, int], shift: int) -> dict[int, set[Token]]:
    """What was read for the sake of single functions, by the number of their bits above `shift`.

    Other than in `tokens`, what a function reads of its own file is there as well.
    """
    read: dict[int, set[Token]] = {}
    names = _Named()
    for thing, mask in readers.items():
        bits = mask >> shift
        if not bits:
            continue
        entity = thing.what if type(thing) is Note else thing
        token: Token | None
        if type(entity) is tuple and type(entity[0]) is str and entity[0] not in _OF_ONE_FILE:
            token = entity
        else:
            token = names.token(entity)
        while token is not None and bits:
            lowest = bits & -bits
            read.setdefault(lowest.bit_length() - 1, set()).add(token)
            bits ^= lowest
    return read


_OF_ONE_FILE = frozenset({"text", "body"})


class _Named:
    """The functions and classes of modules by names that stay the same when others come and go."""

    def __init__(self) -> None:
        self._classes: dict[Module, list[str]] = {}

    def token(self, entity: Any) -> Token | None:
        """The name of something read of one file; None where that is a library's."""
        if type(entity) is Function:
            return self._function("function", entity)
        if type(entity) is Class:
            module = entity.module
            if not module.own:
                return None
            if module not in self._classes:
                self._classes[module] = class_keys(module._facts)
            return ("class", module.path, self._classes[module][entity.index])
        if type(entity) is Module:
            return ("file", entity.path) if entity.own else None
        first, second = entity
        if type(first) is Module:
            return ("name", first.path, second) if first.own else None
        return self._function("body", second) if first == "body" else entity

    def _function(self, kind: str, function: Function) -> Token | None:
        module = function.module
        if not module.own:
            return None
        return (kind, module.path, module.function_keys[function.index])


def files_of(mask: int, paths: Iterable[str]) -> set[str]:
    """The files of a mask."""
    return {path for number, path in enumerate(paths) if mask >> number & 1}
