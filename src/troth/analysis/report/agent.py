"""Write findings for a program that repairs code: a paragraph each, with the exact edit as a diff."""

from collections.abc import Iterator

from troth.analysis.crash import line_of
from troth.analysis.edits.apply import apply
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding, Fix, Reason, Safety
from troth.analysis.fix.diff import diff
from troth.analysis.report.advice import advice
from troth.analysis.report.content import CheckReport, plural
from troth.analysis.report.grouping.families import in_order
from troth.analysis.report.printable import in_one_line
from troth.analysis.source.encoding import decode

__all__ = ["render"]

_SAFETY: dict[Safety, str] = {
    "sure": "safe to apply",
    "likely": "review before applying",
    "guess": "a guess: review before applying",
}


def render(report: CheckReport) -> Iterator[str]:
    """Lines of text. All paths start at the root of the project, so that `git apply` takes each diff there."""
    yield f"Project: {report.root or '.'} (all paths are relative to it)"
    recolors = _recolors(report)
    for number, finding in enumerate(in_order(report.findings), 1):
        yield ""
        yield from _paragraph(number, finding, report, recolors.get((finding.span.path, finding.symbol), ""))
    yield ""
    yield from (line_of(crash, str) for crash in report.crashes)
    yield _closing(report)


def _paragraph(number: int, finding: Finding, report: CheckReport, recolor: str) -> Iterator[str]:
    span = finding.span
    cell = "" if span.cell is None else f", cell {span.cell}"
    place = f"{in_one_line(span.path)}{cell}, line {span.line}, column {span.column}"
    yield f"{number}. {finding.code} {finding.rule} ({finding.confidence}): {place}"
    yield f"Problem: {' '.join(finding.message.split())}."
    if finding.reasons:
        yield f"Because: {'; '.join(map(_reason, finding.reasons))}."
    if finding.fix is not None:
        yield f"Edit ({_SAFETY[finding.fix.safety]}): {finding.fix.title}"
        yield from _diffs(finding.fix, report)
    else:
        yield f"Repair: {advice(finding, report)}."
        if recolor:
            yield f"Command: {recolor}"


def _reason(reason: Reason) -> str:
    place = "" if reason.path is None else f" ({in_one_line(reason.path)}:{reason.line})"
    return f"{reason.text}{place}"


def _diffs(fix: Fix, report: CheckReport) -> Iterator[str]:
    by_path: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.path, []).append(edit)
    for path, edits in by_path.items():
        text = decode(report.lines.data(path) or b"", path).text
        change = Change(path, text.encode(), apply(text, edits).encode())
        for line in diff(change):
            yield line.decode(errors="surrogateescape").removesuffix("\n")


def _recolors(report: CheckReport) -> dict[tuple[str, str], str]:
    """The change of color that would repair what no fix can, by the path and the symbol of the finding."""
    if report.program is None or all(finding.fix is not None for finding in report.findings):
        return {}
    from troth.analysis.fix.proposal import proposals

    commands = {}
    for proposal in proposals(report.program, report.findings):
        if command := proposal.command():
            commands[proposal.function.place[0], proposal.function.qualname] = f"{command} ({proposal.words()})"
    return commands


def _closing(report: CheckReport) -> str:
    files = plural(report.checked, "file")
    if not report.findings:
        return f"No findings in {files}."
    return (
        f"{plural(len(report.findings), 'finding')}, {files} checked. `troth fix` applies every edit that is safe to "
        "apply; `troth check` afterwards shows what is left."
    )
