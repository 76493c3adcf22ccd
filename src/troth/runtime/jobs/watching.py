"""Find lines in a job's output, and decide which of them are told one by one. Nothing here waits or reads a file.

Lines are whole lines, however the output was cut into reads. Hits beyond the rate are counted, and told together in a
summary: hits that were told and the counts of the summaries add up to all hits.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from troth.errors import MisuseError

__all__ = ["LineScanner", "Told", "WatchHit", "WatchPatterns", "WatchState", "decide_what_to_tell"]

RATE = 10
WINDOW = 10.0
"""So many hits are told one by one in so many seconds."""
_LONGEST = 1 << 20  # bytes of a line that are held in memory; a longer one is matched in pieces
_OVERLAP = 1 << 12  # bytes that two pieces of a long line have in common
_QUOTED = 500  # characters of a line that are told


class WatchHit(NamedTuple):
    """One line that matched."""

    line: str
    pattern: str
    offset: int


@dataclass(frozen=True, slots=True)
class WatchState:
    """How far the output was looked at, and what was told. It is kept with what is told, in one commit.

    `offset` is where a line begins; `is_counted` if that line is a long one that was counted already.
    """

    offset: int = 0
    is_counted: bool = False
    hits: int = 0
    untold: int = 0
    window_at: float | None = None
    in_window: int = 0


class WatchPatterns:
    """What is looked for: texts, which a line contains, and regular expressions, which match somewhere in it."""

    _patterns: list[str | re.Pattern[str]]
    _literals: list[bytes] | None

    def __init__(self, patterns: "str | re.Pattern[str] | Iterable[str | re.Pattern[str]]") -> None:
        if patterns == ():  # as nearly always
            self._patterns, self._literals = [], []
            return
        if not isinstance(patterns, Iterable) and not isinstance(patterns, re.Pattern):
            raise MisuseError(f"`watch` is {patterns!r}: give strings or compiled patterns. Nothing was started.")
        several = [patterns] if isinstance(patterns, str | re.Pattern) else list(patterns)
        checked: list[Any] = several
        for pattern in checked:
            text = _text(pattern) if isinstance(pattern, str | re.Pattern) else None
            if not isinstance(text, str) or not text or "\n" in text or not _is_whole(text):
                raise MisuseError(
                    f"`watch` has {pattern!r}, which is neither a string nor a compiled pattern.\nNothing was started."
                )
        self._patterns = several
        literals = [pattern.encode() for pattern in several if isinstance(pattern, str)]
        self._literals = literals if len(literals) == len(several) else None

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def may_match(self, data: bytes) -> bool:
        """Whether there can be a hit in these bytes; quick, and yes where it is not certain."""
        return self._literals is None or any(literal in data for literal in self._literals)

    def find(self, line: str) -> str | None:
        """The first pattern that matches."""
        for pattern in self._patterns:
            if pattern in line if isinstance(pattern, str) else pattern.search(line):
                return _text(pattern)
        return None

    def to_json(self) -> list[dict[str, Any]]:
        """For the job's row."""
        return [
            {"text": pattern} if isinstance(pattern, str) else {"regex": _text(pattern), "flags": pattern.flags}
            for pattern in self._patterns
        ]

    @classmethod
    def from_json(cls, rows: Sequence[dict[str, Any]]) -> "WatchPatterns":
        """What `to_json` made."""
        return cls([row["text"] if "text" in row else re.compile(row["regex"], row["flags"]) for row in rows])


def _is_whole(text: str) -> bool:
    """Whether there is no half of a letter in it: no line has one, and no store keeps it."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _text(pattern: "str | re.Pattern[str]") -> str:
    return pattern if isinstance(pattern, str) else pattern.pattern


class LineScanner:
    """Finds hits in output that comes in pieces. `offset` and `is_counted` say where to go on after a restart."""

    def __init__(self, patterns: WatchPatterns, state: WatchState) -> None:
        self._patterns = patterns
        self._rest = b""
        self.offset = state.offset
        self.is_counted = state.is_counted

    @property
    def read_to(self) -> int:
        """How many bytes it was given."""
        return self.offset + len(self._rest)

    def feed(self, data: bytes) -> list[WatchHit]:
        """The hits in the lines that are complete now."""
        complete, newline, rest = (self._rest + data).rpartition(b"\n")
        hits: list[WatchHit] = []
        if newline:
            hits = self._lines(complete + newline)
        self._rest = rest
        while len(self._rest) > _LONGEST:
            hits += self._piece(self._rest[:_LONGEST])
            self._rest = self._rest[_LONGEST - _OVERLAP :]
            self.offset += _LONGEST - _OVERLAP
        return hits

    def finish(self) -> list[WatchHit]:
        """The hit in the last line, if it has no end."""
        hits = self._piece(self._rest) if self._rest else []
        self.offset += len(self._rest)
        self._rest = b""
        return hits

    def _lines(self, data: bytes) -> list[WatchHit]:
        hits: list[WatchHit] = []
        if self.is_counted or self._patterns.may_match(data):
            for line in _split(data):
                hits += self._piece(line)
                self.offset += len(line)
                self.is_counted = False
        else:
            self.offset += len(data)
        return hits

    def _piece(self, data: bytes) -> list[WatchHit]:
        if self.is_counted:
            return []
        line = data.decode("utf-8", "replace").rstrip("\r\n")
        pattern = self._patterns.find(line)
        if pattern is None:
            return []
        self.is_counted = True
        return [WatchHit(_short(line), pattern, self.offset)]


def _split(data: bytes) -> list[bytes]:
    """Lines by line feeds alone: a progress bar that returns to the beginning stays one line."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _short(line: str) -> str:
    if len(line) <= _QUOTED:
        return line
    return f"{line[:_QUOTED]} … ({len(line) - _QUOTED} more characters in the output)"


class Told(NamedTuple):
    """What is told now: some hits one by one, and how many others together."""

    hits: Sequence[WatchHit]
    summary: int
    state: WatchState

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.hits and not self.summary


def decide_what_to_tell(state: WatchState, hits: Sequence[WatchHit], now: float, *, is_end: bool) -> Told:
    """Which of the new hits are told one by one, and how many of the older ones in a summary."""
    untold, in_window, window_at, summary = state.untold, state.in_window, state.window_at, 0
    if window_at is None or not 0 <= now - window_at < WINDOW:
        summary, untold, in_window = untold, 0, 0
        window_at = now if hits else None
    single = list(hits[: max(0, RATE - in_window)])
    untold += len(hits) - len(single)
    if is_end:
        summary, untold = summary + untold, 0
    new = replace(
        state, hits=state.hits + len(hits), untold=untold, window_at=window_at, in_window=in_window + len(single)
    )
    return Told(single, summary, new)
