"""Write the comment that allows a finding on its line."""

from __future__ import annotations

import re
from itertools import accumulate

from troth.analysis.findings import Edit, Finding
from troth.analysis.source.allow import allow_of, line_ends, statement_lines, string_lines
from troth.lsp.protocol.positions import split

__all__ = ["AllowComments"]

_ALLOW = re.compile(r"#\s*troth:\s*allow[ \t]+[\w-]+(?:\s*,\s*[\w-]+)*", re.IGNORECASE)


class AllowComments:
    """The comments that could be added to one text, which is read once: all of it may be selected."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._is_notebook = path.endswith(".ipynb")
        self._lines = [] if self._is_notebook else split(text)
        self._starts = list(accumulate(map(len, self._lines), initial=0))
        self._statements = {} if self._is_notebook else statement_lines(text)
        self._strings = {} if self._is_notebook else string_lines(text)
        self._ends = {} if self._is_notebook else line_ends(self._lines)

    def edit_for(self, finding: Finding) -> Edit | None:
        """The edit that adds the comment; None where no line of the finding can take one (in a string, a notebook)."""
        for line in dict.fromkeys((finding.span.line, finding.span.end_line)):
            if line not in self._ends:
                continue
            edit, comment = self._comment(line, finding.rule)
            allow = allow_of(self._path, line, comment, self._statements, self._strings)
            if allow is not None and allow.names_rule(finding) and allow.covers(finding):
                return edit
        return None

    def _comment(self, line: int, rule: str) -> tuple[Edit, str]:
        """The edit at the end of a line, and the comment that stands there then."""
        body = self._lines[line - 1].rstrip("\r\n")
        start = self._starts[line - 1]
        begin = self._ends[line]  # of the comment that is there
        ours = None if begin is None else _ALLOW.search(body, begin)
        if ours is not None:
            edit = Edit(self._path, start + ours.end(), start + ours.end(), f", {rule}")
        else:
            edit = Edit(self._path, start + len(body.rstrip()), start + len(body), f"  # troth: allow {rule}")
        after = body[: edit.start - start] + edit.text + body[edit.end - start :]
        return edit, after[len(body.rstrip()) if begin is None else begin :].lstrip()
