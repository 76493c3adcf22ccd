"""What each answer was read from, so that it is asked for again only when something of that has changed.

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

__all__ = ["EVERYTHING", "Answered", "Answers", "Note", "Readers", "Reads", "Tally", "TrackedTable", "Words"]

K = TypeVar("K")
V = TypeVar("V")

EVERYTHING = ("everything",)
Readers = dict[object, int]  # what was read, and the files that came to it: one bit for each


class Note:
    """Something that is read, by what it is: a name in a module, or what all files together say under a name.

    There is one note for each, so that the log is put in order by identity: what is read often is hashed often, and
    the hash of a tuple is worked out again each time.
    """

    __slots__ = ("what",)

    def __init__(self, what: tuple[Any, ...]) -> None:
        self.what = what


class Answered:
    """An answer that is kept, or is being found out: what was read for it (None until it is there), and since when.

    One that was taken back is asked for again; what was read for it `before` still counts.
    """

    __slots__ = ("before", "begun", "epoch", "read")

    def __init__(self, epoch: int, begun: int) -> None:
        self.epoch = epoch
        self.begun = begun
        self.read: tuple[object, ...] | None = None
        self.before: tuple[object, ...] = ()


class Reads:
    """The log of one program. Where nothing is logged, there is none, and plain containers take the place of ours."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.answered: dict[Answered, None] = {}  # all kept answers, in their order
        self.of_file: dict[object, list[tuple[object, ...]]] = {}  # for each, once or several times
        self.begun: list[tuple[int, int]] = [(0, 0)]  # for whose sake reading goes on: a number, and where it began
        self._epochs = 0

    @contextmanager
    def for_file(self, path: object) -> Iterator[None]:
        """All that is read inside is read for the sake of that file, or of one function of it: its path and number."""
        start = len(self.log)
        with self.aside():
            try:
                yield
            finally:
                self.of_file.setdefault(path, []).append(tuple(set(self.log[start:])))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is read inside is nobody's: it goes into what all files together say, which is read under names."""
        start = len(self.log)
        self._epochs += 1
        self.begun.append((self._epochs, start))
        try:
            yield
        finally:
            self.begun.pop()
            del self.log[start:]

    def forget(self) -> None:
        """Let go of everything, when it is told who read what."""
        self.answered.clear()
        self.of_file.clear()

    def readers(self, bits: Mapping[Any, int]) -> Readers:
        """Everything that was read, except kept answers, with the bits of the files that came to it."""
        masks: dict[object, int] = {}
        look = masks.get
        for path, parts in self.of_file.items():
            bit = bits[path]
            for everything in parts:
                for token in everything:
                    masks[token] = look(token, 0) | bit
        waiting = list(reversed(self.answered))  # whoever takes an answer is mostly done after the one who gave it
        passed: dict[object, int] = {}
        while waiting:
            late: dict[Answered, None] = {}  # answers that got readers after they were passed on: circles
            for answer in waiting:
                mask = look(answer, 0)
                read = answer.before if answer.read is None else answer.read
                if not read or mask == passed.get(answer, 0):
                    continue
                passed[answer] = mask
                for token in read:
                    mask_before = look(token, 0)
                    more = mask_before | mask
                    if more != mask_before:
                        masks[token] = more
                        if token in passed:
                            late[token] = None  # type: ignore[index]  # only answers are passed on
            waiting = list(late)
        return {token: mask for token, mask in masks.items() if type(token) is not Answered}


_value_of = dict.__getitem__
_is_in = set.__contains__


class Answers(dict[K, V]):
    """Answers that are kept: a dict that notes which of them are taken, and what was read to find a new one.

    A question begins where a key is looked for and not found, and ends where it is set. One that is set while it is
    being found out, as an answer to itself, is set again at the end; one that is asked again meanwhile began at first.
    """

    __slots__ = ("_append", "_notes", "_reads")

    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self._reads = reads
        self._append = reads.log.append
        self._notes: dict[K, Answered] = {}

    def _begin(self, key: K, note: Answered | None) -> None:
        reads = self._reads
        if note is None:
            self._notes[key] = Answered(reads.begun[-1][0], len(reads.log))
        elif note.begun > len(reads.log) or not any(note.epoch == epoch for epoch, _ in reads.begun):
            note.epoch, note.begun = reads.begun[-1][0], len(reads.log)

    def __contains__(self, key: object) -> bool:
        note = self._notes.get(key)  # type: ignore[arg-type]
        if note is not None and note.read is not None:
            return True  # that there is an answer tells nothing; whoever takes it is noted
        self._begin(key, note)  # type: ignore[arg-type]
        return False

    def __getitem__(self, key: K) -> V:
        self._append(self._notes[key])
        return _value_of(self, key)

    def get(self, key: K, default: Any = None) -> Any:
        """The answer, or that there is none yet."""
        note = self._notes.get(key)
        if note is not None and note.read is not None:
            self._append(note)
            return _value_of(self, key)
        self._begin(key, note)
        return default

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        reads = self._reads
        log = reads.log
        note = self._notes.get(key)
        if note is None:
            note = self._notes[key] = Answered(-1, 0)
        current, since = reads.begun[-1]
        start = note.begun
        if note.epoch != current:  # begun for somebody else's sake: what was read for this one counts
            start = since if note.epoch >= 0 else len(log)
        tail = log[start:]
        before = note.before if note.read is None else note.read
        if note in reads.answered:
            del reads.answered[note]  # put last again: the order is that of answering
        if tail or before:
            read = {*tail, *before}
            read.discard(note)
            note.read = tuple(read)  # small: there are very many
            del log[start:]
        else:
            note.read = ()
        reads.answered[note] = None
        log.append(note)

    def clear(self) -> None:
        """Take all answers back."""
        super().clear()
        for note in self._notes.values():
            note.before, note.read = (note.before if note.read is None else note.read), None


class Tally(Counter[K]):
    """What all files together say, counted by name: a counter that notes which names are asked for."""

    def __init__(self, reads: Reads, kind: str) -> None:
        super().__init__()
        self._append = reads.log.append
        self._kind = kind
        self._notes: dict[object, Note] = {}

    def _note(self, key: object) -> None:
        note = self._notes.get(key)
        if note is None:
            note = self._notes[key] = Note((self._kind, key))
        self._append(note)

    def __getitem__(self, key: K) -> int:
        self._note(key)
        return dict.get(self, key, 0)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)

    def count_of(self, key: K) -> int:
        """The count, without a note."""
        return dict.get(self, key, 0)

    def get(self, key: K, default: Any = None) -> Any:
        """The count, with a note."""
        self._note(key)
        return dict.get(self, key, default)


class TrackedTable(dict[K, V]):
    """What all files together say under a name: a dict that notes which names are asked for."""

    __slots__ = ("_append", "_kind")

    def __init__(self, reads: Reads, kind: str, content: Mapping[K, V] | None = None) -> None:
        super().__init__(content or {})
        self._append = reads.log.append
        self._kind = kind

    def __contains__(self, key: object) -> bool:
        self._append((self._kind, key))
        return super().__contains__(key)

    def __getitem__(self, key: K) -> V:
        self._append((self._kind, key))
        return super().__getitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        """What is said under the name, with a note."""
        self._append((self._kind, key))
        return super().get(key, default)


class Words(set[K]):
    """Names that all files together have: a set that notes which are looked for."""

    def __init__(self, reads: Reads, kind: str, content: Iterable[K] = ()) -> None:
        super().__init__(content)
        self._append = reads.log.append
        self._kind = kind
        self._notes: dict[object, Note] = {}

    def __contains__(self, key: object) -> bool:
        note = self._notes.get(key)
        if note is None:
            note = self._notes[key] = Note((self._kind, key))
        self._append(note)
        return _is_in(self, key)

    def among(self, keys: Iterable[K]) -> set[K]:
        """Those of the keys that are names in it; all of them are noted."""
        return {key for key in keys if key in self}
