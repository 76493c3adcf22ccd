"""What a report is about: findings, and all that has to be said beside them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Finding
from troth.analysis.old_codes import OldCode
from troth.analysis.source.lines import Lines

if TYPE_CHECKING:
    from troth.analysis.crash import Crash
    from troth.analysis.report.fingerprint import Mark
    from troth.analysis.report.rulebook import RulePage
    from troth.analysis.semantics import Program

__all__ = ["CheckReport", "plural"]


class CheckReport(NamedTuple):
    """One run, ready to be shown.

    `findings` are those that count, sorted by place, one for each cause; `places` are the same before those of one
    cause were joined, for whoever repairs or silences each. `checked` is how many files were looked at. What a
    baseline knows or a comment silences is only counted. `shown` turns a path of the project into what the user reads
    and can click: a path from the working folder.
    """

    findings: tuple[Finding, ...]
    checked: int
    lines: Lines
    rules: "Mapping[str, RulePage]"
    shown: Callable[[str], str] = str
    root: str = ""  # of the project, absolute
    silenced: int = 0
    acknowledged: int = 0  # in a comment for another linter
    known: int = 0  # by the baseline
    baseline: str | None = None
    repaired: "tuple[Mark, ...]" = ()
    newer_syntax: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()  # that could not be looked into
    since: str | None = None
    is_selected: bool = False  # the user named the rules
    places: tuple[Finding, ...] = ()
    program: "Program | None" = None  # answers what is asked beyond the findings
    crashes: "tuple[Crash, ...]" = ()  # one of each kind; what they cost is missing among the findings
    old_codes: tuple[OldCode, ...] = ()  # in options, settings, comments and the baseline


def plural(count: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
