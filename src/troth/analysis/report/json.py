"""Knows how to write findings as JSON: an array of objects, described in `docs/reference/check.md`."""

import json
from collections.abc import Iterable

from troth.analysis.findings import Finding, Fix

__all__ = ["as_object", "render"]


def render(findings: Iterable[Finding]) -> str:
    """One object per line, so that the output can be compared by line; in ASCII, which no pipe or locale spoils."""
    rows = [json.dumps(as_object(one)) for one in findings]
    return "[\n" + ",\n".join(f"  {row}" for row in rows) + "\n]" if rows else "[]"


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
        "reason": [{"text": one.text, "path": one.path, "line": one.line} for one in finding.reasons],
        "fix": None if finding.fix is None else _fix(finding.fix),
    }


def _fix(fix: Fix) -> dict[str, object]:
    edits = [{"path": one.path, "start": one.start, "end": one.end, "text": one.text} for one in fix.edits]
    return {"title": fix.title, "safety": fix.safety, "edits": edits}
