"""What an expression stands for where the program has not walked over it: by its scope and plain assignments."""

import ast

from troth.analysis.facts.from_ast.expressions import ExpressionReader
from troth.analysis.recolor.project.tree import Tree, own_nodes
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.infer.evaluator import Evaluator
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Value, union

__all__ = ["looked_up"]

_DEEPEST = 4  # variables that stand for one another; beyond it they stay unknown


def looked_up(
    workspace: RecolorWorkspace, tree: Tree, node: ast.expr, caller: Function | None, depth: int = 0
) -> Value | None:
    """What `node` in `caller` stands for; None where that cannot be told."""
    scope = _scope(workspace, tree, caller)
    read = ExpressionReader().expr(node)
    value = scope.value(read)
    if value is not None or caller is None or depth > _DEEPEST:
        return value
    if isinstance(node, ast.Name):
        return _bound(workspace, tree, node.id, caller, depth)
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    bound = {
        name: value
        for name in sorted(names)
        if scope.value(("name", name)) is None
        and (value := _bound(workspace, tree, name, caller, depth + 1)) is not None
    }
    scope.env.update(bound)
    return scope.value(read) if bound else None


def _scope(workspace: RecolorWorkspace, tree: Tree, caller: Function | None) -> Evaluator:
    program = workspace.program
    return program.static(program.module(tree.view.name), caller, None if caller is None else caller.owner)


def _bound(workspace: RecolorWorkspace, tree: Tree, name: str, caller: Function, depth: int) -> Value | None:
    """What a variable of `caller` stands for, wherever it is bound there; None if one of the places cannot be told."""
    where = workspace.definition(caller)
    if where is None:
        return None
    values = [
        _at_binding(workspace, tree, part, caller, depth)
        for part in own_nodes(where[1])
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
    ]
    return None if not values or any(value is None for value in values) else union(values)


def _at_binding(workspace: RecolorWorkspace, tree: Tree, part: ast.Name, caller: Function, depth: int) -> Value | None:
    """What one statement binds to a name, alone or in a tuple of names."""
    target: ast.expr = part
    statement = tree.parent(target)
    while isinstance(statement, ast.Tuple | ast.List | ast.Starred):
        target, statement = statement, tree.parent(statement)
    scope = _scope(workspace, tree, caller)
    value: Value | None = None
    if isinstance(statement, ast.Assign) and target in statement.targets:
        value = looked_up(workspace, tree, _filled(statement.value), caller, depth + 1)
    elif isinstance(statement, ast.AnnAssign) and statement.target is target:
        annotation = ExpressionReader().expr(statement.annotation)
        return workspace.program.annotated(annotation, workspace.program.module(tree.view.name))
    elif isinstance(statement, ast.For | ast.comprehension) and statement.target is target:
        value = scope.iterated(looked_up(workspace, tree, _filled(statement.iter), caller, depth + 1))
    elif isinstance(statement, ast.withitem) and statement.optional_vars is target:
        is_async = isinstance(tree.parent(statement), ast.AsyncWith)
        entered = looked_up(workspace, tree, statement.context_expr, caller, depth + 1)
        value = None if entered is None else scope.entered(entered, is_async=is_async)
    elif isinstance(statement, ast.NamedExpr):
        value = looked_up(workspace, tree, statement.value, caller, depth + 1)
    if value is None or target is part:
        return value
    scope.bind(ExpressionReader().expr(target), value)
    return scope.env.get(part.id)


def _filled(node: ast.expr) -> ast.expr:
    """`rows` in `rows if rows else []` and in `rows or []`: out of an empty list nothing is ever taken."""
    if isinstance(node, ast.IfExp):
        arms = [arm for arm in (node.body, node.orelse) if not _is_empty(arm)]
        return arms[0] if len(arms) == 1 else node
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        return node.values[0] if _is_empty(node.values[1]) else node
    return node


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.List | ast.Tuple | ast.Set) and not node.elts) or (
        isinstance(node, ast.Dict) and not node.keys
    )
