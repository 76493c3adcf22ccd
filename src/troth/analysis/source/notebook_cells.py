"""Tell a place in a notebook by its cell, where analysis gives a line of all cells together."""

from collections.abc import Iterable

from troth.analysis.findings import Finding, Reason
from troth.analysis.source.lines import Lines
from troth.analysis.source.notebook import Notebook, read_notebook

__all__ = ["by_cell"]

_SUFFIX = ".ipynb"


def by_cell(findings: Iterable[Finding], lines: Lines) -> list[Finding]:
    """The same findings; reasons in notebooks, and notebooks that cannot be read, are placed by cell."""
    known: dict[str, Notebook | None] = {}

    def notebook(path: str) -> Notebook | None:
        if path not in known:
            try:
                known[path] = read_notebook(lines.data(path) or b"")
            except ValueError:
                known[path] = None
        return known[path]

    def reason(one: Reason) -> Reason:
        if one.path is None or one.line is None or not one.path.endswith(_SUFFIX):
            return one
        whole = notebook(one.path)
        if whole is None:
            return one
        cell, before = whole.cell_of(one.line)
        return Reason(f"{one.text}, in cell {cell}", one.path, one.line - before)

    def placed(finding: Finding) -> Finding:
        reasons = tuple(reason(one) for one in finding.reasons)
        if reasons != finding.reasons:
            finding = finding._replace(reasons=reasons)
        span = finding.span
        if span.cell is None and span.path.endswith(_SUFFIX) and (whole := notebook(span.path)) is not None:
            cell, before = whole.cell_of(span.line)
            place = span._replace(line=span.line - before, end_line=span.end_line - before, cell=cell)
            finding = finding._replace(span=place)
        return finding

    return [placed(one) for one in findings]
