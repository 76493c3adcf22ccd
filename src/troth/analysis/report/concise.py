"""Write findings as one line each, as compilers do: what editors and `grep` read."""

from collections.abc import Iterator

from troth.analysis.report.content import CheckReport
from troth.analysis.report.printable import printable
from troth.analysis.report.text import Paint, closing, crash_lines, no_paint, shown_place

__all__ = ["render"]


def render(report: CheckReport, *, paint: Paint = no_paint, quiet: bool = False) -> Iterator[str]:
    """`path:line:column: CODE message`; `[*]` marks what `troth fix` repairs. Then what it comes to, unless `quiet`."""
    for finding in report.findings:
        place = paint(f"{shown_place(report, finding.span)}:", "bold")
        code = paint(finding.code, "red" if finding.confidence == "certain" else "yellow", "bold")
        mark = " [*]" if finding.fix is not None and finding.fix.safety == "sure" else ""
        yield f"{place} {code}{mark} {printable(finding.message)}"
    yield from crash_lines(report, paint) if quiet else closing(report, paint)
