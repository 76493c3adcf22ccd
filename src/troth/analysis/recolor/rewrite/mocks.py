"""The mocks that stand in for a method, and gives them the color that it has from now on."""

import ast
from collections.abc import Collection, Sequence

from troth.analysis.findings import Edit
from troth.analysis.recolor.plan import Color, Listed
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

__all__ = ["mocks_recolored"]

_ASYNC = frozenset({"AsyncMock"})
_PLAIN = frozenset({"Mock", "MagicMock"})


def mocks_recolored(
    workspace: RecolorWorkspace, functions: Sequence[Function], to: Color
) -> tuple[list[Edit], list[Listed]]:
    """The edits that turn an `AsyncMock` for one of `functions` into a `Mock`, or back, and what nobody can tell."""
    names = {function.name for function in functions}
    wrong = _ASYNC if to == "sync" else _PLAIN
    edits: list[Edit] = []
    listed: list[Listed] = []
    for path, view in sorted(workspace.views.items()):
        if "Mock" not in view.text or not any(name in view.text for name in names):
            continue
        tree = workspace.tree(path)
        if tree is None:
            continue
        chosen: list[ast.expr] = []
        for node in ast.walk(tree.module):
            for receiver, name, mock in _mocked(node, wrong):
                if name not in names:
                    continue
                whose = _whose(workspace, tree, receiver, name, functions)
                if whose:
                    chosen.append(mock)
                elif whose is None:
                    line = node.lineno if isinstance(node, ast.stmt | ast.expr) else 1
                    kind = ast.unparse(mock).rpartition(".")[2]
                    why = f"{'an' if kind == 'AsyncMock' else 'a'} {kind} of that name"
                    listed.append(Listed(view.path, line, ast.unparse(node).splitlines()[0], why))
        listed += _parts_of_mocks(tree, names, wrong)
        if chosen:
            edits += _renamed(tree, chosen, to)
    return edits, listed


def _mocked(node: ast.AST, wrong: Collection[str]) -> list[tuple[ast.expr, str, ast.expr]]:
    """Where a mock of the `wrong` color is put in place of a method: receiver, name, and the mock as written."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_mock(node.value.func, wrong):
        return [
            (target.value, target.attr, node.value.func) for target in node.targets if isinstance(target, ast.Attribute)
        ]
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("patch.object", "setattr"))
        and len(node.args) >= 2
    ):
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            replacements = [
                *node.args[2:3],
                *(keyword.value for keyword in node.keywords if keyword.arg in {"new", "new_callable"}),
            ]
            mocks = [
                replacement.func if isinstance(replacement, ast.Call) else replacement for replacement in replacements
            ]
            return [(node.args[0], name.value, mock) for mock in mocks if _is_mock(mock, wrong)]
    return []


def _parts_of_mocks(tree: Tree, names: Collection[str], wrong: Collection[str]) -> list[Listed]:
    """Where a mock of a whole object is asked for a method: `store = AsyncMock()`, then `store.save.return_value = 1`.

    What becomes of its method is the mock's color, unless it was given a class to look like.
    """
    whole = {
        ast.unparse(target): ast.unparse(node.value.func).rpartition(".")[2]
        for node in ast.walk(tree.module)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_mock(node.value.func, wrong)
        if not node.value.args
        and not any(keyword.arg in {"spec", "spec_set", "wraps"} for keyword in node.value.keywords)
        for target in node.targets
    }
    if not whole:
        return []
    by_line: dict[int, Listed] = {}
    for node in ast.walk(tree.module):
        if not isinstance(node, ast.Attribute) or node.attr not in names or isinstance(node.ctx, ast.Store):
            continue
        if (kind := whole.get(ast.unparse(node.value))) and getattr(tree.parent(node), "func", None) is not node:
            why = f"a part of {'an' if kind == 'AsyncMock' else 'a'} {kind}, which has its color"
            by_line.setdefault(node.lineno, Listed(tree.view.path, node.lineno, ast.unparse(node), why))
    return list(by_line.values())


def _is_mock(node: ast.expr, names: Collection[str]) -> bool:
    return ast.unparse(node).rpartition(".")[2] in names


def _whose(
    workspace: RecolorWorkspace, tree: Tree, receiver: ast.expr, name: str, functions: Sequence[Function]
) -> bool | None:
    """Whether the method of `receiver` is one of `functions`; None where nobody can tell."""
    around = tree.around(receiver)
    caller = workspace.function(tree, around) if isinstance(around, Definition) else None
    method = ast.copy_location(ast.Attribute(receiver, name, ast.Load()), receiver)
    value = looked_up(workspace, tree, method, caller)
    methods = [member.function for member in members_of(value) if isinstance(member, FunctionValue)]
    return any(method in functions for method in methods) if methods else None


def _renamed(tree: Tree, mocks: Sequence[ast.expr], to: Color) -> list[Edit]:
    imports = [node for node in ast.walk(tree.module) if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    new = "AsyncMock" if to == "async" else "MagicMock" if "MagicMock" in imported else "Mock"
    edits: list[Edit | None] = []
    bare: str | None = None
    for mock in mocks:
        end = tree.end(mock)
        old = ast.unparse(mock).rpartition(".")[2]
        bare = old if isinstance(mock, ast.Name) else bare
        edits.append(tree.view.edit(end - len(old), end, new))
    if bare is not None and new not in imported:
        for alias in (alias for node in imports for alias in node.names):
            if alias.name == bare and alias.asname is None:
                end = tree.text.offset(alias.end_lineno or 1, alias.end_col_offset or 0)
                edits.append(tree.view.edit(end, end, f", {new}"))
    return [edit for edit in edits if edit is not None]
