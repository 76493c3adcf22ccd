"""Write findings as SARIF 2.1.0, as code scanning services read it.

Paths are relative to `%SRCROOT%`, so that the file means the same in every checkout and tells nobody where it was made.
"""

import json
import os
from urllib.parse import quote

from troth import __version__
from troth.analysis.crash import Crash, sentence
from troth.analysis.findings import Edit, Finding, Fix, Reason, Span
from troth.analysis.report.content import CheckReport
from troth.analysis.report.fingerprint import fingerprints
from troth.analysis.report.rulebook import DOCS, RulePage
from troth.analysis.source.lines import decode

__all__ = ["render"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"certain": "error", "likely": "warning"}


def render(report: CheckReport) -> str:
    """The whole log, with one run in it."""
    pages = [
        report.rules[code] for code in sorted({finding.code for finding in report.findings}) if code in report.rules
    ]
    places = {page.code: index for index, page in enumerate(pages)}
    prints = fingerprints(report.findings)
    driver = {
        "name": "Troth",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": DOCS,
        "rules": [_rule(page) for page in pages],
    }
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "troth/check/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the checked project."}}},
        "results": [
            _result(finding, report, places, mark) for finding, mark in zip(report.findings, prints, strict=True)
        ],
    }
    if report.crashes:
        notes = [_notification(crash) for crash in report.crashes]
        run["invocations"] = [{"executionSuccessful": False, "toolExecutionNotifications": notes}]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _notification(crash: Crash) -> dict[str, object]:
    """An exception of our own: what it cost, and what a report of the bug needs."""
    note: dict[str, object] = {
        "descriptor": {"id": "TR000"},
        "level": "error",
        "message": {"text": sentence(crash)},
        "exception": {"kind": crash.error, "message": crash.message},
        "properties": {"place": crash.place},
    }
    if crash.rule:
        note["associatedRule"] = {"id": crash.rule}
    if crash.path:
        physical = {"artifactLocation": _artifact(crash.path), "region": {"startLine": crash.line}}
        note["locations"] = [{"physicalLocation": physical}]
    return note


def _rule(page: RulePage) -> dict[str, object]:
    full = " ".join((page.part("What it finds") or page.part("") or page.title).split())
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": full},
        "help": {
            "text": "\n\n".join(f"{head}: {text}" if head else text for head, text in page.parts) or page.title,
            "markdown": "\n\n".join(f"**{head}.** {text}" if head else text for head, text in page.parts) or page.title,
        },
        "helpUri": page.url,
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["correctness", "async", *([page.family] if page.family else [])], "precision": "high"},
    }


def _result(finding: Finding, report: CheckReport, rules: dict[str, int], mark: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.confidence],
        "message": {"text": finding.message},
        "locations": [_location(finding.span, report)],
        "partialFingerprints": {"primaryLocationLineHash": mark, "troth/v1": mark},
        "properties": {"confidence": finding.confidence},
    }
    if finding.code in rules:
        result["ruleIndex"] = rules[finding.code]
    reasons = [reason for reason in finding.reasons if reason.path is not None and not reason.path.startswith("/")]
    if reasons:
        result["relatedLocations"] = [_reason_location(reason, number) for number, reason in enumerate(reasons, 1)]
        steps = [{"location": _reason_location(reason, None)} for reason in reversed(reasons)]
        end = {"location": {**_location(finding.span, report), "message": {"text": finding.message}}}
        result["codeFlows"] = [{"threadFlows": [{"locations": [*steps, end]}]}]
    if finding.fix is not None and finding.span.cell is None:
        result["fixes"] = [_fix(finding.fix, report)]
    return result


def _location(span: Span, report: CheckReport) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": _artifact(span.path)}
    if span.cell is None:
        physical["region"] = _region(span)
        text = report.lines.at(span.path, span.line)
        if text.strip():
            physical["contextRegion"] = {"startLine": span.line, "snippet": {"text": text}}
        return {"physicalLocation": physical}
    name = f"cell {span.cell}, line {span.line}"  # lines of a cell are not lines of the file
    return {"physicalLocation": physical, "logicalLocations": [{"name": name, "kind": "member"}]}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _reason_location(reason: Reason, number: int | None) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": _artifact(reason.path or "")}
    if reason.line is not None and not (reason.path or "").endswith(".ipynb"):
        physical["region"] = {"startLine": reason.line}
    location: dict[str, object] = {"physicalLocation": physical, "message": {"text": reason.text}}
    return location if number is None else {"id": number, **location}


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(os.fsencode(path)), "uriBaseId": "%SRCROOT%"}


def _fix(fix: Fix, report: CheckReport) -> dict[str, object]:
    by_path: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.path, []).append(edit)
    changes = []
    for path, edits in sorted(by_path.items()):
        text = decode(report.lines.data(path) or b"")
        changes.append(
            {"artifactLocation": _artifact(path), "replacements": [_replacement(edit, text) for edit in edits]}
        )
    return {"description": {"text": fix.title}, "artifactChanges": changes}


def _replacement(edit: Edit, text: str) -> dict[str, object]:
    line, column = _line_and_column(text, edit.start)
    end_line, end_column = _line_and_column(text, edit.end)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
