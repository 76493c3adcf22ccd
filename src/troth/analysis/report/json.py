"""Write findings as JSON; `schemas/check-v1.json` describes it, and so does `docs/reference/check.md`."""

import json
from collections.abc import Sequence

from troth.analysis.crash import Crash, sentence
from troth.analysis.findings import Finding, Fix
from troth.analysis.report.content import CheckReport

__all__ = ["VERSION", "as_object", "crash_as_object", "render"]

VERSION = 1  # of the schema


def render(report: CheckReport) -> str:
    """One finding per line, so that the output can be compared by line; in ASCII, which no pipe or locale spoils."""
    head = {"version": VERSION, "root": report.root, "checked": report.checked}
    lists = {
        "findings": _rows([as_object(finding) for finding in report.findings]),
        "errors": _rows([crash_as_object(crash) for crash in report.crashes]),
    }
    keys = [f'  "{key}": {json.dumps(value)}' for key, value in head.items()]
    return "{\n" + ",\n".join([*keys, *(f'  "{key}": {rows}' for key, rows in lists.items())]) + "\n}"


def _rows(objects: Sequence[dict[str, object]]) -> str:
    return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in objects) + "\n  ]" if objects else "[]"


def as_object(finding: Finding) -> dict[str, object]:
    """The object for one finding; `cell` is only there in a notebook."""
    span = finding.span
    cell = {} if span.cell is None else {"cell": span.cell}
    return {
        "code": finding.code,
        "rule": finding.rule,
        "path": span.path,
        **cell,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "message": finding.message,
        "confidence": finding.confidence,
        "reason": [{"text": reason.text, "path": reason.path, "line": reason.line} for reason in finding.reasons],
        "fix": None if finding.fix is None else _fix(finding.fix),
    }


def crash_as_object(crash: Crash) -> dict[str, object]:
    """The object for an exception of our own: that of a finding, and what a report of the bug needs."""
    return {
        "code": "TR000",
        "rule": "internal-error",
        "path": crash.path,
        "line": crash.line,
        "column": 1,
        "end_line": crash.line,
        "end_column": 1,
        "message": sentence(crash),
        "confidence": "certain",
        "reason": [],
        "fix": None,
        "error": {
            "rule": crash.rule or None,
            "type": crash.error,
            "message": crash.message,
            "place": crash.place,
            "others": crash.others,
        },
    }


def _fix(fix: Fix) -> dict[str, object]:
    edits = [{"path": edit.path, "start": edit.start, "end": edit.end, "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "safety": fix.safety, "edits": edits}
