"""The syntax tree of one file with its outermost functions, of each of which a mutant is taken."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from troth.analysis.mutate.source.text import SourceText
from troth.analysis.source.syntax_tree import SyntaxTree
from troth.analysis.source.text import DecodedText

__all__ = ["FunctionNode", "Outermost", "SourceModule"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Outermost:
    """A function that is not inside another function: the unit of which at most one mutant is taken.

    `name` is its dotted name in the file; a second definition of the same name is told apart by `#2`.
    """

    name: str
    node: FunctionNode


class SourceModule(SyntaxTree):
    """One parsed file, with its outermost functions and the one that each node is in; raises `UnreadableError`."""

    def __init__(self, file: SourceText) -> None:
        super().__init__(file.parse(), DecodedText(file.text))
        self.file = file
        self.functions: list[Outermost] = []
        self.homes: dict[ast.AST, Outermost] = {}
        occurrences: Counter[str] = Counter()
        stack: list[tuple[ast.AST, Outermost | None, str]] = [(self.module, None, "")]
        while stack:
            node, home, prefix = stack.pop()
            if home is not None:
                self.homes[node] = home
            elif isinstance(node, ast.ClassDef):
                prefix = f"{prefix}{node.name}."
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = prefix + node.name
                occurrences[name] += 1
                home = Outermost(name if occurrences[name] == 1 else f"{name}#{occurrences[name]}", node)
                self.functions.append(home)
                self.homes[node] = home
            stack.extend((child, home, prefix) for child in reversed(list(ast.iter_child_nodes(node))))

    @property
    def path(self) -> str:
        """The path of the file, relative to the project's root."""
        return self.file.path

    def awaited_calls(self) -> Iterator[tuple[ast.Await, ast.Call]]:
        """Every `await` of a call outside f-strings, in a function: at the top of a file there is none to name."""
        for node in self.walk():
            if not isinstance(node, ast.Await) or node not in self.homes or self.in_fstring(node):
                continue
            if isinstance(node.value, ast.Call):
                yield node, node.value

    def in_fstring(self, node: ast.AST) -> bool:
        """Whether `node` is inside an f-string: Python 3.11 does not say where such nodes stand."""
        return any(type(outer).__name__ in ("JoinedStr", "TemplateStr") for outer in self.ancestors(node))
