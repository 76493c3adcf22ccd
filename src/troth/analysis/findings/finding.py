"""What a finding is: an answer of one rule at one place, with its reason and perhaps its fix.

All are named tuples: every run makes them, and a module with frozen dataclasses takes longer to import than a small
project to check.
"""

from typing import Literal, NamedTuple

__all__ = ["Confidence", "Edit", "Finding", "Fix", "Reason", "Safety", "Span"]

Confidence = Literal["certain", "likely"]
Safety = Literal["sure", "likely", "guess"]


class Span(NamedTuple):
    """A place in a file. Lines and columns count from 1; the end is exclusive in its column.

    `path` is relative to the project, with forward slashes on every system. In a notebook `cell` is the number of the
    code cell, counted from 1, and lines count within it.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None


class Reason(NamedTuple):
    """One link of the chain that leads to a finding, with the place that shows it."""

    text: str
    path: str | None = None
    line: int | None = None


class Edit(NamedTuple):
    """Replace the characters `start` to `end` (counted from 0 in the decoded file) of `path` by `text`."""

    path: str
    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """Edits that belong together, and how sure they are.

    `sure` is applied by default, `likely` with `--all`, and `guess` with `--guesses`: it rests on nothing but a name,
    or on what other calls do. `is_resolved` says that it awaits an `async def` of the project that nothing has changed.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...]
    is_resolved: bool = False


class Finding(NamedTuple):
    """What one rule says about one place.

    `symbol` is the qualified name of the function or class around it, and `subject` the thing it is about (mostly the
    callee as written); together with `code` they make the finding recognisable after lines have moved. `kind` is the
    kind of waiting, where a comment for another linter may mean that one alone. Findings of one `cause`, where there
    is one, are one problem at several places. `repair` says how this place is repaired where it is not as its rule
    says. `is_resolved` says that it is about an `async def` of the project that nothing has changed.
    """

    code: str
    rule: str
    span: Span
    message: str
    confidence: Confidence
    reasons: tuple[Reason, ...] = ()
    fix: Fix | None = None
    symbol: str = ""
    subject: str = ""
    kind: str = ""
    cause: str = ""
    repair: str = ""
    is_resolved: bool = False

    @property
    def paths(self) -> set[str]:
        """The files that it tells of a place in."""
        reason_paths = {reason.path for reason in self.reasons if reason.path is not None}
        return (
            reason_paths | {edit.path for edit in (self.fix.edits if self.fix is not None else ())} | {self.span.path}
        )
