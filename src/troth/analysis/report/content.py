"""Knows what a report is about: findings, and all that has to be said beside them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Finding
from troth.analysis.source.lines import Lines

if TYPE_CHECKING:
    from troth.analysis.fingerprint import Mark
    from troth.analysis.program import Program
    from troth.analysis.report.rulebook import RulePage

__all__ = ["Report", "plural"]


class Report(NamedTuple):
    """One run, ready to be shown.

    `findings` are those that count, sorted by place; `checked` is how many files were looked at for them. What a
    baseline knows or a comment silences is only counted. `shown` turns a path of the project into what the user reads
    and can click: a path from the working folder.
    """

    findings: tuple[Finding, ...]
    checked: int
    lines: Lines
    rules: "Mapping[str, RulePage]"
    shown: Callable[[str], str] = str
    silenced: int = 0
    acknowledged: int = 0  # in a comment for another linter
    known: int = 0  # by the baseline
    baseline: str | None = None
    repaired: "tuple[Mark, ...]" = ()
    newer_syntax: tuple[str, ...] = ()
    since: str | None = None
    program: "Program | None" = None  # answers what is asked beyond the findings


def plural(count: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
