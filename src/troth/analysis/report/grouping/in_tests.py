"""Tell in a line what tests may do and a program may not: keep no task, hold up a loop that serves nobody."""

from collections import Counter
from collections.abc import Iterator, Sequence

from troth.analysis.findings import Finding
from troth.analysis.project.test_files import is_test
from troth.analysis.report.content import CheckReport, plural

__all__ = ["in_short", "summed_up"]

_MINOR = frozenset({"TR112", "TR602"})
_NAMED = 3


def in_short(report: CheckReport) -> list[Finding]:
    """The findings that one line is enough for: none where nothing else was found, or the user named the rules."""
    minor = [finding for finding in report.findings if finding.code in _MINOR and is_test(finding.span.path)]
    return [] if report.is_selected or len(minor) == len(report.findings) else minor


def summed_up(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each rule: how often, in how many files, about what, and how to see each."""
    for code in sorted(_MINOR):
        mine = [finding for finding in findings if finding.code == code]
        if not mine:
            continue
        files = plural(len({finding.span.path for finding in mine}), "file")
        times = "once" if len(mine) == 1 else f"{len(mine):,} times"
        about = Counter(finding.subject for finding in mine if finding.subject).most_common(_NAMED)
        subjects = ", ".join(f"`{subject}` ({count:,})" for subject, count in about)
        most = f", most often about {subjects}" if subjects else ""
        yield f"In tests: {code} {mine[0].rule} {times} in {files}{most}; `--select {code}` shows each"
