"""Find the comments in a file that silence rules, and the lines they speak for.

`# troth: allow <rule>` is our own form, and `# troth: ignore[<rule>]` that of other tools; with `-file` behind the word
either speaks for the whole file. A code in a comment for another linter (`# noqa: …`, `# type: ignore[…]`) may say the
same as a rule.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from troth.analysis.findings import Finding, Span
from troth.analysis.old_codes import current
from troth.analysis.source.lines import BOM, decode, split

__all__ = ["Allow", "allow_of", "allows_in", "line_ends", "line_starts", "statement_lines", "string_lines"]

_TRACES = (
    b"troth:",
    b"ASYNC",
    b"RUF0",
    b"unused-",
    b"reportUnused",
)  # in hardly any file, so that hardly any has to be tokenized
_COMMENT = re.compile(r"#\s*troth:\s*(?P<word>(?:allow|ignore)\b(?:-file\b)?)[ \t]*(?P<rest>[^#]*)", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*(?:ruff|type|pyright|ty|pyrefly)\s*:\s*ignore\s*\[(?P<codes>[^\]]*)\]")
_FOREIGN = re.compile(r"(?:ASYNC|RUF0)\d+|reportUnusedCoroutine|unused-(?:coroutine|awaitable)")
_NAMES = re.compile(r"(?P<bracket>\[\s*)?(?P<names>[A-Za-z][\w-]*(?:\s*,\s*[A-Za-z][\w-]*)*)(?(bracket),?\s*\])")


class Allow(NamedTuple):
    """One comment: where it stands, which rules it names, and which lines it speaks for.

    One for another linter names no rule of ours, but has `codes`.
    """

    span: Span
    names: tuple[str, ...]
    first: int  # its own line; where a string of several lines ends there, the first of them
    last: int  # of the statement that starts on its line; its own line otherwise
    statement: int  # the first line of the statement around it
    start: int | None = None  # of the comment and the blanks before it, in the decoded file; None in a notebook
    end: int | None = None
    codes: tuple[str, ...] = ()
    word: str = "allow"  # as it is written: `allow`, `ignore`, `allow-file`, `ignore-file`
    is_bracketed: bool = False
    names_start: int | None = None  # of the names, in the decoded file; None in a notebook, and where there are none
    names_end: int | None = None

    @property
    def is_for_file(self) -> bool:
        """Whether it speaks for the whole file."""
        return self.word.endswith("-file")

    def written(self, names: Sequence[str] = ()) -> str:
        """The comment with these names."""
        rules = ", ".join(names)
        return f"# troth: {self.word}" + (f"[{rules}]" if self.is_bracketed else f" {rules}" if rules else "")

    def covers(self, finding: Finding) -> bool:
        """Whether it speaks for the place of `finding`: its own line, its end, the start of its statement, its file."""
        place = finding.span
        if self.is_for_file:
            return place.path == self.span.path
        if (place.path, place.cell) != (self.span.path, self.span.cell):
            return False
        if self.first <= place.line <= self.last:
            return True
        return self.statement <= place.line <= self.span.line <= place.end_line

    def names_rule(self, finding: Finding) -> bool:
        """Whether it names the rule of `finding`, by code or by name."""
        return any(current(name) in (finding.code, finding.rule) for name in self.names)


def allows_in(path: str, data: bytes) -> list[Allow]:
    """The comments in one file. Files without the word are not looked into."""
    if not any(trace in data for trace in _TRACES):
        return []
    if path.endswith(".ipynb"):
        from troth.analysis.source.notebook import code_cells

        cells = enumerate(code_cells(data), 1)
        return [allow for number, text in cells for allow in _allows_in_text(path, text, number)]
    return _allows_in_text(path, decode(data), None)


def _allows_in_text(path: str, text: str, cell: int | None) -> list[Allow]:
    if not any(pattern.search(text) for pattern in (_COMMENT, _NOQA, _IGNORE)):
        return []
    allows = []
    before_text = len(BOM) if text.startswith(BOM) else 0
    text = text.removeprefix(BOM)
    lines = split(text)
    ranges = statement_lines(text)
    strings = string_lines(text)
    starts = [before_text + start for start in line_starts(text)] if cell is None else []
    for line, column, comment in _comments(lines):
        first, last = ranges.get(line, (line, line))
        end = column + len(comment.rstrip())
        if codes := tuple(
            code for pattern in (_NOQA, _IGNORE) for match in pattern.finditer(comment) for code in _codes(match)
        ):
            span = Span(path, line, column + 1, line, end + 1, cell)
            allows.append(Allow(span, (), line, last if first == line else line, first, codes=codes))
        match = _COMMENT.search(comment)
        if match is None:
            continue
        begin = column + match.start()
        listed = _NAMES.match(match["rest"])
        names = tuple(part.strip() for part in listed["names"].split(",")) if listed else ()
        rest_start = starts[line - 1] + column + match.start("rest") if starts else None
        before = len(lines[line - 1][:begin].rstrip())
        allows.append(
            Allow(
                span=Span(path, line, begin + 1, line, end + 1, cell),
                names=names,
                first=strings.get(line, line),
                last=last if first == line else line,
                statement=first,
                start=starts[line - 1] + before if starts else None,
                end=starts[line - 1] + end if starts else None,
                word=match["word"].lower(),
                is_bracketed=bool(listed and listed["bracket"]),
                names_start=rest_start + listed.start("names") if listed and rest_start is not None else None,
                names_end=rest_start + listed.end("names") if listed and rest_start is not None else None,
            )
        )
    return allows


def allow_of(
    path: str, line: int, comment: str, statements: Mapping[int, tuple[int, int]], strings: Mapping[int, int]
) -> Allow | None:
    """What a comment at the end of a line would allow, by the lines of its file's statements and strings."""
    match = _COMMENT.search(comment)
    listed = None if match is None else _NAMES.match(match["rest"])
    if match is None or listed is None:
        return None
    first, last = statements.get(line, (line, line))
    names = tuple(part.strip() for part in listed["names"].split(","))
    word = match["word"].lower()
    return Allow(
        Span(path, line, 1, line, 1), names, strings.get(line, line), last if first == line else line, first, word=word
    )


def line_ends(lines: Sequence[str]) -> dict[int, int | None]:
    """The lines that can take a comment, with the column of the one that is there: not inside a string, for example.

    In a text that does not tokenize each line can, by guess.
    """
    import io
    import tokenize

    text = "".join(lines).removeprefix(BOM)
    before = len(BOM) if lines and lines[0].startswith(BOM) else 0
    ends: dict[int, int | None] = {}
    column: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            line, start = token.start
            if token.type == tokenize.COMMENT:
                column = start + (before if line == 1 else 0)
            elif token.type in (tokenize.NEWLINE, tokenize.NL):
                ends[line], column = column, None
    except (tokenize.TokenError, SyntaxError, SystemError):
        return {
            number: None if (match := _COMMENT.search(text_line)) is None else match.start()
            for number, text_line in enumerate(lines, 1)
        }
    return ends


def _codes(match: re.Match[str]) -> list[str]:
    """The codes that may say the same as a rule. Those of ruff are also written in small letters behind `# noqa`."""
    words = re.split(r"[\s,]+", match["codes"].strip())
    codes = [word.upper() if word.isalnum() and not word.startswith("report") else word for word in words]
    return [code for code in codes if _FOREIGN.fullmatch(code)]


def _comments(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """The comments that may be ours, as line, column (from 0) and text; in a text that does not tokenize, by guess."""
    import io
    import tokenize

    try:
        return [
            (*token.start, token.string)
            for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline)
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError, SystemError):  # the last on 3.12 and 3.13, for some bytes nobody writes
        return [
            (number, match.start(), line[match.start() :])
            for number, line in enumerate(lines, 1)
            if (match := _COMMENT.search(line))
        ]


def statement_lines(text: str) -> dict[int, tuple[int, int]]:
    """For each line the first and last line of its statement; of a compound statement only the header counts."""
    import ast  # late: hardly any file has such a comment

    from troth.analysis.source.tree import tree_of

    tree = tree_of(text)
    if tree is None:
        return {}
    ranges: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        body = getattr(node, "body", None)
        inner = body[0] if isinstance(body, list) and body else None
        last = node.end_lineno or node.lineno
        if isinstance(inner, ast.stmt):
            above = min([inner.lineno, *(decorator.lineno for decorator in getattr(inner, "decorator_list", ()))])
            last = max(node.lineno, above - 1)
        for line in range(node.lineno, last + 1):
            ranges[line] = (node.lineno, last)
    return ranges


def string_lines(text: str) -> dict[int, int]:
    """For each line on which a string of several lines ends, the first of them: no comment can stand inside it."""
    import ast

    from troth.analysis.source.tree import tree_of

    tree = tree_of(text)
    lines: dict[int, int] = {}
    for node in () if tree is None else ast.walk(tree):
        is_string = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_string and isinstance(node, ast.expr) and node.end_lineno is not None and node.end_lineno > node.lineno:
            lines[node.end_lineno] = min(node.lineno, lines.get(node.end_lineno, node.lineno))
    return lines


def line_starts(text: str) -> list[int]:
    """Where each line begins, in characters; lines end as Python's own tokenizer ends them."""
    starts = [0]
    at = 0
    while at < len(text):
        if text[at] == "\r" and text[at + 1 : at + 2] == "\n":
            at += 1
        if text[at] in "\r\n":
            starts.append(at + 1)
        at += 1
    return starts
