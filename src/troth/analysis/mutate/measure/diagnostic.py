"""What a checker said about one line, and which of what it says now it did not say before."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from troth.analysis.mutate.source.splice import Spliced

__all__ = ["Sighting", "new_sightings"]

_NUMBERED = re.compile(r"\bline \d+")


@dataclass(frozen=True, slots=True, order=True)
class Sighting:
    """One finding of a checker; `path` is relative to the copy's root, `code` may be empty."""

    path: str
    line: int
    code: str
    message: str


def new_sightings(
    before: Iterable[Sighting], after: Iterable[Sighting], changed: Mapping[str, Spliced]
) -> list[Sighting]:
    """What of `after` was not there `before`, lines that moved taken into account.

    Two findings are the same if code, message and original line are; line numbers inside a message do not count. A
    finding that was there once and is there twice is new once.
    """
    unmatched = Counter(_identity(sighting, sighting.line) for sighting in before)
    new: list[Sighting] = []
    for sighting in sorted(after):
        spliced = changed.get(sighting.path)
        line = sighting.line if spliced is None else spliced.original_line(sighting.line)
        identity = _identity(sighting, line)
        if unmatched[identity] > 0:
            unmatched[identity] -= 1
        else:
            new.append(sighting)
    return new


def _identity(sighting: Sighting, line: int) -> tuple[str, int, str, str]:
    return sighting.path, line, sighting.code, _NUMBERED.sub("line N", sighting.message)
