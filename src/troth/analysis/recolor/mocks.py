"""Knows the mocks that stand in for a method, and makes those plain that mocked an async one."""

import ast
from collections.abc import Sequence

from troth.analysis.findings import Edit
from troth.analysis.program.entities import Function
from troth.analysis.program.values import FunctionValue, members_of
from troth.analysis.recolor.looked_up import looked_up
from troth.analysis.recolor.plan import Listed
from troth.analysis.recolor.tree import Definition, Tree
from troth.analysis.recolor.workspace import Workspace

__all__ = ["mocks_made_plain"]


def mocks_made_plain(workspace: Workspace, functions: Sequence[Function]) -> tuple[list[Edit], list[Listed]]:
    """The edits that turn an `AsyncMock` for one of `functions` into a `Mock`, and those nobody can tell of."""
    names = {one.name for one in functions}
    edits: list[Edit] = []
    listed: list[Listed] = []
    for path, view in sorted(workspace.views.items()):
        if "AsyncMock" not in view.text or not any(name in view.text for name in names):
            continue
        tree = workspace.tree(path)
        if tree is None:
            continue
        chosen: list[ast.expr] = []
        for node in ast.walk(tree.module):
            for receiver, name, mock in _mocked(node):
                if name not in names:
                    continue
                whose = _whose(workspace, tree, receiver, name, functions)
                if whose:
                    chosen.append(mock)
                elif whose is None:
                    line = node.lineno if isinstance(node, ast.stmt | ast.expr) else 1
                    listed.append(
                        Listed(view.path, line, ast.unparse(node).splitlines()[0], "an AsyncMock of that name")
                    )
        if chosen:
            edits += _renamed(tree, chosen)
    return edits, listed


def _mocked(node: ast.AST) -> list[tuple[ast.expr, str, ast.expr]]:
    """Where a mock is put in place of a method: the receiver, the name, and `AsyncMock` as it is written there."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_mock(node.value.func):
        return [(one.value, one.attr, node.value.func) for one in node.targets if isinstance(one, ast.Attribute)]
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("patch.object", "setattr"))
        and len(node.args) >= 2
    ):
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            given = [*node.args[2:3], *(one.value for one in node.keywords if one.arg in {"new", "new_callable"})]
            mocks = [one.func if isinstance(one, ast.Call) else one for one in given]
            return [(node.args[0], name.value, one) for one in mocks if _is_mock(one)]
    return []


def _is_mock(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] == "AsyncMock"


def _whose(
    workspace: Workspace, tree: Tree, receiver: ast.expr, name: str, functions: Sequence[Function]
) -> bool | None:
    """Whether the method of `receiver` is one of `functions`; None where nobody can tell."""
    around = tree.around(receiver)
    caller = workspace.function(tree, around) if isinstance(around, Definition) else None
    method = ast.copy_location(ast.Attribute(receiver, name, ast.Load()), receiver)
    value = looked_up(workspace, tree, method, caller)
    found = [one.function for one in members_of(value) if isinstance(one, FunctionValue)]
    return any(one in functions for one in found) if found else None


def _renamed(tree: Tree, mocks: Sequence[ast.expr]) -> list[Edit]:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree.module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    plain = "MagicMock" if "MagicMock" in imported else "Mock"
    edits: list[Edit | None] = []
    bare = False
    for mock in mocks:
        end = tree.end(mock)
        bare = bare or isinstance(mock, ast.Name)
        edits.append(tree.view.edit(end - len("AsyncMock"), end, plain))
    if bare and plain not in imported:
        for node in ast.walk(tree.module):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "AsyncMock" and alias.asname is None:
                        end = tree.text.offset(alias.end_lineno or 1, alias.end_col_offset or 0)
                        edits.append(tree.view.edit(end, end, f", {plain}"))
    return [one for one in edits if one is not None]
