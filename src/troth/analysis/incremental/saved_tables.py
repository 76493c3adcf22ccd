"""The tables over all files that an earlier run made, and which files say something else since.

Whoever keeps a table over the whole project asks here first: with the table of then, and what the files that changed
said then and say now, nobody else's facts have to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from troth.analysis.facts.model import FileFacts

__all__ = ["SavedTables"]

_SHORTEST = 3  # letters; what is shorter stands everywhere
_MANY = 25  # files; reading more of them again takes as long as counting anew


class SavedTables:
    """The tables of then. `since` has the files that changed, by their number: what they said then, and say now."""

    def __init__(
        self,
        load: Callable[[str], Any],
        since: Mapping[int, tuple[FileFacts | None, FileFacts | None]],
        prefilter: Mapping[str, frozenset[str]],
        lately: Mapping[int, tuple[FileFacts | None, FileFacts | None]],
        packed: Callable[[], Iterable[tuple[int, bytes | memoryview]]],
        coined: set[str],
    ) -> None:
        """`packed` gives the facts of then of all files that did not change, with their numbers."""
        self._load = load
        self._known: dict[str, Any] = {}
        self.since = since
        self.prefilter = prefilter
        self._packed = packed
        self.coined = coined
        """Names that came with edits of one file, and that the prefilter had for no other reason."""
        self.lately = lately
        """The files that changed since the last run. Its names of the prefilter are given, not those of `load`."""

    def saying(self, word: str) -> Collection[int] | None:
        """The files, of those that did not change, in whose facts a word stands; None if there are too many of them.

        The facts are not unpacked for it: a name stands in them as it is.
        """
        if len(word) < _SHORTEST:
            return None
        data = word.encode()
        numbers: list[int] = []
        for number, packed in self._packed():
            if data in bytes(packed):
                numbers.append(number)
                if len(numbers) > _MANY:
                    return None
        return numbers

    def get(self, name: str) -> Any:
        """The table of that name, None where the earlier run did not need it."""
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]
