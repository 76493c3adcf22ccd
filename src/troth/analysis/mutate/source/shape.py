"""How the value of an expression is used: the five shapes in which an `await` can get lost."""

import ast

from troth.analysis.mutate.source.module import SourceModule

__all__ = ["ASSIGNED", "BARE", "CONDITION", "LARGER", "RETURN", "SHAPES", "shape_of"]

BARE = "bare"
ASSIGNED = "assigned"
RETURN = "return"
CONDITION = "condition"
LARGER = "larger"
SHAPES = (BARE, ASSIGNED, RETURN, CONDITION, LARGER)


def shape_of(module: SourceModule, node: ast.expr) -> str:
    """The shape in which the value of `node` is used.

    A comparison or a `not` counts as a condition because the truth of the value is all that is asked for; a value
    that is passed on, subscripted or read from is part of a larger expression.
    """
    parent = module.parents[node]
    if isinstance(parent, ast.Expr):
        return BARE
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and parent.value is node:
        return ASSIGNED
    if isinstance(parent, ast.Return):
        return RETURN
    return CONDITION if _is_tested(module, node) else LARGER


def _is_tested(module: SourceModule, node: ast.AST) -> bool:
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not):
            return True
        if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return up.test is below
        if isinstance(up, ast.comprehension):
            return below in up.ifs
        if not isinstance(up, (ast.BoolOp, ast.Compare)):
            return False
        below = up
    return False
