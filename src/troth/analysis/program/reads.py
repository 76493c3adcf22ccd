"""Knows what each answer was read from, so that it is asked for again only when something of that has changed.

While a program is asked questions for the sake of a file, everything that is read is written into one log: a module as
a whole, a function's header, its body, a class, what a name at module level is bound to, and what all files together
say under a name (`("calls", "save")`). An answer that is kept for others (`Answers`) keeps beside it what was read
between the question and the answer; whoever takes it later is written down as having read that answer. When all files
are done, every thing read is told which files came to it, by whatever way (`readers`).

Whatever is not broken down any finer is written down coarsely, so that it costs time and never a wrong answer: the
facts of a module stand for all that the file says, `own_modules()` for all that any file says. What must not happen is
an answer that is kept in a plain dict; a test looks for such.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["EVERYTHING", "Answers", "Readers", "Reads", "Table", "Tally", "Words"]

K = TypeVar("K")
V = TypeVar("V")

EVERYTHING = ("everything",)
Readers = dict[object, int]  # what was read, and the files that came to it: one bit for each


class Reads:
    """The log of one program. Where nothing is logged, there is none, and plain containers take the place of ours."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.behind: dict[object, tuple[object, ...]] = {}  # what was read for each kept answer, in their order
        self.of_file: dict[str, set[object]] = {}
        self.begun: list[tuple[int, int]] = [(0, 0)]  # for whose sake reading goes on: a number, and where it began
        self._epochs = 0
        self._tables = 0

    def number(self) -> int:
        """A number for one more table of answers."""
        self._tables += 1
        return self._tables

    @contextmanager
    def for_file(self, path: str) -> Iterator[None]:
        """All that is read inside is read for the sake of that file."""
        begun = len(self.log)
        with self.aside():
            try:
                yield
            finally:
                self.of_file.setdefault(path, set()).update(self.log[begun:])

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is read inside is nobody's: it goes into what all files together say, which is read under names."""
        begun = len(self.log)
        self._epochs += 1
        self.begun.append((self._epochs, begun))
        try:
            yield
        finally:
            self.begun.pop()
            del self.log[begun:]

    def forget(self) -> None:
        """Let go of everything, when it is told who read what."""
        self.behind.clear()
        self.of_file.clear()

    def readers(self, bits: Mapping[str, int]) -> Readers:
        """Everything that was read, except kept answers, with the bits of the files that came to it."""
        found: dict[object, int] = {}
        for path, everything in self.of_file.items():
            bit = bits[path]
            for one in everything:
                found[one] = found.get(one, 0) | bit
        behind = self.behind
        waiting = list(reversed(behind.items()))  # whoever takes an answer is mostly done after the one who gave it
        passed: dict[object, int] = {}
        look = found.get
        while waiting:
            late: dict[object, None] = {}  # answers that got readers after they were passed on: circles
            for answer, read in waiting:
                mask = look(answer, 0)
                if mask == passed.get(answer, 0) or not read:
                    continue
                passed[answer] = mask
                for one in read:
                    known = look(one, 0)
                    more = known | mask
                    if more != known:
                        found[one] = more
                        if one in passed:
                            late[one] = None
            waiting = [(answer, behind[answer]) for answer in late]
        return {one: mask for one, mask in found.items() if one not in behind}


class Answers(dict[K, V]):
    """Answers that are kept: a dict that notes which of them are taken, and what was read to find a new one.

    A question begins where a key is looked for and not found, and ends where it is set. One that is set while it is
    being found out, as an answer to itself, is set again at the end; one that is asked again meanwhile began at first.
    """

    __slots__ = ("_begun", "_number", "_reads")

    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self._reads = reads
        self._number = reads.number()
        self._begun: dict[object, tuple[int, int]] = {}

    def _begin(self, key: object) -> None:
        known = self._begun.get(key)
        reads = self._reads
        if known is None or known[1] > len(reads.log) or not any(known[0] == epoch for epoch, _ in reads.begun):
            self._begun[key] = reads.begun[-1][0], len(reads.log)

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True  # that there is an answer tells nothing; whoever takes it is noted
        self._begin(key)
        return False

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        self._reads.log.append((self._number, key))
        return value

    def get(self, key: K, default: Any = None) -> Any:
        """The answer, or that there is none yet."""
        if super().__contains__(key):
            self._reads.log.append((self._number, key))
            return super().__getitem__(key)
        self._begin(key)
        return default

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        log, answer = self._reads.log, (self._number, key)
        epoch, begun = self._begun.get(key, (-1, 0))
        current, since = self._reads.begun[-1]
        if epoch != current:  # begun for somebody else's sake: what was read for this one counts
            begun = since if epoch >= 0 else len(log)
        begun = min(begun, len(log))
        behind = self._reads.behind
        read = set(log[begun:])
        read.discard(answer)
        known = behind.pop(answer, None)  # put last again: the order is that of answering
        behind[answer] = tuple(read if known is None else read.union(known))  # small: there are very many
        log[begun:] = [answer]


class Tally(Counter[K]):
    """What all files together say, counted by name: a counter that notes which names are asked for."""

    def __init__(self, reads: Reads, kind: str) -> None:
        super().__init__()
        self._reads = reads
        self._kind = kind

    def __getitem__(self, key: K) -> int:
        self._reads.log.append((self._kind, key))
        return self.count_of(key)

    def __contains__(self, key: object) -> bool:
        self._reads.log.append((self._kind, key))
        return super().__contains__(key)

    def count_of(self, key: K) -> int:
        """The count, without a note."""
        return dict.get(self, key, 0)

    def get(self, key: K, default: Any = None) -> Any:
        """The count, with a note."""
        self._reads.log.append((self._kind, key))
        return dict.get(self, key, default)


class Table(dict[K, V]):
    """What all files together say under a name: a dict that notes which names are asked for."""

    __slots__ = ("_kind", "_reads")

    def __init__(self, reads: Reads, kind: str, known: Mapping[K, V] | None = None) -> None:
        super().__init__(known or {})
        self._reads = reads
        self._kind = kind

    def __contains__(self, key: object) -> bool:
        self._reads.log.append((self._kind, key))
        return super().__contains__(key)

    def __getitem__(self, key: K) -> V:
        self._reads.log.append((self._kind, key))
        return super().__getitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        """What is said under the name, with a note."""
        self._reads.log.append((self._kind, key))
        return super().get(key, default)


class Words(set[K]):
    """Names that all files together have: a set that notes which are looked for."""

    def __init__(self, reads: Reads, kind: str, known: Iterable[K] = ()) -> None:
        super().__init__(known)
        self._reads = reads
        self._kind = kind

    def __contains__(self, key: object) -> bool:
        self._reads.log.append((self._kind, key))
        return super().__contains__(key)
