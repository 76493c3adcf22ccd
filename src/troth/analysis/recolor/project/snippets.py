"""The Python that stands in text: the code blocks of a Markdown page and the usage lines of docstrings.

A snippet often leaves out the import of what it shows. Such a name is taken to be the target's, if nothing else in the
project is called so in that snippet.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent

from troth.analysis.recolor.project.view import Kind, SourceView
from troth.analysis.source.read import Problem, parse

__all__ = ["docstring_views", "markdown_view"]

_FENCE = re.compile(r"^(?P<indent>[ >]*)(?P<mark>`{3,}|~{3,})\s*\{?\.?(?P<language>[\w+-]*)")
_PYTHON = frozenset({"python", "py", "python3", "pycon", "ipython", "code-cell", "code-block"})

Row = tuple[int, str] | None  # where in the file a line of code starts, and the code


def markdown_view(path: str, text: str, names: Mapping[str, str]) -> SourceView | None:
    """All Python blocks of a page as one program, each line at its own number; None where there is none."""
    rows: list[Row] = []
    block: list[tuple[int, str]] | None = None
    mark = ""
    at = 0
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if block is None:
            rows.append(None)
            if fence and fence["language"].lower() in _PYTHON:
                block, mark = [], fence["mark"]
        elif fence and fence["mark"].startswith(mark) and not fence["language"]:
            rows += [*_readable(block), None]
            block = None
        else:
            block.append((at, line))
        at += len(line) + 1
    rows += [None] * len(block or ())
    return _view(path, path, "markdown", rows, names)


def docstring_views(
    path: str, text: str, tree: ast.Module, names: Mapping[str, str], called: re.Pattern[str]
) -> Iterator[SourceView]:
    """The parts of docstrings in which one of the names is called, each as a program of its own."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if not (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        ):
            continue
        if not called.search(first.value.value):
            continue
        lines = [
            (starts[number], text[starts[number] : starts[number + 1] - 1])
            for number in range(first.lineno, first.end_lineno or first.lineno)
        ]
        if lines:
            lines[-1] = (lines[-1][0], lines[-1][1].rstrip("'\" "))
        rows: list[Row] = [None] * (first.lineno + len(lines))
        for begin, end in _blocks(lines, called):
            for offset, row in enumerate(_readable(lines[begin:end])):
                rows[first.lineno + begin + offset] = row
        view = _view(f"{path}:{first.lineno}", path, "docstring", rows, names)
        if view is not None:
            yield view


def _blocks(lines: Sequence[tuple[int, str]], called: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The runs of lines around a call that are indented at least as it is and belong together."""
    position = 0
    for number, (_, line) in enumerate(lines):
        if number < position or not called.search(line):
            continue
        depth = _depth(line)
        begin = end = number
        while begin > position and (not lines[begin - 1][1].strip() or _depth(lines[begin - 1][1]) >= depth):
            begin -= 1
        shallow = depth
        # A usage line may stand inside a `with` or an `async def` of the same example.
        while (
            begin > position
            and lines[begin - 1][1].rstrip().endswith(":")
            and 0 < _depth(lines[begin - 1][1]) < shallow
        ):
            if not _is_code(lines[begin - 1][1].strip() + " pass"):
                break
            begin -= 1
            shallow = _depth(lines[begin][1])
            while begin > position and (not lines[begin - 1][1].strip() or _depth(lines[begin - 1][1]) >= shallow):
                begin -= 1
        while end < len(lines) and (not lines[end][1].strip() or _depth(lines[end][1]) >= shallow):
            end += 1
        position = end
        yield begin, end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_code(text: str) -> bool:
    return not isinstance(parse(text.encode("utf-8", "surrogatepass"), top_level_await=True), Problem)


def _readable(block: Sequence[tuple[int, str]]) -> list[Row]:
    """The block as Python, without its indentation and its prompts. What is no Python stays out, paragraph-wise."""
    prompted = any(line.lstrip(" >").startswith(">> ") or line.lstrip().startswith(">>> ") for _, line in block)
    rows: list[Row] = []
    for at, line in block:
        if not prompted:
            rows.append((at, line))
            continue
        bare = line.lstrip()
        if bare.startswith((">>> ", "... ")):
            rows.append((at + len(line) - len(bare) + 4, bare[4:]))
        else:
            rows.append(None)
    if not prompted:
        filled = [line for _, line in block if line.strip()]
        cut = min((_depth(line) for line in filled), default=0)
        rows = [(at + cut, line[cut:]) if line.strip() else None for at, line in block]
    if _is_code("\n".join(row[1] if row else "" for row in rows)):
        return rows
    code: list[Row] = []
    paragraph: list[Row] = []
    for row in [*rows, None]:
        if row is not None:
            paragraph.append(row)
            continue
        lines = [row[1] for row in paragraph if row]
        code += (
            paragraph if _is_code(dedent("\n".join(lines))) and _is_code("\n".join(lines)) else [None] * len(paragraph)
        )
        code.append(None)
        paragraph = []
    return code[: len(rows)]


def _view(name: str, path: str, kind: Kind, rows: list[Row], names: Mapping[str, str]) -> SourceView | None:
    lines = [row[1].rstrip("\r") if row else "" for row in rows]
    if not any(lines):
        return None
    text = "\n".join(lines) + "\n"
    tree = parse(text.encode("utf-8", "surrogatepass"), top_level_await=True)
    if isinstance(tree, Problem):
        return None
    bound = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            if isinstance(node, ast.Import | ast.ImportFrom)
            else [node.name]
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            else [node.id]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else []
        )
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    implied = "; ".join(f"from {names[name]} import {name}" for name in sorted(used & names.keys() - bound))
    if implied:
        text = implied + text if not lines[0] else text

    def origin(line: int, column: int) -> int | None:
        row = rows[line] if line < len(rows) else None
        return None if row is None else row[0] + column

    return SourceView(name, path, kind, text, origin)
