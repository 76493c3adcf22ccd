"""Write findings as a code quality report of GitLab: https://docs.gitlab.com/ci/testing/code_quality/."""

import json
from hashlib import sha256

from troth.analysis.crash import Crash, sentence
from troth.analysis.findings import Finding
from troth.analysis.report.content import CheckReport
from troth.analysis.report.fingerprint import fingerprints

__all__ = ["render"]

_SEVERITIES = {"certain": "major", "likely": "minor"}


def render(report: CheckReport) -> str:
    """An array with an object per finding; paths start at the root of the project, as GitLab has them."""
    prints = fingerprints(report.findings)
    rows = [_row(finding, mark) for finding, mark in zip(report.findings, prints, strict=True)]
    return json.dumps([*rows, *map(_of_crash, report.crashes)], indent=2)


def _of_crash(crash: Crash) -> dict[str, object]:
    """The object of an exception of our own: the check is not complete, and GitLab has no other place to say so."""
    place = f"{crash.path}\0{crash.rule}\0{crash.error}\0{crash.place}"
    begin = {"line": max(1, crash.line), "column": 1}
    return {
        "check_name": "internal-error",
        "description": sentence(crash),
        "fingerprint": sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        "severity": "critical",
        "location": {"path": crash.path or ".", "positions": {"begin": begin, "end": begin}},
    }


def _row(finding: Finding, fingerprint: str) -> dict[str, object]:
    """The object of one finding. GitLab wants fingerprints that are unique in the report, across its files."""
    span = finding.span
    # The lines of a notebook count in their cell, and GitLab shows the file: a line there would be another one.
    in_cell = "" if span.cell is None else f" (cell {span.cell}, line {span.line})"
    begin = {"line": span.line, "column": span.column} if span.cell is None else {"line": 1, "column": 1}
    end = {"line": span.end_line, "column": span.end_column} if span.cell is None else begin
    return {
        "check_name": finding.rule,
        "description": f"{finding.code}: {finding.message}{in_cell}",
        "fingerprint": sha256(f"{span.path}\0{fingerprint}".encode("utf-8", "surrogatepass")).hexdigest()[:32],
        "severity": _SEVERITIES[finding.confidence],
        "location": {"path": span.path, "positions": {"begin": begin, "end": end}},
    }
