"""Read an agent's answer off the log of its conversation: its texts piece by piece, what it used, how it ended.

The log never changes, so the same answer is read by everybody, at any time and in any process. An answer begins at the
entry that names its request. It ends with the run that took notice of it; a run that was cut off by the death of its
process is none: somebody goes on with it. The step that was cut off is taken again, and says everything once more: what
was heard of it, and never said as a whole, is taken back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    kind: Literal["created", "begun", "text begun", "text", "text done", "text taken back", "over"]
    index: int = 0
    text: str = ""


@dataclass
class Piece:
    """One text that the agent says: as far as it was heard of, and whether that is all."""

    text: str = ""
    is_done: bool = False
    is_taken_back: bool = False
    """Whether it counts no more: the step that said it was cut off, and is taken again."""


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
    skipped: Sequence[tuple[int, int]] = ()
    """Which entries, from the first number to the last, are known to be taken back: nothing is told of them."""
    taken_back: list[tuple[int, int]] = field(default_factory=list)
    """The entries that were taken back, as `skipped` of somebody who reads the answer after that."""
    _heard_from: int = 0
    _settled: int = 0
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
        return "\n\n".join(self.pieces[index].text for index in self.counting)

    @property
    def counting(self) -> list[int]:
        """The numbers of the texts that were not taken back."""
        return [index for index, piece in enumerate(self.pieces) if not piece.is_taken_back]

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
            case "run.started":
                yield from self._take_back(event)
            case "tokens":
                if not any(first <= event.seq <= last for first, last in self.skipped):
                    self._heard_from = self._heard_from or event.seq
                    yield from self._heard(event.payload["text"])
            case "step.done":
                self._settle()
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
            self._settle()
            yield Happening("text done", len(self.pieces) - 1, self.pieces[-1].text)

    def _ended(self, event: Event) -> Iterator[Happening]:
        outcome = event.payload["outcome"]
        if outcome == "failed":
            self.error = event.payload.get("error") or {}
        state = _ENDS.get(outcome)
        if state is None and self._is_stopped:
            state = "incomplete"
        if state is None:
            yield from self._take_back(event)
        else:
            yield from self._over(state, event.at)

    def _settle(self) -> None:
        """What was heard until now stays, whatever becomes of the run: its step is over, or it was said as a whole."""
        is_open = bool(self.pieces) and not self.pieces[-1].is_done
        self._settled, self._heard_from = len(self.pieces[-1].text) if is_open else 0, 0

    def _take_back(self, event: Event) -> Iterator[Happening]:
        """A run was cut off: what was heard since its last step will be said again."""
        if not self._heard_from:
            return
        self.taken_back.append((self._heard_from, event.seq))
        piece = self.pieces[-1]
        piece.text = piece.text[: self._settled]
        piece.is_done, piece.is_taken_back = True, not piece.text
        self._settle()
        yield Happening("text taken back", len(self.pieces) - 1, piece.text)

    def _over(self, state: State, at: float) -> Iterator[Happening]:
        yield from self._done()
        self.state, self.ended_at = state, at
        yield Happening("over")
