"""Read an agent's answer off the log of its conversation: its texts piece by piece, what it used, how it ended.

The log never changes, so the same answer is read by everybody, at any time and in any process. An answer begins at the
entry that names its request. It ends with the run that took notice of it; a run that was cut off by the death of its
process is none: somebody goes on with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from troth.runtime.store import Event

__all__ = ["ANSWER", "CANCELLED", "Happening", "LoggedAnswer", "Piece"]

ANSWER = "server.answer"
"""The kind of the entry with which an answer begins. It stands behind the messages that are answered."""
CANCELLED = "server.answer.cancelled"
"""The kind of the entry that says that an answer was cancelled."""

State = Literal["queued", "in_progress", "completed", "failed", "incomplete", "cancelled"]
_ENDS: Mapping[str, State] = {"finished": "completed", "failed": "failed", "paused": "incomplete"}


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happens to an answer. `index` counts its texts from 0."""

    kind: Literal["created", "begun", "text begun", "text", "text done", "over"]
    index: int = 0
    text: str = ""


@dataclass
class Piece:
    """One text that the agent says: as far as it was heard of, and whether that is all."""

    text: str = ""
    is_done: bool = False


@dataclass
class LoggedAnswer:
    """One answer as its log tells it."""

    id: str
    state: State = "queued"
    pieces: list[Piece] = field(default_factory=list)
    error: Mapping[str, Any] | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    ended_at: float | None = None
    cursor: int = 0
    """The number of the last entry that was read."""
    _is_named: bool = False
    _is_stopped: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.state not in ("queued", "in_progress")

    @property
    def is_known(self) -> bool:
        """Whether the log has it at all."""
        return self._is_named

    @property
    def text(self) -> str:
        """All that was said."""
        return "\n\n".join(piece.text for piece in self.pieces)

    def take(self, events: Iterable[Event]) -> Iterator[Happening]:
        """Read on, and tell what happens. What comes after the end is not read."""
        for event in events:
            if self.is_over:
                return
            self.cursor = event.seq
            if self._is_named:
                yield from self._take(event)
            elif event.kind == ANSWER and event.payload["id"] == self.id:
                self._is_named = True
                yield Happening("created")

    def read(self, events: Iterable[Event]) -> "LoggedAnswer":
        """Read on, to the end of what there is."""
        for _ in self.take(events):
            pass
        return self

    def _take(self, event: Event) -> Iterator[Happening]:
        match event.kind:
            case "run.started" if self.state == "queued":
                self.state = "in_progress"
                yield Happening("begun")
            case "tokens":
                yield from self._heard(event.payload["text"])
            case "message" if event.payload["role"] == "assistant":
                yield from self._said(event.payload["text"])
            case "agent.usage":
                self.input_tokens += int(event.payload.get("input_tokens", 0))
                self.output_tokens += int(event.payload.get("output_tokens", 0))
            case "asked":
                self._is_stopped = True
            case "run.ended":
                yield from self._ended(event)
            case kind if kind == CANCELLED and event.payload["id"] == self.id:
                yield from self._over("cancelled", event.at)

    def _heard(self, text: str) -> Iterator[Happening]:
        if not self.pieces or self.pieces[-1].is_done:
            self.pieces.append(Piece())
            yield Happening("text begun", len(self.pieces) - 1)
        self.pieces[-1].text += text
        yield Happening("text", len(self.pieces) - 1, text)

    def _said(self, text: str) -> Iterator[Happening]:
        """The whole of a text; what was heard before is its beginning, or was taken back."""
        heard = self.pieces[-1] if self.pieces and not self.pieces[-1].is_done else None
        if heard is None and not text:
            return  # it only asked for tools
        if heard is not None and heard.text.rstrip() == text.rstrip():
            heard.text = text  # word by word, with a space behind the last one
        elif heard is None or not text.startswith(heard.text):
            yield from self._done()
            yield from self._heard(text)
        elif len(text) > len(heard.text):
            yield from self._heard(text[len(heard.text) :])
        yield from self._done()

    def _done(self) -> Iterator[Happening]:
        if self.pieces and not self.pieces[-1].is_done:
            self.pieces[-1].is_done = True
            yield Happening("text done", len(self.pieces) - 1, self.pieces[-1].text)

    def _ended(self, event: Event) -> Iterator[Happening]:
        outcome = event.payload["outcome"]
        if outcome == "failed":
            self.error = event.payload.get("error") or {}
        state = _ENDS.get(outcome)
        if state is None and self._is_stopped:
            state = "incomplete"
        if state is not None:
            yield from self._over(state, event.at)

    def _over(self, state: State, at: float) -> Iterator[Happening]:
        yield from self._done()
        self.state, self.ended_at = state, at
        yield Happening("over")
