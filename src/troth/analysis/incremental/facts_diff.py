"""What others can have read of a file that is not the same any more, from two versions of its facts.

Places do not count: a finding that tells of a place in the file is looked for again in any case. Functions and classes
are known by their qualified names, so that one that is put in between leaves the others as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import FileFacts, body_of, without_places
from troth.analysis.facts.names import class_keys, function_keys
from troth.analysis.incremental.counters import compared
from troth.analysis.incremental.dependencies import EVERYTHING, Note
from troth.analysis.incremental.project_queries import PARTS
from troth.analysis.semantics.evidence.callee_evidence import counted
from troth.analysis.semantics.resolve.name_index import said
from troth.analysis.semantics.symbols import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.analysis.facts.model import FunctionFacts

__all__ = ["Token", "changed", "files_of", "tokens"]

Token = tuple[Any, ...]
_EMPTY = FileFacts((), (), (), (), None)


def changed(path: str, before: FileFacts | None, after: FileFacts | None) -> set[Token]:
    """All that may be read from a file, or from all files together, and is not the same any more."""
    old, new = before or _EMPTY, after or _EMPTY
    found: set[Token] = {("text", path)}
    one, other = _readable(path, old), _readable(path, new)
    found |= _differing(one, other)
    found |= _differing(said(old), said(new))
    then, now = (compared(counted(path, file.functions).holders()) for file in (old, new))
    found |= _differing(then, now)
    found |= {(kind,) for kind, part in PARTS.items() if part(old) != part(new)}
    found |= _bodies(path, old, new)
    if len(found) > 1:
        found |= {("file", path), EVERYTHING}
    return found


def _differing(old: Mapping[Any, object], new: Mapping[Any, object]) -> set[Token]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def _readable(path: str, file: FileFacts) -> dict[Token, object]:
    """What is read of functions but for their bodies, of classes and of names."""
    functions, classes = function_keys(file), class_keys(file)
    names: dict[str, list[str]] = {}
    scopes: list[str] = []
    found: dict[Token, object] = {}

    def function(index: int) -> str:
        return functions[index] if index >= 0 else ""

    def cls(index: int) -> str:
        return classes[index] if index >= 0 else ""

    for key, f in zip(functions, file.functions, strict=True):
        words = without_places((f.name, function(f.parent), cls(f.owner), f.flags, *f[6:-1]))
        found["function", path, key] = words
        if f.owner == -1:
            if f.parent > 0:
                scopes.append(words)
            elif f.parent == 0:
                names.setdefault(f.name, []).append(words)
    for key, c in zip(classes, file.classes, strict=True):
        methods = [(name, [function(index) for index in indexes]) for name, indexes in c.methods]
        attributes = [(name, function(index), *rest) for name, index, *rest in c.self_attributes]
        words = without_places((c[:2], function(c.parent), cls(c.outer), c[5:7], methods, c[8:10], attributes))
        found["class", path, key] = words
        if c.outer == -1:
            if c.parent > 0:
                scopes.append(words)
            else:
                names.setdefault(c.name, []).append(words)
    for one in file.imports:
        if one.scope:
            scopes.append(repr((function(one.scope), one[1:])))
        elif one.local and one.name != "*":
            names.setdefault(one.local, []).append(repr(one))
    for name, annotation, value in file.variables:
        names.setdefault(name, []).append(without_places((annotation, value)))
    for name, words_of in names.items():
        found["name", path, name] = words_of
    found["name", path, ""] = scopes
    found["name", path, "*"] = ([i for i in file.imports if i.name == "*" and i.scope == 0], file.exports)
    found["name", path, "."] = {i.module.partition(".")[0] for i in file.imports if not i.level and i.module}
    return found


def _bodies(path: str, old: FileFacts, new: FileFacts) -> set[Token]:
    before = dict(zip(function_keys(old), old.functions, strict=True))
    after = dict(zip(function_keys(new), new.functions, strict=True))
    return {
        ("body", path, key) for key in before.keys() | after.keys() if not _is_same(before.get(key), after.get(key))
    }


def _is_same(one: FunctionFacts | None, other: FunctionFacts | None) -> bool:
    if one is None or other is None or len(one.body) != len(other.body):
        return False  # a number has the same length, whichever line it is
    return one.body == other.body or without_places(body_of(one)) == without_places(body_of(other))


def tokens(readers: Mapping[object, int], bits: Mapping[str, int]) -> dict[Token, int]:
    """What was read, by names that outlast a program, with the files that came to it but for the file itself."""
    found: dict[Token, int] = {}
    named = _Named()
    for one, mask in readers.items():
        what = one.what if type(one) is Note else one
        if type(what) is tuple and type(what[0]) is str and what[0] not in _OF_ONE_FILE:
            found[what] = found.get(what, 0) | mask  # what all files together say: nobody's own
            continue
        token = named.token(what)
        if token is None:
            continue
        own = bits.get(token[1], 0)
        if mask != own:  # most is read by nobody else
            found[token] = found.get(token, 0) | mask & ~own
    return {token: mask for token, mask in found.items() if mask}


_OF_ONE_FILE = frozenset({"text", "body"})


class _Named:
    """The functions and classes of modules by names that stay the same when others come and go."""

    def __init__(self) -> None:
        self._functions: dict[Module, list[str]] = {}
        self._classes: dict[Module, list[str]] = {}

    def token(self, one: Any) -> Token | None:
        """The name of something read of one file; None where that is a library's."""
        if type(one) is Function:
            return self._function("function", one)
        if type(one) is Class:
            module = one.module
            if not module.own:
                return None
            if module not in self._classes:
                self._classes[module] = class_keys(module._facts)
            return ("class", module.path, self._classes[module][one.index])
        if type(one) is Module:
            return ("file", one.path) if one.own else None
        first, second = one
        if type(first) is Module:
            return ("name", first.path, second) if first.own else None
        return self._function("body", second) if first == "body" else one

    def _function(self, kind: str, one: Function) -> Token | None:
        module = one.module
        if not module.own:
            return None
        if module not in self._functions:
            self._functions[module] = function_keys(module._facts)
        return (kind, module.path, self._functions[module][one.index])


def files_of(mask: int, paths: Iterable[str]) -> set[str]:
    """The files of a mask."""
    return {path for number, path in enumerate(paths) if mask >> number & 1}
