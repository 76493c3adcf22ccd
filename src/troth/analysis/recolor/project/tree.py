"""The syntax tree of a view: what stands around a node, and where in the text it is."""

import ast
from collections.abc import Iterator

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.recolor.project.view import View
from troth.analysis.source.text import Text

__all__ = ["Definition", "Tree", "Waiting", "is_bound_around", "own_nodes", "waiting_in"]

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Waiting = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.comprehension


class Tree:
    """A parsed view with its nodes found: calls and definitions by place, and the parent of each node."""

    def __init__(self, view: View, module: ast.Module) -> None:
        self.view = view
        self.module = module
        self.text = Text(view.text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: dict[At, ast.Call] = {}
        self.definitions: dict[At, Definition] = {}
        self.imports: list[ast.Import | ast.ImportFrom] = []  # anywhere in the file
        stack: list[ast.AST] = [module]
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                stack.append(child)
            if isinstance(node, ast.Call):
                self.calls[at(node)] = node
            elif isinstance(node, Definition):
                self.definitions[at(node)] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.append(node)

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Where the text of `node` starts."""
        return self.text.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where the text of `node` ends."""
        return self.text.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of `node`."""
        return self.text.value[self.start(node) : self.end(node)]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What `node` stands in."""
        return self.parents.get(node)

    def around(self, node: ast.AST) -> ast.AST:
        """The function, lambda, class body or module whose code `node` is part of."""
        inner, outer = node, self.parents.get(node)
        while outer is not None:
            if isinstance(outer, Definition) and inner in outer.body:
                return outer
            if isinstance(outer, ast.Lambda) and inner is outer.body:
                return outer
            if isinstance(outer, ast.ClassDef) and inner in outer.body:
                return outer
            inner, outer = outer, self.parents.get(outer)
        return self.module


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in the body of a function, not what stands in functions and lambdas inside it."""
    stack: list[ast.AST] = list(getattr(node, "body", []))
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
