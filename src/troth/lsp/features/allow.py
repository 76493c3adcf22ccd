"""Write the comment that allows a finding on its line."""

from __future__ import annotations

import re

from troth.analysis.edits.apply import apply
from troth.analysis.findings import Edit, Finding
from troth.analysis.source.allow import allows_in
from troth.lsp.protocol.positions import split

__all__ = ["allowing"]

_ALLOW = re.compile(r"#\s*troth:\s*allow[ \t]+[\w-]+(?:\s*,\s*[\w-]+)*", re.IGNORECASE)


def allowing(finding: Finding, text: str) -> Edit | None:
    """The edit that adds the comment; None where no line of the finding can take one (inside a string, a notebook)."""
    path = finding.span.path
    if path.endswith(".ipynb"):
        return None
    lines = split(text)
    for line in dict.fromkeys((finding.span.line, finding.span.end_line)):
        if not 0 < line <= len(lines):
            continue
        edit = _edit(path, lines, line, finding.rule)
        allows = allows_in(path, apply(text, [edit]).encode("utf-8", "replace"))
        if any(allow.names_rule(finding) and allow.covers(finding) for allow in allows):
            return edit
    return None


def _edit(path: str, lines: list[str], line: int, rule: str) -> Edit:
    start = sum(map(len, lines[: line - 1]))
    body = lines[line - 1].rstrip("\r\n")
    comment = _ALLOW.search(body)
    if comment is not None:
        return Edit(path, start + comment.end(), start + comment.end(), f", {rule}")
    end = start + len(body.rstrip())
    return Edit(path, end, start + len(body), f"  # troth: allow {rule}")
