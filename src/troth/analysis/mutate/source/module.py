"""The syntax tree of one file together with what `ast` leaves out: parents, outermost functions, offsets."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from troth.analysis.mutate.source.text import SourceText

__all__ = ["FunctionNode", "Module", "Outermost", "read_module"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Outermost:
    """A function that is not inside another function: the unit of which at most one mutant is taken.

    `name` is its dotted name in the file; a second definition of the same name is told apart by `#2`.
    """

    name: str
    node: FunctionNode


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One parsed file."""

    source: SourceText
    tree: ast.Module
    parents: dict[ast.AST, ast.AST]
    functions: tuple[Outermost, ...]
    homes: dict[ast.AST, Outermost]

    @property
    def path(self) -> str:
        """The path of the file, relative to the project's root."""
        return self.source.path

    def start(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Offset of the first character of `node`; decorators are not part of a function."""
        return self.source.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Offset just after `node`."""
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(f"{self.path}: a node without an end")  # pragma: no cover -- ast.parse always sets both
        return self.source.offset(node.end_lineno, node.end_col_offset)

    def code(self, node: ast.expr | ast.stmt) -> str:
        """The text of `node` as written."""
        return self.source.text[self.start(node) : self.end(node)]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, from the nearest outwards."""
        while (up := self.parents.get(node)) is not None:
            yield up
            node = up

    def statement(self, node: ast.AST) -> ast.stmt:
        """The nearest statement around `node`, or `node` itself."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, lambda, class or module in whose scope `node` is evaluated."""
        below = node
        for up in self.ancestors(node):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and below in up.body:
                return up
            if isinstance(up, ast.Lambda) and below is up.body:
                return up
            if isinstance(up, ast.ClassDef) and below in up.body:
                return up
            below = up
        return self.tree

    def awaited_calls(self) -> Iterator[tuple[ast.Await, ast.Call]]:
        """Every `await` of a call outside f-strings, in a function: at the top of a file there is none to name."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Await) or node not in self.homes or self.in_fstring(node):
                continue
            if isinstance(node.value, ast.Call):
                yield node, node.value

    def in_fstring(self, node: ast.AST) -> bool:
        """Whether `node` is inside an f-string: Python 3.11 does not say where such nodes stand."""
        return any(type(up).__name__ in ("JoinedStr", "TemplateStr") for up in self.ancestors(node))


def read_module(source: SourceText) -> Module:
    """Parse `source` and note what belongs to what; raises `UnreadableError`."""
    tree = source.parse()
    parents: dict[ast.AST, ast.AST] = {}
    homes: dict[ast.AST, Outermost] = {}
    functions: list[Outermost] = []
    occurrences: Counter[str] = Counter()
    # Depth first with an explicit stack: generated files nest deeper than Python recurses.
    stack: list[tuple[ast.AST, Outermost | None, str]] = [(tree, None, "")]
    while stack:
        node, home, prefix = stack.pop()
        if home is not None:
            homes[node] = home
        elif isinstance(node, ast.ClassDef):
            prefix = f"{prefix}{node.name}."
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = prefix + node.name
            occurrences[name] += 1
            home = Outermost(name if occurrences[name] == 1 else f"{name}#{occurrences[name]}", node)
            functions.append(home)
            homes[node] = home
        children = list(ast.iter_child_nodes(node))
        for child in children:
            if not isinstance(child, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
                parents[child] = node  # the nodes left out are shared by the whole tree and have no one parent
        stack.extend((child, home, prefix) for child in reversed(children))
    return Module(source, tree, parents, tuple(functions), homes)
