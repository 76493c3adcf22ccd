"""The tests of `unittest`, and gives a class of them the base that awaits its async ones."""

import ast

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Function

__all__ = ["is_unittest", "isolated"]

_PLAIN, _ASYNC = "TestCase", "IsolatedAsyncioTestCase"


def is_unittest(program: Program, function: Function) -> bool:
    """Whether a function is a method of a test case of `unittest`, which no mark of pytest concerns."""
    return any(base.startswith("unittest.") for base in _bases(program, function))


def isolated(workspace: Workspace, function: Function) -> list[Edit] | str:
    """The edits that let `unittest` await the test `function`, or why that cannot be."""
    bases = _bases(workspace.program, function)
    if any(base.endswith(_ASYNC) for base in bases):
        return []
    if not function.name.startswith("test"):
        return "is called by `unittest`, which does not await it"
    where = workspace.definition(function)
    assert where is not None
    tree, node = where
    cls = tree.parent(node)
    for base in cls.bases if isinstance(cls, ast.ClassDef) else ():
        if ast.unparse(base) in {_PLAIN, f"unittest.{_PLAIN}"}:
            end = tree.end(base)
            edits = [tree.view.edit(end - len(_PLAIN), end, _ASYNC), *_imported(tree, bare=isinstance(base, ast.Name))]
            return [edit for edit in edits if edit is not None]
    return f"is a test of `unittest`, whose class would have to derive from `unittest.{_ASYNC}`"


def _bases(program: Program, function: Function) -> list[str]:
    if function.owner is None:
        return []
    return [base.qualified for base in program.classes.order(function.owner) if isinstance(base, LibraryClass)]


def _imported(tree: Tree, *, bare: bool) -> list[Edit | None]:
    """`from unittest import TestCase` with the other one beside it, where the base is named so."""
    aliases = [
        alias
        for statement in tree.module.body
        if isinstance(statement, ast.ImportFrom) and statement.module == "unittest"
        for alias in statement.names
    ]
    if not bare or any(alias.name == _ASYNC for alias in aliases):
        return []
    beside = next((alias for alias in aliases if alias.name == _PLAIN and alias.asname is None), None)
    if beside is None:
        return []
    start = tree.text.offset(beside.lineno, beside.col_offset)
    return [tree.view.edit(start, start, f"{_ASYNC}, ")]
