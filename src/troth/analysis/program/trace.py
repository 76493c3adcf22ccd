"""Knows what a run leaves behind so that the next one can tell which files it has to look at again.

A file is looked at again if it changed, if something that was read for its sake is not the same any more, or if one of
its findings tells of a place in a file that changed. Some of what is read is itself found out by looking at files (the
plain functions that return promises, what dispatchers pick, the names that lead to a kind of call): when that comes out
otherwise, whoever read it is looked at as well, until nothing new turns up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from troth.analysis.program.changes import Token, files_of, tokens
from troth.analysis.program.dispatch import picked_in
from troth.analysis.program.parts import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from troth.analysis.program.link import Program

__all__ = ["Trace", "traced"]

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read, and by which files; and what was found out on the way that others read.

    `readers` have a bit for each of `paths` and, after these, for each question about the whole project.
    """

    paths: tuple[str, ...]
    readers: Mapping[Token, int] = field(default_factory=dict)
    sets: Mapping[str, Names] = field(default_factory=dict)
    shared: Mapping[str, Names] = field(default_factory=dict)
    picked: Mapping[str, Names] = field(default_factory=dict)
    returning: Mapping[str, Names] = field(default_factory=dict)

    def reading(self, changed: Iterable[Token]) -> int:
        """The bits of all that read something of what has changed."""
        mask = 0
        for token in changed:
            mask |= self.readers.get(token, 0)
        return mask

    def files(self, mask: int) -> set[str]:
        """The files among the bits."""
        return files_of(mask, self.paths)

    def questions(self, mask: int) -> set[str]:
        """The questions about the whole project among the bits."""
        return {one for number, one in enumerate(sorted(QUESTIONS), len(self.paths)) if mask >> number & 1}

    def hand_over(self, program: Program, outdated: Collection[str], asked_again: Collection[str]) -> None:
        """Tell a program what need not be found out again; files that are `outdated` are looked at anew."""
        program.shared.update({one: names for one, names in self.shared.items() if one not in asked_again})
        program.picked.update({path: names for path, names in self.picked.items() if path not in outdated})
        known = {path: names for path, names in self.returning.items() if path not in outdated}
        program.learn({name for names in known.values() for name in names})

    def differing(self, found: Trace, looked_at: Collection[str]) -> set[Token]:
        """What came out otherwise than before, of what is found out by looking at files."""
        changed: set[Token] = set()
        for question, names in found.shared.items():
            if question in self.shared:
                changed |= {(question, name) for name in names ^ self.shared[question]}
        for path in looked_at:
            for name in self.picked.get(path, frozenset()) ^ found.picked.get(path, frozenset()):
                changed.add(("picked", name))
        old = {name for names in self.returning.values() for name in names}
        new = {name for names in self.updated(found, looked_at).returning.values() for name in names}
        for name in old ^ new:
            changed |= {("suspicion names", name), ("suspicion returners", name)}
        return changed

    def of_sets(self, sets: Mapping[str, Names]) -> set[Token]:
        """The names under suspicion that are not the same as before."""
        changed: set[Token] = set()
        for kind in sets.keys() | self.sets.keys():
            names = sets.get(kind, frozenset()) ^ self.sets.get(kind, frozenset())
            changed |= {(f"suspicion {kind}", name) for name in names}
            if names:
                changed.add((f"suspicion {kind}",))
        return changed

    def updated(self, found: Trace, looked_at: Collection[str]) -> Trace:
        """The same, with what a look at some files and questions found instead."""
        bits = bits_of(self.paths)
        gone = 0
        for one in (*looked_at, *found.shared.keys()):
            gone |= bits[one]
        readers = {token: mask & ~gone for token, mask in self.readers.items() if mask & ~gone}
        for token, mask in found.readers.items():
            readers[token] = readers.get(token, 0) | mask
        seen = set(looked_at)
        return Trace(
            self.paths,
            readers,
            found.sets or self.sets,
            {**self.shared, **found.shared},
            {**{path: names for path, names in self.picked.items() if path not in seen}, **found.picked},
            {**{path: names for path, names in self.returning.items() if path not in seen}, **found.returning},
        )

    def packed(self) -> tuple[object, ...]:
        """The same as plain data."""
        return (self.paths, self.readers, self.sets, self.shared, self.picked, self.returning)

    def joined(self, other: Trace) -> Trace:
        """Both what this process and what another process found out."""
        readers = dict(self.readers)
        for token, mask in other.readers.items():
            readers[token] = readers.get(token, 0) | mask
        returning = {path: self.returning.get(path, frozenset()) | names for path, names in other.returning.items()}
        return Trace(
            self.paths,
            readers,
            {**self.sets, **other.sets},
            {**self.shared, **other.shared},
            {**self.picked, **other.picked},
            {**self.returning, **returning},
        )


def bits_of(paths: Sequence[str]) -> dict[str, int]:
    """A bit for each file and, after these, for each question about the whole project."""
    return {one: 1 << number for number, one in enumerate((*paths, *sorted(QUESTIONS)))}


def traced(program: Program, looked_at: Sequence[str], known: Trace | None) -> Trace:
    """What a program, in this process, has read and found out; `known` is what it was told before."""
    assert program.reads is not None
    bits = bits_of(program.paths)
    before = {} if known is None else known.shared
    told = frozenset() if known is None else known.picked.keys()
    if program.picking is not None or told:
        for path in looked_at:
            picked_in(program, path)
    mine = set(looked_at)
    return Trace(
        program.paths,
        tokens(program.reads.readers(bits), bits),
        program.suspected,
        {one: names for one, names in program.shared.items() if one in program.reads.of_file or one not in before},
        {path: names for path, names in program.picked.items() if path in mine or path not in told},
        {path: frozenset(names) for path, names in program.returning.items() if path in mine},
    )
