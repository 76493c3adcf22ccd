"""Say edits of a notebook's code as edits of its JSON text."""

import json
from collections.abc import Callable, Iterable

from troth.analysis.findings import Edit, Finding
from troth.analysis.source.notebook_text import NotebookText, notebook_text

__all__ = ["in_notebooks"]

_SUFFIX = ".ipynb"


def in_notebooks(findings: Iterable[Finding], data_of: Callable[[str], bytes]) -> list[Finding]:
    """The findings, with the edits of their fixes counted in the file; a fix that cannot be said exactly is dropped."""
    known: dict[str, NotebookText | None] = {}

    def edit(one: Edit) -> Edit | None:
        if not one.path.endswith(_SUFFIX):
            return one
        if one.path not in known:
            known[one.path] = notebook_text(data_of(one.path))
        text = known[one.path]
        place = text.place(one.start, one.end) if text is not None and "\n" not in one.text else None
        return Edit(one.path, *place, json.dumps(one.text)[1:-1]) if place is not None else None

    def translated(finding: Finding) -> Finding:
        fix = finding.fix
        if fix is None or not any(one.path.endswith(_SUFFIX) for one in fix.edits):
            return finding
        edits = tuple(found for one in fix.edits if (found := edit(one)) is not None)
        return finding._replace(fix=fix._replace(edits=edits) if len(edits) == len(fix.edits) else None)

    return [translated(one) for one in findings]
