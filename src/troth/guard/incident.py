"""What one incident is: a promise that was lost, or a loop that was held up, with the line to look at."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

__all__ = ["Frame", "Incident", "Kind"]

Kind = Literal["coroutine", "generator", "task", "exception", "blocked"]


class Frame(NamedTuple):
    """One line of a stack, in the shape and order in which Python keeps the origin of a coroutine."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, eq=False)
class Incident:
    """What went wrong, and where.

    coroutine  made and never awaited: its body never ran
    generator  an async generator that was made and never iterated
    task       collected, or left at exit, while still pending
    exception  a task or future that failed, and nobody ever read why
    blocked    an event loop that could not turn, seen while it was stuck

    `file` and `line` are where the promise was made (for `blocked`: the line that blocks); both are empty (`""`, 0)
    where Python does not tell, and then `defined_file` and `defined_line`, the `def` of the function, are the best
    there is. `stack` goes from the inside out. Two incidents are never equal: three losses on one line are three.
    """

    kind: Kind
    name: str
    file: str
    line: int
    thread: str
    when: float
    stack: tuple[tuple[str, int, str], ...] = ()
    defined_file: str = ""
    defined_line: int = 0
    task: str | None = None
    seconds: float | None = None
    detail: str = ""

    @property
    def is_loss(self) -> bool:
        """Whether a promise was lost; a blocked loop is late, not lost."""
        return self.kind != "blocked"

    @property
    def place(self) -> str:
        """`file:line` to look at first."""
        if self.file:
            return f"{self.file}:{self.line}"
        return f"{self.defined_file}:{self.defined_line}" if self.defined_file else "an unknown place"

    def __str__(self) -> str:
        defined = f" (defined at {self.defined_file}:{self.defined_line})" if self.defined_file else ""
        origin = f"made at {self.file}:{self.line}{defined}" if self.file else f"created at an unknown line{defined}"
        match self.kind:
            case "coroutine":
                return f"coroutine '{self.name}' was never awaited: {origin}{self._because}"
            case "generator":
                return f"async generator '{self.name}' was never iterated: defined at {self.place}{self._because}"
            case "task":
                return f"task {self.task!r} ('{self.name}') was dropped while pending: {origin}{self._because}"
            case "exception":
                return f"the exception of '{self.name}' was never read: {origin}{self._because}"
            case "blocked":
                who = f"task {self.task!r}" if self.task else "a callback"
                return f"event loop blocked for {self.seconds:.2f} s so far at {self.place} by {who} ('{self.name}')"

    @property
    def _because(self) -> str:
        return f"; {self.detail}" if self.detail else ""

    def to_json(self) -> dict[str, object]:
        """The incident as one object of the JSON lines log; empty fields are left out."""
        entry: dict[str, object] = {
            "kind": self.kind,
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "thread": self.thread,
            "when": datetime.fromtimestamp(self.when, UTC).isoformat(timespec="milliseconds"),
            "defined_file": self.defined_file,
            "defined_line": self.defined_line,
            "task": self.task,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "detail": self.detail,
            "stack": [Frame(*entry)._asdict() for entry in self.stack],
        }
        always = ("kind", "name", "file", "line", "thread", "when")
        return {key: value for key, value in entry.items() if key in always or value not in ("", 0, None, [])}
