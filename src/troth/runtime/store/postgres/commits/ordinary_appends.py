"""Commit entries of one stream by one statement, which is a transaction by itself: nearly all that a talk writes.

An ordinary commit of a talk proves the lease of its run and appends entries to its log. Whoever asks for it is told the
numbers of these entries, and may use them. They are not known before the statement is over, so they are guessed: by the
last entry of the stream that this process has seen. The statement writes only if the guess is right and the lease is
held. Work may be called more than once, so what was guessed wrong, or does more, is committed the long way.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from troth.runtime.store.json_codec import keep
from troth.runtime.store.large_values import LARGE
from troth.runtime.store.rows.conversations import CONVERSATIONS, ConversationRows

__all__ = ["LastEntries", "OrdinaryAppend", "ordinary_append"]

_MOST = 10_000  # streams whose last entries are remembered


class LastEntries:
    """The numbers of the last entries of streams, as far as this process has seen them. They may be wrong."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, int] = {}

    def note(self, stream: str, number: int) -> None:
        """Remember that the stream has an entry of that number."""
        with self._lock:
            if len(self._last) >= _MOST and stream not in self._last:
                self._last.clear()
            self._last[stream] = max(number, self._last.get(stream, 0))

    def forget(self, stream: str) -> None:
        """What was remembered has turned out to be wrong."""
        with self._lock:
            self._last.pop(stream, None)

    def of(self, stream: str) -> int | None:
        """The number of the last entry; nothing if no entry of it was seen."""
        return self._last.get(stream)


class OrdinaryAppend(NamedTuple):
    """A commit of one statement: the lease that must be held, the stream, how long it is, and what is appended."""

    resource: str
    token: str
    stream: str
    last: int
    entries: list[tuple[str, str, float]]
    """Kind, payload and moment of each."""
    answer: object
    """What the work answers if it is kept."""


class _NotOrdinaryError(Exception):
    """The work does more, or something else."""


def _refuse(*_: object) -> object:
    raise _NotOrdinaryError


_talks = ConversationRows(_refuse)


class _Recorder:
    """Takes the calls of an ordinary commit, and answers with the numbers that the entries will probably have."""

    __slots__ = ("_last_entries", "entries", "last", "lease", "stream")

    def __init__(self, last_entries: LastEntries) -> None:
        self._last_entries = last_entries
        self.lease: tuple[str, str] | None = None
        self.stream = ""
        self.last = 0
        self.entries: list[tuple[str, str, float]] = []

    def hold(self, resource: str, token: str) -> None:
        """As the transaction's, but what is not held is found out later."""
        if self.lease is not None or self.entries:
            raise _NotOrdinaryError
        self.lease = resource, token

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """As the transaction's."""
        if not self.entries:
            last = self._last_entries.of(stream)
            if last is None:
                raise _NotOrdinaryError
            self.stream, self.last = stream, last
        text, _ = keep(payload, f"event {kind!r}")
        if stream != self.stream or len(text) > LARGE:
            raise _NotOrdinaryError
        if stream.startswith(CONVERSATIONS) and isinstance(payload, Mapping):
            _talks.note(stream.removeprefix(CONVERSATIONS), kind, payload, now)
        self.entries.append((kind, text, now))
        return self.last + len(self.entries)

    def __getattr__(self, name: str) -> Any:
        raise _NotOrdinaryError(name)


def ordinary_append(work: Callable[[Any], object], last_entries: LastEntries) -> OrdinaryAppend | None:
    """What a piece of work writes, if it appends to one stream under a lease; nothing if it does anything else."""
    recorder = _Recorder(last_entries)
    try:
        answer = work(recorder)
    except Exception:  # noqa: BLE001  if it is an error of the work's own, it is raised again the long way
        return None
    if recorder.lease is None or not recorder.entries:
        return None
    return OrdinaryAppend(*recorder.lease, recorder.stream, recorder.last, recorder.entries, answer)
