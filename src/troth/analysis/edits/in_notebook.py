"""Say edits of a notebook's code as edits of its JSON text."""

import json
from collections.abc import Callable, Iterable

from troth.analysis.findings import Edit, Finding
from troth.analysis.source.notebook_text import NotebookText, notebook_text

__all__ = ["in_notebooks"]

_SUFFIX = ".ipynb"


def in_notebooks(findings: Iterable[Finding], data_of: Callable[[str], bytes]) -> list[Finding]:
    """The findings, with the edits of their fixes counted in the file; a fix that cannot be said exactly is dropped."""
    texts: dict[str, NotebookText | None] = {}

    def edit(original: Edit) -> Edit | None:
        if not original.path.endswith(_SUFFIX):
            return original
        if original.path not in texts:
            texts[original.path] = notebook_text(data_of(original.path))
        text = texts[original.path]
        place = text.place(original.start, original.end) if text is not None and "\n" not in original.text else None
        return Edit(original.path, *place, json.dumps(original.text)[1:-1]) if place is not None else None

    def translated(finding: Finding) -> Finding:
        fix = finding.fix
        if fix is None or not any(change.path.endswith(_SUFFIX) for change in fix.edits):
            return finding
        edits = tuple(moved for original in fix.edits if (moved := edit(original)) is not None)
        return finding._replace(fix=fix._replace(edits=edits) if len(edits) == len(fix.edits) else None)

    return [translated(finding) for finding in findings]
