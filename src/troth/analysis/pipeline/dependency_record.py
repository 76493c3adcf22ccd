"""What a run leaves behind so that the next one can tell which files it has to look at again.

A file is looked at again if it changed, if something that was read for its sake is not the same any more, or if one of
its findings tells of a place in a file that changed. Some of what is read is itself found out by looking at files (the
sync functions that return awaitables, what dispatchers pick, names that lead to a kind of call): when that comes out
otherwise, whoever read it is looked at as well, until nothing new turns up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from troth.analysis.incremental.project_queries import QUESTIONS
from troth.analysis.pipeline.facts_diff import Token, files_of, read_by_functions, tokens
from troth.analysis.semantics.queries.dispatch import picked_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from troth.analysis.incremental.dependencies import Reads
    from troth.analysis.semantics.program import Program

__all__ = ["DependencyReaders", "Trace", "in_groups", "traced"]

Names = frozenset[str]


_OF_FILES = frozenset({"file", "text", "function", "body", "class", "name"})


class DependencyReaders:
    """What was read, and the files that came to it: in groups, of which only those asked for are unpacked.

    What is read in later runs comes on top. A file that no longer reads something stays noted as its reader until all
    files are looked at again: it is looked at for nothing then, which costs only time.
    """

    def __init__(self, load: Callable[[str], Any], later: Mapping[Token, int]) -> None:
        self._load = load
        self._groups: dict[str, Mapping[Token, int]] = {}
        self.later = later

    def get(self, token: Token) -> int:
        """The bits of those that read it."""
        group = group_of(token)
        masks = self._groups.get(group)
        if masks is None:
            masks = self._groups[group] = self._load(group) or {}
        return masks.get(token, 0) | self.later.get(token, 0)

    def with_more(self, masks: Mapping[Token, int]) -> DependencyReaders:
        """The same, and what was read now."""
        later = dict(self.later)
        for token, mask in masks.items():
            later[token] = later.get(token, 0) | mask
        more = DependencyReaders(self._load, later)
        more._groups = self._groups
        return more


def group_of(token: Token) -> str:
    """The name of the group in which something read is kept."""
    return f"read of {token[1]}" if token[0] in _OF_FILES else f"read under {token[0]}"


def in_groups(readers: Mapping[Token, int]) -> dict[str, dict[Token, int]]:
    """All that was read, in groups."""
    groups: dict[str, dict[Token, int]] = {}
    for token, mask in readers.items():
        groups.setdefault(group_of(token), {})[token] = mask
    return groups


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read, and by which files; and what was found out on the way that others read.

    `readers` have a bit for each of `paths` and, after these, for each question about the whole project.
    """

    paths: tuple[str, ...]
    readers: DependencyReaders
    sets: Mapping[str, Names] = field(default_factory=dict)
    shared: Mapping[str, Names] = field(default_factory=dict)
    picked: Mapping[str, Names] = field(default_factory=dict)
    returning: Mapping[str, Names] = field(default_factory=dict)

    def reading(self, changed: Iterable[Token]) -> int:
        """The bits of all that read something of what has changed."""
        mask = 0
        for token in changed:
            mask |= self.readers.get(token)
        return mask

    def files(self, mask: int) -> set[str]:
        """The files among the bits."""
        return files_of(mask, self.paths)

    def questions(self, mask: int) -> set[str]:
        """The questions about the whole project among the bits."""
        return {question for number, question in enumerate(sorted(QUESTIONS), len(self.paths)) if mask >> number & 1}

    def hand_over(self, program: Program, outdated: Collection[str], asked_again: Collection[str]) -> None:
        """Tell a program what need not be found out again; files that are `outdated` are looked at anew."""
        program.shared.update(
            {question: names for question, names in self.shared.items() if question not in asked_again}
        )
        program.picked.update({path: names for path, names in self.picked.items() if path not in outdated})
        returning = {path: names for path, names in self.returning.items() if path not in outdated}
        program.learn({name for names in returning.values() for name in names})

    def differing(self, fresh: Trace, looked_at: Collection[str]) -> set[Token]:
        """What came out otherwise than before, of what is found out by looking at files."""
        changed: set[Token] = set()
        for question, names in fresh.shared.items():
            if question in self.shared:
                changed |= {(question, name) for name in names ^ self.shared[question]}
        for path in looked_at:
            for name in self.picked.get(path, frozenset()) ^ fresh.picked.get(path, frozenset()):
                changed.add(("picked", name))
        old = {name for names in self.returning.values() for name in names}
        new = {name for path, names in self.returning.items() if path not in looked_at for name in names}
        new |= {name for names in fresh.returning.values() for name in names}
        for name in old ^ new:
            changed.add(("prefilter names", name))
        return changed

    def of_sets(self, sets: Mapping[str, Names]) -> set[Token]:
        """The names of the prefilter that are not the same as before."""
        changed: set[Token] = set()
        for kind in sets.keys() | self.sets.keys():
            names = sets.get(kind, frozenset()) ^ self.sets.get(kind, frozenset())
            changed |= {(f"prefilter {kind}", name) for name in names}
            if names:
                changed.add((f"prefilter {kind}",))
        return changed

    def updated(self, fresh: Trace, looked_at: Collection[str]) -> Trace:
        """The same, with what a look at some files and questions found instead."""
        walked = set(looked_at)
        return Trace(
            self.paths,
            self.readers.with_more(fresh.readers.later),
            fresh.sets or self.sets,
            {**self.shared, **fresh.shared},
            {**{path: names for path, names in self.picked.items() if path not in walked}, **fresh.picked},
            {**{path: names for path, names in self.returning.items() if path not in walked}, **fresh.returning},
        )

    def packed(self) -> tuple[object, ...]:
        """The same as plain data, but for the readers that the last full run left."""
        return (self.paths, dict(self.readers.later), self.sets, self.shared, self.picked, self.returning)

    def joined(self, second: Trace) -> Trace:
        """Both what this process and what another process found out."""
        returning = {path: self.returning.get(path, frozenset()) | names for path, names in second.returning.items()}
        return Trace(
            self.paths,
            self.readers.with_more(second.readers.later),
            {**self.sets, **second.sets},
            {**self.shared, **second.shared},
            {**self.picked, **second.picked},
            {**self.returning, **returning},
        )


def _apart(program: Program, reads: Reads, bits: Mapping[str, int]) -> Mapping[object, int]:
    """What was read by which files; what was read for single functions is left with the program as well."""
    functions = [key for key in reads.of_file if isinstance(key, tuple)]
    shift = len(bits)
    numbered = {key: bits[key[0]] | 1 << number for number, key in enumerate(functions, shift)}
    readers = reads.readers({**bits, **numbered})
    read = read_by_functions(readers, shift)
    program.read_apart = {functions[number]: things for number, things in read.items()}
    of_files = (1 << shift) - 1
    return {thing: mask & of_files for thing, mask in readers.items()}


def _nothing(_group: str) -> None:
    return None


def bits_of(paths: Sequence[str]) -> dict[str, int]:
    """A bit for each file and, after these, for each question about the whole project."""
    return {reader: 1 << number for number, reader in enumerate((*paths, *sorted(QUESTIONS)))}


def traced(program: Program, looked_at: Sequence[str], earlier: Trace | None) -> Trace:
    """What a program, in this process, has read and found out; `earlier` is what it was told before."""
    assert program.reads is not None
    bits = bits_of(program.paths)
    before = {} if earlier is None else earlier.shared
    earlier_paths = frozenset() if earlier is None else earlier.picked.keys()
    if program.picking is not None or earlier_paths:
        for path in looked_at:
            picked_in(program, path)
    mine = set(looked_at)
    readers = _apart(program, program.reads, bits) if program.apart else program.reads.readers(bits)
    return Trace(
        program.paths,
        DependencyReaders(_nothing, tokens(readers, bits)),
        program.prefilter_names,
        {
            question: names
            for question, names in program.shared.items()
            if question in program.reads.of_file or question not in before
        },
        {path: names for path, names in program.picked.items() if path in mine or path not in earlier_paths},
        {path: frozenset(names) for path, names in program.returning.items() if path in mine},
    )
