"""Knows the tables over all files that an earlier run made, and which files say something else since.

Whoever keeps a table over the whole project asks here first: with the table of then, and what the files that changed
said then and say now, nobody else's facts have to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.analysis.facts.model import FileFacts

__all__ = ["Tables"]


class Tables:
    """The tables of then. `since` has the files that changed, by their number: what they said then, and say now."""

    def __init__(
        self,
        load: Callable[[str], Any],
        since: Mapping[int, tuple[FileFacts | None, FileFacts | None]],
        suspected: Mapping[str, frozenset[str]],
        lately: Mapping[int, tuple[FileFacts | None, FileFacts | None]],
    ) -> None:
        self._load = load
        self._known: dict[str, Any] = {}
        self.since = since
        self.suspected = suspected
        self.lately = lately
        """What is suspected is told by the last run, not by the one that made the tables: the files changed since."""

    def get(self, name: str) -> Any:
        """The table of that name, None where the earlier run did not need it."""
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]
