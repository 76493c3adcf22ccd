"""Count findings by rule."""

from collections import Counter
from collections.abc import Iterator

from troth.analysis.report.content import CheckReport, plural
from troth.analysis.report.text import crash_lines, verdict

__all__ = ["render"]


def render(report: CheckReport, *, quiet: bool = False) -> Iterator[str]:
    """A row per rule, most frequent first, and how many a fix repairs; then what it comes to, unless `quiet`."""
    counts = Counter((finding.code, finding.rule) for finding in report.findings)
    files = {
        key: len({finding.span.path for finding in report.findings if (finding.code, finding.rule) == key})
        for key in counts
    }
    fixes = Counter((finding.code, finding.rule) for finding in report.findings if finding.fix is not None)
    width = len(str(max(counts.values(), default=0)))
    for (code, rule), count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        repair = f", {fixes[code, rule]:,} with a fix" if fixes[code, rule] else ""
        yield f"{count:>{width}}  {code} {rule}  in {plural(files[code, rule], 'file')}{repair}"
    yield from crash_lines(report)
    if not quiet:
        yield verdict(report)
