"""Write findings as JUnit XML, which most CI services show as failed tests."""

from collections.abc import Iterator

from troth.analysis.crash import sentence
from troth.analysis.findings import Finding
from troth.analysis.report.content import CheckReport
from troth.analysis.report.github import details

__all__ = ["render"]


def render(report: CheckReport) -> Iterator[str]:
    """A suite per file, a failed test per finding; without any finding, one test that passed."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_path.setdefault(finding.span.path, []).append(finding)
    count, errors = len(report.findings), len(report.crashes)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="troth" tests="{max(1, count + errors)}" failures="{count}" errors="{errors}">'
    for path, findings in by_path.items():
        yield _suite(path, len(findings), len(findings))
        for finding in findings:
            span = finding.span
            cell = "" if span.cell is None else f"cell {span.cell}, "
            name = f"{finding.code} {finding.rule} ({cell}line {span.line})"
            line = f' line="{span.line}" column="{span.column}"' if span.cell is None else ""
            yield f'    <testcase name="{_text(name)}" classname="{_text(path)}" file="{_text(path)}"{line}>'
            yield f'      <failure message="{_text(finding.message)}">{_text(details(finding, report))}</failure>'
            yield "    </testcase>"
        yield "  </testsuite>"
    if errors:  # the check is not complete, and a CI service must not show it as passed
        yield f'  <testsuite name="troth" tests="{errors}" failures="0" errors="{errors}">'
        for crash in report.crashes:
            yield f'    <testcase name="{_text(f"internal error: {crash.rule or crash.error}")}" classname="troth">'
            yield f'      <error message="{_text(sentence(crash))}"/>'
            yield "    </testcase>"
        yield "  </testsuite>"
    if not by_path and not errors:
        yield _suite("troth", 1, 0)
        yield f'    <testcase name="{report.checked} checked, no findings" classname="troth"/>'
        yield "  </testsuite>"
    yield "</testsuites>"


def _suite(name: str, tests: int, failures: int) -> str:
    return f'  <testsuite name="{_text(name)}" tests="{tests}" failures="{failures}" errors="0">'


def _text(text: str) -> str:
    """As XML takes it: the five letters with a meaning written out, and those that no XML may hold as Python does."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    escaped = escaped.replace("\n", "&#10;")
    return "".join(letter if _is_allowed(letter) else ascii(letter)[1:-1] for letter in escaped)


def _is_allowed(letter: str) -> bool:
    return letter == "\t" or "\x20" <= letter <= "\ud7ff" or "\ue000" <= letter <= "\ufffd" or letter > "\uffff"
