"""Tell all that is wrong with a workflow at once, each with its place and the nearest right name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from troth.errors import MisuseError
from troth.runtime.workflows.document.nodes import SourceMark

__all__ = ["DocumentProblem", "InvalidWorkflowError", "Problems", "Unreadable", "did_you_mean", "nearest"]


@dataclass(frozen=True, slots=True, order=True)
class DocumentProblem:
    """One thing that is wrong: where, what, and what to write instead."""

    mark: SourceMark
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.mark}: {self.what}" + (f"\n    {self.advice}" if self.advice else "")

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        place = {"file": self.mark.file, "line": self.mark.line, "column": self.mark.column}
        return {**place, "what": self.what, "advice": self.advice}


class Unreadable(Exception):  # noqa: N818 -- never leaves the loader: it carries one problem to where they are collected
    """A part of the document that cannot be made sense of; the rest is read on."""

    def __init__(self, mark: SourceMark, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.problem = DocumentProblem(mark, message, advice)


class InvalidWorkflowError(MisuseError):
    """A workflow that was refused before anything ran. `problems` has all of them, in the order of their places."""

    def __init__(self, problems: Sequence[DocumentProblem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        count = f"{len(self.problems)} problems" if len(self.problems) > 1 else "1 problem"
        listed = "\n".join(map(str, self.problems))
        super().__init__(f"{listed}\nThe workflow has {count} and was not started, so nothing has to be undone.")


@dataclass(slots=True)
class Problems:
    """Where problems are gathered while a workflow is read."""

    found: list[DocumentProblem] = field(default_factory=list)

    def add(self, mark: SourceMark, message: str, advice: str = "") -> None:
        """Note one problem and go on."""
        self.found.append(DocumentProblem(mark, message, advice))

    def raise_any(self) -> None:
        """Refuse the workflow if anything was found."""
        if self.found:
            raise InvalidWorkflowError(self.found)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The name that was probably meant; None where nothing is near, so that no wild guess is printed."""
    names = list(candidates)
    folded = {candidate.casefold(): candidate for candidate in names}
    if name.casefold() in folded:
        return folded[name.casefold()]
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(name: str, candidates: Iterable[str], *, kind: str) -> str:
    """A sentence of advice: the nearest name, or the list where nothing is near."""
    names = sorted(set(candidates))
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean `{near}`?"
    if not names:
        return f"There is no {kind} here."
    shown = ", ".join(f"`{candidate}`" for candidate in names[:12])
    return f"There are: {shown}{' …' if len(names) > 12 else ''}"
