"""Say of a file's syntax tree what `ast` leaves out: what each node is part of, and where in the text it stands."""

import ast
from collections.abc import Iterator

from troth.analysis.source.text import DecodedText

__all__ = ["SyntaxTree"]

# `ast` makes one node for all the uses of each of these, so that it has no parent of its own.
_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


class SyntaxTree:
    """A parsed file with the parent of each node."""

    def __init__(self, module: ast.Module, text: DecodedText) -> None:
        self.module = module
        self.text = text
        self.parents: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [module]  # and no recursion: generated files nest deeper than Python recurses
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, _SHARED):
                    self.parents[child] = node
                    stack.append(child)
            self.visit(node)

    def visit(self, node: ast.AST) -> None:
        """Called once with each node, after those around it; for those who keep more of them."""

    def walk(self) -> Iterator[ast.AST]:
        """All nodes, those further out first."""
        return ast.walk(self.module)

    def start(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Where the text of `node` starts; decorators are not part of a function."""
        return self.text.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Where the text of `node` ends."""
        return self.text.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of `node` as it is written."""
        return self.text.value[self.start(node) : self.end(node)]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What `node` stands in."""
        return self.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, from the nearest outwards."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def statement(self, node: ast.AST) -> ast.stmt:
        """The nearest statement around `node`, or `node` itself."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def around(self, node: ast.AST) -> ast.AST:
        """The function, lambda, class body or module whose code `node` is part of."""
        inner = node
        for outer in self.ancestors(node):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and inner in outer.body:
                return outer
            if isinstance(outer, ast.Lambda) and inner is outer.body:
                return outer
            inner = outer
        return self.module
