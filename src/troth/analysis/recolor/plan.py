"""What a recolor comes to: what changes, what stays and why, and what somebody has to decide first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from troth.analysis.crash import Crash
from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite, Mention
from troth.analysis.semantics.symbols import Function

__all__ = ["Color", "Listed", "Plan", "Waits", "outside", "split_by_kind"]

Color = Literal["sync", "async"]


@dataclass(frozen=True, slots=True, order=True)
class Listed:
    """A place that is named and left as it is."""

    path: str
    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Waits:
    """A function that cannot take the color, with the place in it that says so.

    `settled_by` are the lines of a file of decisions, each of which would settle it.
    """

    function: Function
    why: str
    line: int
    settled_by: tuple[str, ...] = ()
    doubt: str = ""  # as that of an `Obstacle`


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a recolor would do. It can be carried out if `is_clear`."""

    target: str
    to: Color
    definitions: tuple[Function, ...]
    followers: tuple[Function, ...]
    sites: tuple[CallSite, ...]
    edits: tuple[Edit, ...]
    unable: tuple[Waits, ...] = ()
    problems: tuple[Obstacle, ...] = ()
    unknown: tuple[CallSite, ...] = ()
    mentions: tuple[Mention, ...] = ()
    stays: tuple[Listed, ...] = ()
    texts: tuple[Listed, ...] = ()
    wrong_colors: tuple[Listed, ...] = ()
    untested: tuple[CallSite, ...] | None = None
    notes: tuple[Listed, ...] = field(default=())
    runs: tuple[Listed, ...] = ()  # where plain code runs the coroutine to its end
    concerned: frozenset[str] = frozenset()  # the files that say a name of what changes
    taught: tuple[Listed, ...] = ()  # dispatchers that take both colors from now on
    marked: tuple[Listed, ...] = ()  # places that nobody can decide, where a comment says so
    crashes: tuple[Crash, ...] = ()  # exceptions of our own: then nobody knows what else would have to change

    @property
    def is_clear(self) -> bool:
        """Whether nothing stands in the way but namesakes that may be left."""
        return not (self.unable or self.problems)


def split_by_kind(problems: Mapping[CallSite, Obstacle]) -> tuple[list[Obstacle], list[Listed]]:
    """What somebody has to decide first, and what stands in a page or docstring only: that is named, and never runs."""
    code = [problem for site, problem in problems.items() if site.tree.view.kind in {"code", "notebook"}]
    text = [
        Listed(problem.path, problem.line, problem.text, problem.why)
        for site, problem in problems.items()
        if site.tree.view.kind not in {"code", "notebook"}
    ]
    return code, text


def outside(sites: Iterable[CallSite], within: Callable[[str], bool]) -> tuple[Listed, ...]:
    """The calls that lie outside of what may be changed: they break, so they are at least named."""
    why = "a call outside of `--in`; it has to be changed by hand"
    return tuple(Listed(site.path, site.line, site.text, why) for site in sites if not within(site.path))
