"""The syntax tree of a view, and where in it a function waits."""

import ast
from collections.abc import Iterator

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.recolor.project.view import SourceView
from troth.analysis.source.syntax_tree import SyntaxTree
from troth.analysis.source.text import DecodedText

__all__ = ["Definition", "Tree", "Waiting", "is_bound_around", "own_nodes", "waiting_in"]

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Waiting = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.comprehension


class Tree(SyntaxTree):
    """A parsed view, with its calls and definitions by place."""

    def __init__(self, view: SourceView, module: ast.Module) -> None:
        self.view = view
        self.calls: dict[At, ast.Call] = {}
        self.definitions: dict[At, Definition] = {}
        self.imports: list[ast.Import | ast.ImportFrom] = []  # anywhere in the file
        super().__init__(module, DecodedText(view.text))

    def visit(self, node: ast.AST) -> None:
        """Keep what is asked for by its place."""
        if isinstance(node, ast.Call):
            self.calls[at(node)] = node
        elif isinstance(node, Definition):
            self.definitions[at(node)] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in the body of a function or a lambda, not what stands in functions and lambdas inside it."""
    body = getattr(node, "body", [])
    stack: list[ast.AST] = [body] if isinstance(body, ast.expr) else list(body)
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, Definition | ast.Lambda):
            inner: list[ast.AST] = [*part.args.defaults, *(d for d in part.args.kw_defaults if d is not None)]
            stack += [*inner, *(part.decorator_list if isinstance(part, Definition) else ())]
            continue
        stack += ast.iter_child_nodes(part)


def waiting_in(node: Definition) -> Iterator[Waiting]:
    """Where a function waits: each `await`, `async for`, `async with` and asynchronous comprehension of its own."""
    for part in own_nodes(node):
        if isinstance(part, ast.Await | ast.AsyncFor | ast.AsyncWith) or (
            isinstance(part, ast.comprehension) and part.is_async
        ):
            yield part


def is_bound_around(tree: Tree, name: ast.Name) -> bool:
    """Whether a function around binds the name to something else: a parameter or a variable."""
    around = tree.around(name)
    while isinstance(around, Definition | ast.Lambda):
        args = around.args
        parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        inside = own_nodes(around) if isinstance(around, Definition) else ()
        stored = (node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        if any(parameter is not None and parameter.arg == name.id for parameter in parameters) or any(
            variable.id == name.id for variable in stored
        ):
            return True
        around = tree.around(around)
    return False
