"""Write the comments that silence findings where they are."""

import io
import tokenize
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from troth.analysis.edits.apply import apply
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding
from troth.analysis.old_codes import current
from troth.analysis.source.allow import Allow, allows_in, line_starts, statement_lines, string_lines
from troth.analysis.source.encoding import decode
from troth.analysis.source.lines import BOM, Lines
from troth.analysis.source.syntax import problem_in

__all__ = ["Silenced", "silencing"]

_UPKEEP = ("TR001", "TR002")  # about the file and its comments; another comment would help neither


class Silenced(NamedTuple):
    """The files with comments in them, how many comments there are, and the findings that none can be written for."""

    changes: tuple[Change, ...]
    comments: int
    left: tuple[Finding, ...]


def silencing(findings: Iterable[Finding], lines: Lines) -> Silenced:
    """Comments for all `findings`, one to a line. Notebooks, and files that cannot be read, are left alone."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.span.path, []).append(finding)
    changes: list[Change] = []
    unsilenced: list[Finding] = []
    comments = 0
    for path, in_file in by_path.items():
        data = lines.data(path)
        rows = {} if data is None or path.endswith(".ipynb") else _rows(path, data, in_file)
        written = {finding for at_row in rows.values() for finding in at_row}
        unsilenced += [finding for finding in in_file if finding not in written]
        if data is None or not rows:
            continue
        after = _with_comments(path, data, rows)
        if problem_in(path, after):
            unsilenced += written
            continue
        changes.append(Change(path, data, after))
        comments += len(rows)
    return Silenced(tuple(changes), comments, tuple(unsilenced))


def _rows(path: str, data: bytes, findings: Sequence[Finding]) -> dict[int, list[Finding]]:
    """The line at which the comment for each finding goes; a finding without such a line is not there."""
    try:
        text = decode(data, path).text.removeprefix(BOM)
    except (SyntaxError, UnicodeDecodeError):
        return {}
    ends = _line_ends(text)
    statements = statement_lines(text)
    strings = string_lines(text)
    rows: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.code in _UPKEEP:
            continue
        span = finding.span
        first = statements.get(span.line, (span.line, span.line))[0]
        around = [end for end, start in strings.items() if start <= span.line <= end]
        row = next((line for line in (*range(span.line, span.end_line + 1), first, *around) if line in ends), None)
        if row is not None:
            rows.setdefault(row, []).append(finding)
    return rows


def _with_comments(path: str, data: bytes, rows: dict[int, list[Finding]]) -> bytes:
    source = decode(data, path)
    mark = len(BOM) if source.text.startswith(BOM) else 0
    text = source.text[mark:]
    ends, starts = _line_ends(text), line_starts(text)
    allows = {allow.span.line: allow for allow in allows_in(path, data) if allow.names and not allow.is_for_file}
    edits = []
    for row, findings in rows.items():
        names = sorted({finding.rule for finding in findings})
        allow = allows.get(row)
        if allow is not None and allow.names_end is not None:
            missing = [name for name in names if name not in allow.names and not _names_code(allow, findings, name)]
            edits.append(Edit(path, allow.names_end, allow.names_end, "".join(f", {name}" for name in missing)))
        else:
            at = mark + starts[row - 1] + ends[row]
            edits.append(Edit(path, at, at, f"  # troth: allow {', '.join(names)}"))
    return source.encode(apply(source.text, edits))


def _names_code(allow: Allow, findings: Sequence[Finding], name: str) -> bool:
    codes = {current(name) for name in allow.names}
    return any(finding.code in codes for finding in findings if finding.rule == name)


def _line_ends(text: str) -> dict[int, int]:
    """For each line that a comment can end, the column where it ends; not inside a string, or before a backslash."""
    ends = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                ends[token.start[0]] = token.start[1]
    except (tokenize.TokenError, SyntaxError, SystemError):
        return {}
    return ends
