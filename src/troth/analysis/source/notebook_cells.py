"""Tell a place in a notebook by its cell, where analysis gives a line of all cells together."""

from collections.abc import Iterable

from troth.analysis.findings import Finding, Reason
from troth.analysis.source.lines import Lines
from troth.analysis.source.notebook import Notebook, read_notebook

__all__ = ["by_cell"]

_SUFFIX = ".ipynb"


def by_cell(findings: Iterable[Finding], lines: Lines) -> list[Finding]:
    """The same findings; reasons in notebooks, and notebooks that cannot be read, are placed by cell."""
    notebooks: dict[str, Notebook | None] = {}

    def notebook(path: str) -> Notebook | None:
        if path not in notebooks:
            try:
                notebooks[path] = read_notebook(lines.data(path) or b"")
            except ValueError:
                notebooks[path] = None
        return notebooks[path]

    def reason(original: Reason) -> Reason:
        if original.path is None or original.line is None or not original.path.endswith(_SUFFIX):
            return original
        whole = notebook(original.path)
        if whole is None:
            return original
        cell, before = whole.cell_of(original.line)
        return Reason(f"{original.text}, in cell {cell}", original.path, original.line - before)

    def placed(finding: Finding) -> Finding:
        reasons = tuple(reason(original) for original in finding.reasons)
        if reasons != finding.reasons:
            finding = finding._replace(reasons=reasons)
        span = finding.span
        if span.cell is None and span.path.endswith(_SUFFIX) and (whole := notebook(span.path)) is not None:
            cell, before = whole.cell_of(span.line)
            place = span._replace(line=span.line - before, end_line=span.end_line - before, cell=cell)
            finding = finding._replace(span=place)
        return finding

    return [placed(finding) for finding in findings]
