"""Knows how to analyse a project that has notebooks in it: they go in as Python, and findings come out by cell."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.run import Analysis, analyse
from troth.analysis.source.lines import Lines
from troth.analysis.source.notebook import Notebook, read_notebook
from troth.analysis.source.project import Project

__all__ = ["analysed"]


def analysed(
    project: Project,
    *,
    python: Path | None = None,
    jobs: int = 0,
    cache: Path | None = None,
    overlay: Mapping[str, bytes] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """As `analyse`, of notebooks too."""
    lines = Lines(project.root, overlay)
    notebooks = {path: read_notebook(lines.data(path) or b"") for path in project.files if path.endswith(".ipynb")}
    texts = {path: notebook.text.encode("utf-8", "surrogatepass") for path, notebook in notebooks.items()}
    whole = {**(overlay or {}), **texts}
    result = analyse(project, python=python, jobs=jobs, cache=cache, overlay=whole, progress=progress)
    if not notebooks:
        return result
    found = [_by_cell(one, notebooks) for one in result.findings]
    broken = {path: notebook for path, notebook in notebooks.items() if notebook.broken}
    found += [_unreadable(path, notebook) for path, notebook in broken.items()]
    unreadable = tuple(sorted({*result.unreadable, *broken}))
    newer = tuple(sorted({*result.newer_syntax, *(path for path, one in notebooks.items() if one.has_newer_syntax)}))
    return replace(result, findings=tuple(found), unreadable=unreadable, newer_syntax=newer)


def _by_cell(finding: Finding, notebooks: Mapping[str, Notebook]) -> Finding:
    reasons = tuple(_reason(one, notebooks) for one in finding.reasons)
    span = finding.span
    notebook = notebooks.get(span.path)
    if notebook is None:
        return finding if reasons == finding.reasons else replace(finding, reasons=reasons)
    cell, line = notebook.place(span.line)
    _, end_line = notebook.place(span.end_line)
    place = Span(span.path, line, span.column, max(line, end_line), span.end_column, cell)
    return replace(finding, span=place, reasons=reasons, fix=None)  # edits cannot say where in the JSON they go


def _reason(reason: Reason, notebooks: Mapping[str, Notebook]) -> Reason:
    notebook = notebooks.get(reason.path or "")
    if notebook is None or reason.line is None:
        return reason
    cell, line = notebook.place(reason.line)
    return Reason(f"{reason.text}, in cell {cell}", reason.path, line)


def _unreadable(path: str, notebook: Notebook) -> Finding:
    cell, line, problem = notebook.broken[0]
    more = f" (and {len(notebook.broken) - 1} more cells)" if len(notebook.broken) > 1 else ""
    return Finding(
        code="T001",
        rule="unreadable-file",
        span=Span(path, line, 1, line, 1, cell or None),
        message=f"this {'cell' if cell else 'file'} cannot be read, so nothing in it is checked: {problem}{more}",
        confidence="certain",
        subject=problem,
    )
