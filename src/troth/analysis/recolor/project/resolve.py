"""What an expression stands for where the program has not walked over it: by its scope and plain assignments."""

import ast

from troth.analysis.facts.from_ast.expressions import ExpressionReader, at
from troth.analysis.recolor.project.tree import Tree, own_nodes
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Value, union

__all__ = ["looked_up"]

_DEEPEST = 4  # variables that stand for one another; beyond it they stay unknown


def looked_up(
    workspace: RecolorWorkspace, tree: Tree, node: ast.expr, caller: Function | None, depth: int = 0
) -> Value | None:
    """What `node` in `caller` stands for; None where that cannot be told."""
    program = workspace.program
    scope = program.static(program.module(tree.view.name), caller, None if caller is None else caller.owner)
    value = scope.value(ExpressionReader().expr(node))
    if value is not None or caller is None or depth > _DEEPEST:
        return value
    if isinstance(node, ast.Attribute):
        base = looked_up(workspace, tree, node.value, caller, depth + 1)
        return None if base is None else scope.attribute(base, node.attr, at(node))
    where = workspace.definition(caller)
    if not isinstance(node, ast.Name) or where is None:
        return None
    values: list[Value | None] = []
    for part in own_nodes(where[1]):
        if isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store):
            statement = tree.parent(part)
            if isinstance(statement, ast.Assign) and part in statement.targets:
                values.append(looked_up(workspace, tree, statement.value, caller, depth + 1))
            elif isinstance(statement, ast.For | ast.comprehension) and statement.target is part:
                values.append(scope.iterated(looked_up(workspace, tree, statement.iter, caller, depth + 1)))
            else:
                return None  # bound by a `with` or in parts
    return None if not values or any(value is None for value in values) else union(values)
