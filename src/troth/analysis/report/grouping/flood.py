"""Decide when one rule has so much to say that the others would not be heard, and how it is told in short."""

from collections import Counter
from collections.abc import Iterator, Sequence

from troth.analysis.findings import Finding
from troth.analysis.report.content import plural

__all__ = ["Flood", "flood"]

_MANY = 50  # more than anybody reads one by one
_NAMED = 3


class Flood:
    """The findings of one rule that are most of a report: one of each file is told in full, the others in a line."""

    def __init__(self, code: str, findings: Sequence[Finding]) -> None:
        self._mine = [finding for finding in findings if finding.code == code]
        self._other_count = len(findings) - len(self._mine)
        self._in_full = set({finding.span.path: finding for finding in reversed(self._mine)}.values())

    def is_short(self, finding: Finding) -> bool:
        """Whether a line is enough for this one."""
        return finding.code == self._mine[0].code and finding not in self._in_full

    def closing(self) -> Iterator[str]:
        """How much there is of it, what it is mostly about, and how to see the rest alone."""
        code, rule = self._mine[0].code, self._mine[0].rule
        about = Counter(finding.subject for finding in self._mine if finding.subject).most_common(_NAMED)
        subjects = ", ".join(f"`{subject}` ({count:,})" for subject, count in about)
        yield (
            f"{code} {rule} is {len(self._mine):,} of these, in {plural(len(self._in_full), 'file')}"
            f"{f', most often about {subjects}' if subjects else ''}; shown in full once in each file"
        )
        yield f"`--select {code}` shows all in full, `--ignore {code}` leaves {plural(self._other_count, 'other')}"


def flood(findings: Sequence[Finding]) -> Flood | None:
    """The rule that drowns the others, if there is one and there are others."""
    counted = Counter(finding.code for finding in findings).most_common(1)
    if not counted:
        return None
    code, count = counted[0]
    return Flood(code, findings) if count >= _MANY and len(findings) / 2 < count < len(findings) else None
