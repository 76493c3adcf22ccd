"""What people have decided about places that no rule can decide: kept in a file, so that nobody is asked twice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from troth.analysis.semantics.symbols import Function
from troth.errors import MisuseError

__all__ = ["NOTHING_DECIDED", "TOP", "Answer", "Decisions", "place_of", "read_decisions"]

Answer = Literal["recolor", "leave", "boundary"]

TOP = "<module>"  # the code at the top of a file


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Answers by place: `path/to/file.py:function`, `path/to/file.py:<module>` or `path/to/file.py:12`.

    A function is a better place than a line, because lines move. `recolor` changes what stands there, whatever speaks
    against it; `leave` leaves it as it is; `boundary` runs the coroutine there.
    """

    answers: Mapping[str, Answer] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of(self, path: str, name: str, line: int = 0) -> Answer | None:
        """What was decided about a line, or about the function around it."""
        for place in (f"{path}:{line}", f"{path}:{name}"):
            if place in self.answers:
                self.used.add(place)
                return self.answers[place]
        return None

    def about(self, function: Function | None, path: str, line: int = 0) -> Answer | None:
        """The same for a place in `function`, or at the top of the file."""
        return self.of(path, TOP if function is None else function.qualname, line)

    @property
    def idle(self) -> list[str]:
        """The places that nothing was asked about."""
        return sorted(set(self.answers) - self.used)


NOTHING_DECIDED = Decisions()


def place_of(function: Function | None, path: str) -> str:
    """How a place is written in a file of decisions."""
    return f"{path}:{TOP if function is None else function.qualname}"


def read_decisions(text: str, name: str) -> Decisions:
    """The decisions that `text` holds, one to a line, `PLACE: ANSWER`; `#` begins a comment."""
    answers: dict[str, Answer] = {}
    for number, row in enumerate(text.splitlines(), 1):
        line = row.partition("#")[0].strip()
        if not line:
            continue
        place, colon, answer = line.rpartition(":")
        place, answer = place.strip(), answer.strip()
        if not colon or answer not in get_args(Answer) or ":" not in place:
            raise MisuseError(
                f"{name}:{number}: {line!r} is not a decision.\nNothing was changed.\n"
                "Write `path/to/file.py:function: recolor`, `leave` or `boundary` in place of `recolor`."
            )
        if answers.get(place, answer) != answer:
            raise MisuseError(
                f"{name}:{number}: {place} is decided twice, {answers[place]!r} and {answer!r}.\nNothing was changed.\n"
                "Keep one of the lines."
            )
        answers[place] = cast("Answer", answer)
    return Decisions(answers)
