"""The tests of `unittest`, and gives a class of them the base that awaits its async ones."""

import ast
from collections.abc import Collection

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Function

__all__ = ["is_unittest", "isolated", "isolation_dropped"]

_PLAIN, _ASYNC = "TestCase", "IsolatedAsyncioTestCase"


def is_unittest(program: Program, function: Function) -> bool:
    """Whether a function is a method of a test case of `unittest`, which no mark of pytest concerns."""
    return any(base.startswith("unittest.") for base in _bases(program, function))


def isolated(workspace: RecolorWorkspace, function: Function) -> list[Edit] | str:
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


def isolation_dropped(tree: Tree, plain: Collection[Definition]) -> list[Edit]:
    """The edits for one file in which `plain` are no longer async: the bases of classes that await nothing any more."""
    uses = [node for node in tree.parents if isinstance(node, ast.Name | ast.Attribute) and _last(node) == _ASYNC]
    bases: list[ast.expr] = []
    for cls in (node for node in tree.parents if isinstance(node, ast.ClassDef)):
        inside = [node for node in ast.walk(cls) if isinstance(node, Definition)]
        if any(node in plain for node in inside) and all(
            isinstance(node, ast.FunctionDef) or node in plain for node in inside
        ):
            bases += [base for base in cls.bases if ast.unparse(base) in {_ASYNC, f"unittest.{_ASYNC}"}]
    bare = [base for base in bases if isinstance(base, ast.Name)]
    if bare:
        beside = f"{_ASYNC}, "  # as it is put beside the other one, and no other use of it is left
        start = tree.text.value.find(f"{beside}{_PLAIN}")
        if start < 0 or len([node for node in uses if isinstance(node, ast.Name)]) != len(bare):
            return []
        dropped = tree.view.edit(start, start + len(beside), "")
    else:
        dropped = None
    edits = [tree.view.edit(tree.end(base) - len(_ASYNC), tree.end(base), _PLAIN) for base in bases]
    return [edit for edit in (*edits, dropped) if edit is not None]


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


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
