"""Know which functions of edited files need no second walk: nothing went wrong in them, and what they read is the same.

An edit mostly changes one function, and its file has many. A function that was walked without an incident is walked
again only when something changes that its walk has read, be it in its own file or in another one. One with an incident
is walked each time: its findings tell of places, which move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.names import class_keys, function_keys
from troth.analysis.incremental.project_queries import QUESTIONS
from troth.analysis.pipeline.facts_diff import Token, Version, between, version_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from troth.analysis.facts.model import AllFacts, FileFacts
    from troth.analysis.semantics import Program

__all__ = ["SilentFunctions"]

_FILES = 8  # that were edited last; somebody edits a few at a time
_WORTH = 16  # functions; to compare two versions of a file takes as long as to walk fewer
_OF_ALL = 3  # functions, of which about one is worth a walk
_DIFFS = 16  # a look in a hurry and the one that makes up for it ask for the same


class SilentFunctions:
    """The functions of the files that were edited last, with what was read for each."""

    def __init__(self) -> None:
        self._read: dict[str, dict[str, set[Token]]] = {}
        self._versions: dict[str, Version] = {}
        self._edits: list[tuple[str, FileFacts | None, FileFacts | None]] = []  # not yet applied
        self._diffs: list[tuple[str, FileFacts | None, FileFacts | None, set[Token]]] = []

    def files(self, facts: AllFacts) -> Collection[str]:
        """The files whose functions are noted one by one: noting takes time as well, so that it has to be worth it."""
        return {path for path in self._read if path in facts and len(facts[path].functions) >= _OF_ALL * _WORTH}

    def clear(self) -> None:
        """Everything is looked at again: nothing is known any more."""
        self._read.clear()
        self._versions.clear()
        self._edits.clear()
        self._diffs.clear()

    def diff(self, path: str, before: FileFacts | None, after: FileFacts | None) -> set[Token]:
        """What can be read from a file, or from all together, and is not the same any more."""
        for known_path, first, second, tokens in self._diffs:
            if known_path == path and first is before and second is after:
                return tokens
        then = self._versions.get(path)
        if then is None or then.facts is not before:
            then = version_of(path, before)
        now = then if after is before else version_of(path, after)
        tokens = between(path, then, now)
        if path in self._read:
            self._versions[path] = now
        self._diffs = [*self._diffs[1 - _DIFFS :], (path, before, after, tokens)]
        return tokens

    def edited(self, path: str, before: FileFacts | None, after: FileFacts | None) -> None:
        """A file is not the same any more: whoever read something that is different is walked again."""
        self._read[path] = self._read.pop(path, {})  # the last one edited comes last
        for first in list(self._read)[:-_FILES]:
            del self._read[first]
            self._versions.pop(first, None)
        self._edits.append((path, before, after))

    def _apply_edits(self) -> None:
        edits, self._edits = self._edits, []
        tokens = {token for edit in edits for token in self.diff(*edit)}
        for functions in self._read.values():
            for key in [key for key, read in functions.items() if not read.isdisjoint(tokens)]:
                del functions[key]

    def learn(self, program: Program, facts: AllFacts) -> None:
        """Take over what the last walks of a program have read for functions in which nothing went wrong."""
        self._apply_edits()
        for path, functions in self._read.items():
            silent = program.uneventful.get(path)
            if not silent:
                continue
            keys, classes = function_keys(facts[path]), class_keys(facts[path])
            for index in silent:
                read = program.read_apart.get((path, index))
                if read is not None and not any(map(_is_found_out, read)):
                    functions[keys[index]] = {*read, *_around(facts[path], index, path, keys, classes)}

    def in_files(self, paths: Iterable[str], facts: AllFacts) -> Mapping[str, Collection[int]]:
        """The numbers of the functions that need no walk, by their files."""
        numbers: dict[str, Collection[int]] = {}
        paths = [path for path in paths if len(self._read.get(path, ())) >= _WORTH]
        if paths:
            self._apply_edits()
        for path in paths:
            silent = self._read.get(path)
            if silent:
                keys = enumerate(function_keys(facts[path]))
                numbers[path] = {index for index, key in keys if key in silent}
        return numbers


def _is_found_out(token: Token) -> bool:
    """Whether something comes from walks itself, so that it may change without a file that says so."""
    kind = token[0]
    return kind in QUESTIONS or kind == "picked" or kind.startswith("prefilter")


def _around(file: FileFacts, index: int, path: str, functions: list[str], classes: list[str]) -> Iterator[Token]:
    """The function itself, and the functions and classes that it stands in."""
    while index > 0:
        function = file.functions[index]
        yield "body", path, functions[index]
        yield "function", path, functions[index]
        owner, index = function.owner, function.parent
        while owner >= 0:
            yield "class", path, classes[owner]
            index = max(index, file.classes[owner].parent)
            owner = file.classes[owner].outer
