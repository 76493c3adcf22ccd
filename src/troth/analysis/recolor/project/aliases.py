"""Find the calls of a function that is put into a variable first: `later = partial(f, 1)`, then `later()`."""

import ast

from troth.analysis.recolor.project.tree import Definition, Tree

__all__ = ["calls_by_variable"]

_PARTIALS = frozenset({"partial", "functools.partial"})


def calls_by_variable(tree: Tree, node: ast.expr) -> list[ast.Call] | None:
    """Every call of what `node` is put into, a partial of it included; None where it may be called elsewhere, too."""
    holder, parent = node, tree.parent(node)
    if isinstance(parent, ast.Call) and parent.args[:1] == [node] and ast.unparse(parent.func) in _PARTIALS:
        holder, parent = parent, tree.parent(parent)
        if isinstance(parent, ast.Call) and parent.func is holder:
            return [parent]
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    target, around = parent.targets[0], tree.around(parent)
    if not isinstance(around, Definition):
        return None
    calls: list[ast.Call] = []
    for part in ast.walk(around):
        if isinstance(part, ast.Global | ast.Nonlocal) and target.id in part.names:
            return None
        if isinstance(part, ast.arg) and part.arg == target.id:
            return None
        if isinstance(part, ast.Name) and part.id == target.id and part is not target:
            call = tree.parent(part)
            if tree.around(part) is not around or not isinstance(call, ast.Call) or call.func is not part:
                return None
            calls.append(call)
    return calls
