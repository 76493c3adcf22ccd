"""Say a finding as a diagnostic of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lsprotocol import types

from troth.analysis.findings import Finding, Reason
from troth.analysis.report.rulebook import RulePage
from troth.lsp.protocol.positions import Positions

__all__ = ["SOURCE", "Telling", "diagnostic"]

SOURCE = "troth"


class Telling(NamedTuple):
    """How findings are told to this client. `positions` are those of a file of the project, `uri` its address."""

    positions: Callable[[str], Positions]
    uri: Callable[[str], str]
    rules: Mapping[str, RulePage]
    has_related: bool = True
    has_links: bool = True
    has_tags: bool = True


def diagnostic(finding: Finding, telling: Telling, positions: Positions | None) -> types.Diagnostic:
    """The diagnostic of a finding; without `positions` it stands at the top of its file, and says where it is."""
    span = finding.span
    place = types.Range(types.Position(0, 0), types.Position(0, 0))
    message = finding.message
    if finding.code == "TR001":
        message = (
            f"this cannot be read: {finding.subject}. The rest of the file is checked as it was before"
            if positions is not None
            else message
        )
    if positions is not None:
        place = positions.range_of(span)
    elif span.cell is not None:
        message = f"cell {span.cell}, line {span.line}: {message}"
    related = [reason for reason in finding.reasons if reason.path is not None and reason.line is not None]
    shown = related if telling.has_related else []
    message += "".join(f"\nbecause {reason.text}" for reason in finding.reasons if reason not in shown)
    if finding.confidence == "likely":
        message += "\n(likely, not certain)"
    return types.Diagnostic(
        range=place,
        message=message,
        severity=_severity(finding),
        code=finding.code,
        code_description=_page(finding, telling) if telling.has_links else None,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if telling.has_tags and _is_needless(finding) else None,
        related_information=[_related(reason, telling) for reason in shown] or None,
    )


def _severity(finding: Finding) -> types.DiagnosticSeverity:
    if finding.code == "TR001" or (finding.confidence == "certain" and finding.code.startswith(("TR1", "TR2"))):
        return types.DiagnosticSeverity.Error
    if finding.code == "TR002" or _is_needless(finding):
        return types.DiagnosticSeverity.Information
    return types.DiagnosticSeverity.Warning


def _is_needless(finding: Finding) -> bool:
    return finding.code.startswith("TR3") or finding.code == "TR002"


def _page(finding: Finding, telling: Telling) -> types.CodeDescription | None:
    page = telling.rules.get(finding.code)
    return None if page is None else types.CodeDescription(page.url)


def _related(reason: Reason, telling: Telling) -> types.DiagnosticRelatedInformation:
    assert reason.path is not None
    assert reason.line is not None
    if reason.path.endswith(".ipynb"):
        place = types.Range(types.Position(0, 0), types.Position(0, 0))
    else:
        place = telling.positions(reason.path).line_range(reason.line)
    return types.DiagnosticRelatedInformation(types.Location(telling.uri(reason.path), place), reason.text)
