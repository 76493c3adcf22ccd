"""Write findings as annotations of GitHub Actions."""

from collections.abc import Iterator

from troth.analysis.crash import sentence
from troth.analysis.findings import Finding
from troth.analysis.report.advice import advice
from troth.analysis.report.content import CheckReport

__all__ = ["details", "render"]


def render(report: CheckReport) -> Iterator[str]:
    """One workflow command per finding; certain ones are errors, likely ones warnings."""
    for finding in report.findings:
        level = "error" if finding.confidence == "certain" else "warning"
        span = finding.span
        # A notebook's lines count in its cell, and GitHub shows the file: a line there would point somewhere else.
        where = {"file": span.path}
        if span.cell is None:
            where |= {"line": str(span.line), "col": str(span.column), "endLine": str(span.end_line)}
            if span.end_line == span.line:  # GitHub refuses columns that end on another line
                where |= {"endColumn": str(span.end_column)}
        where["title"] = f"{finding.code} {finding.rule}"
        properties = ",".join(f"{name}={_property(value)}" for name, value in where.items())
        yield f"::{level} {properties}::{_data(details(finding, report))}"
    for crash in report.crashes:
        where = {"file": crash.path, "line": str(crash.line)} if crash.path else {}
        where["title"] = "TR000 internal-error"
        properties = ",".join(f"{name}={_property(value)}" for name, value in where.items())
        yield f"::error {properties}::{_data(sentence(crash))}"


def details(finding: Finding, report: CheckReport) -> str:
    """All that is known about a finding, as lines of plain text with paths from the root of the project."""
    cell = "" if finding.span.cell is None else f" (cell {finding.span.cell}, line {finding.span.line})"
    lines = [finding.message + cell]
    for reason in finding.reasons:
        place = "" if reason.path is None else f" ({reason.path}:{reason.line})"
        lines.append(f"because {reason.text}{place}")
    lines.append(f"fix: {finding.fix.title}" if finding.fix is not None else f"repair: {advice(finding, report)}")
    page = report.rules.get(finding.code)
    if page is not None:
        lines.append(page.url)
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
