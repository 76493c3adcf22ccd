"""Say in comments where nobody can tell whether a place has to change, so that the rest can be written."""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.recolor.plan import Color, Listed, Plan
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.symbols import Function

__all__ = ["doubtful", "doubts_marked"]

_WIDTH = 100


def doubtful(site: CallSite, functions: Sequence[Function], to: Color) -> str:
    """What a comment says of a call that may mean one of `functions`."""
    names = sorted({f"`{function.qualname}`" for function in functions})
    name = f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else names[0] if names else f"`{site.name}`"
    does = "enter" if site.use.kind == "managed" and site.name.startswith("__") else "call"
    then = "has to be awaited" if to == "async" else "must not be awaited"
    then = "needs `async with`" if does == "enter" and to == "async" else then
    return f"`{site.text}` may {does} {name}, which is {to} now; then it {then}"


def doubts_marked(workspace: RecolorWorkspace, plan: Plan) -> Plan:
    """The plan with a comment at each place that only people can decide, instead of an obstacle.

    What would surely be wrong stays an obstacle, and so does what stands where no comment can: in a notebook, or in a
    file that cannot be read.
    """
    doubts: dict[tuple[str, int], list[Listed]] = {}
    changed = (*plan.definitions, *plan.followers)

    def is_marked(path: str, line: int, text: str, doubt: str) -> bool:
        tree = workspace.tree(path) if doubt and path in workspace.views else None
        start = _statement_at(tree, line) if tree is not None and tree.view.kind == "code" else None
        if start is not None:
            doubts.setdefault((path, start), []).append(Listed(path, line, text, doubt))
        return start is not None

    unable = [
        waits
        for waits in plan.unable
        if not is_marked(waits.function.module.path, waits.line, waits.function.qualname, waits.doubt)
    ]
    problems = [
        problem for problem in plan.problems if not is_marked(problem.path, problem.line, problem.text, problem.doubt)
    ]
    unknown = []
    for site in plan.unknown:
        namesakes = [function for function in changed if function.name == site.name]
        doubt = doubtful(site, namesakes, plan.to) if site.tree.view.kind == "code" else ""
        if not is_marked(site.path, site.line, site.text, doubt):
            unknown.append(site)
    edits = [
        edit
        for (path, start), listed in sorted(doubts.items())
        if (tree := workspace.tree(path)) is not None and (edit := _comment(tree, start, listed)) is not None
    ]
    return replace(
        plan,
        edits=(*edits, *plan.edits),  # before what goes to the same place
        unable=tuple(unable),
        problems=tuple(problems),
        unknown=tuple(unknown),
        marked=tuple(sorted(dict.fromkeys(doubt for listed in doubts.values() for doubt in listed))),
    )


def _statement_at(tree: Tree, line: int) -> int | None:
    """The line on which the innermost statement around `line` begins that begins a line."""
    found = None
    for statement, first in _statements(tree):
        # A decorator begins its line always, another statement may stand behind a `;` or a `:`.
        prefix = tree.text.line(first)[: statement.col_offset] if first == statement.lineno else ""
        if first <= line <= (statement.end_lineno or first) and not prefix.strip(" \t\f\ufeff"):
            found = first if found is None else max(found, first)
    return found


def _statements(tree: Tree) -> Iterator[tuple[ast.stmt, int]]:
    for node in tree.parents:
        if isinstance(node, ast.stmt):
            decorators = node.decorator_list if isinstance(node, Definition | ast.ClassDef) else []
            yield node, min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _comment(tree: Tree, line: int, listed: Sequence[Listed]) -> Edit | None:
    text = tree.text.line(line)
    begins = 1 if text.startswith("\ufeff") else 0
    indent = text[begins : len(text) - len(text[begins:].lstrip())]
    newline = text[len(text.rstrip("\r\n")) :] or "\n"
    rows = [
        f"{indent}# {row}{newline}"
        for doubt in dict.fromkeys(place.why for place in listed)
        for row in textwrap.wrap(
            re.sub(r"\s+", " ", f"troth: {doubt}"), max(40, _WIDTH - len(indent)), break_long_words=False
        )
    ]
    start = tree.text.offset(line, 0) + begins
    return tree.view.edit(start, start, "".join(rows))
