"""What a decorator of the project does with what the function gives: hand it on, or use it on the spot."""

import ast

from troth.analysis.recolor.project.tree import Definition, own_nodes
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function
from troth.analysis.source.tree import tree_of

__all__ = ["result_used"]

_ASKING = ("iscoroutinefunction", "isawaitable", "iscoroutine", "is_async", "color_of")


def result_used(program: Program, decorator: Function) -> str | None:
    """Where the wrapper would take a coroutine for a result; None where it hands on whatever the function gives.

    A wrapper that returns the call itself leaves the color alone, outside of `try` and `with`: these would be over
    before the coroutine runs. One that asks for the color knows both.
    """
    path = decorator.module.path
    text = program.text(path).value
    tree = tree_of(text)
    node = next((node for node in ast.walk(tree) if _is_at(node, decorator)), None) if tree is not None else None
    if not isinstance(node, Definition) or any(word in (ast.get_source_segment(text, node) or "") for word in _ASKING):
        return None
    inner = [inside for inside in ast.walk(node) if isinstance(inside, Definition) and inside is not node]
    params = {arg.arg for place in (node, *inner) for arg in place.args.args}
    for wrapper in inner:
        parents = {child: part for part in own_nodes(wrapper) for child in ast.iter_child_nodes(part)}
        for call in (part for part in own_nodes(wrapper) if isinstance(part, ast.Call)):
            if not isinstance(call.func, ast.Name) or call.func.id not in params - _own(wrapper):
                continue
            if not isinstance(parents.get(call), ast.Return):
                return f"uses what it returns ({path}:{call.lineno})"
            around: ast.AST | None = call
            while around is not None:
                around = parents.get(around)
                if isinstance(around, ast.Try | ast.With):
                    return f"has a `try` or a `with` around it ({path}:{around.lineno})"
    return None


def _own(node: Definition) -> set[str]:
    return {parameter.arg for parameter in (*node.args.args, *node.args.kwonlyargs)}


def _is_at(node: ast.AST, function: Function) -> bool:
    line, column = function.facts.at[:2]
    return isinstance(node, Definition) and (node.lineno, node.col_offset) == (line, column)
