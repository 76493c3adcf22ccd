"""Knows how an expression stands in its file: what it is part of, and how it has to be written to be awaited there."""

from __future__ import annotations

import ast
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit
from troth.analysis.source.text import Text
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from troth.analysis.facts.model import At
    from troth.analysis.program import Program

__all__ = ["Standing", "standing"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What takes a list as gladly as a generator, and has read it to the end when it returns.
_READERS = frozenset({"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple", "join"})


class Standing(NamedTuple):
    """An expression with all that it is part of, from the nearest outward."""

    path: str
    source: Text
    start: int
    end: int
    node: ast.expr
    around: tuple[ast.AST, ...]

    @property
    def text(self) -> str:
        """The whole file."""
        return self.source.value

    @property
    def parent(self) -> ast.AST:
        """What it is directly part of."""
        return self.around[0]

    @property
    def statement(self) -> ast.stmt:
        """The nearest statement around it."""
        return next(one for one in self.around if isinstance(one, ast.stmt))

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The nearest function around it."""
        return next((one for one in self.around if isinstance(one, _FUNCTIONS)), None)

    def awaited(self, prefix: str = "await ", *edits: Edit) -> tuple[Edit, ...] | None:
        """The edits that put `prefix` before it, with parentheses where they are needed; None where none can await.

        `edits` are further edits inside the expression.
        """
        generators = self._generators()
        if generators is None:
            return None
        wrapped = self.binds_tighter and not self.is_enclosed
        opening = Edit(self.path, self.start, self.start, f"({prefix}" if wrapped else prefix)
        closing = (Edit(self.path, self.end, self.end, ")"),) if wrapped else ()
        return (*generators, opening, *edits, *closing)

    @property
    def is_enclosed(self) -> bool:
        """Whether it has parentheses of its own already; asked only where those of a call cannot be meant."""
        text, before, after = self.text, self.start - 1, self.end
        while before > 0 and text[before].isspace():
            before -= 1
        while after < len(text) - 1 and text[after].isspace():
            after += 1
        return text[before : before + 1] == "(" and text[after : after + 1] == ")"

    @property
    def is_awaited_later(self) -> bool:
        """Whether a variable takes it that the same function awaits somewhere."""
        targets = self.parent.targets if isinstance(self.parent, ast.Assign) else [getattr(self.parent, "target", None)]
        names = {one.id for one in targets if isinstance(one, ast.Name)}
        if not names or self.function is None:
            return False
        return any(
            isinstance(node, ast.Await) and isinstance(node.value, ast.Name) and node.value.id in names
            for node in ast.walk(self.function)
        )

    @property
    def binds_tighter(self) -> bool:
        """Whether what it is part of would take hold of it before an `await` does."""
        parent = self.parent
        return (
            (isinstance(parent, ast.Attribute | ast.Subscript | ast.Await) and parent.value is self.node)
            or (isinstance(parent, ast.Call) and parent.func is self.node)
        )  # fmt: skip

    def _generators(self) -> tuple[Edit, ...] | None:
        """None where nothing can be awaited; else edits that make lists of the generator expressions around it.

        An `await` would turn a generator expression into an async one, which nobody could read as before.
        """
        edits: list[Edit] = []
        chain: list[ast.AST] = [self.node, *self.around]
        for before, child, parent, outer in zip([None, *chain], chain, chain[1:], [*chain[2:], None], strict=False):
            if isinstance(parent, ast.Lambda) and child is parent.body:
                return None
            if isinstance(parent, (*_FUNCTIONS, ast.ClassDef)) and any(child is one for one in parent.body):
                return tuple(edits) if isinstance(parent, ast.AsyncFunctionDef) else None
            if isinstance(parent, ast.GeneratorExp):
                if child is parent.generators[0] and before is parent.generators[0].iter:
                    continue  # worked out before the generator is made, outside of it
                brackets = self.as_list(parent, outer)
                if brackets is None:
                    return None
                edits += brackets
        return tuple(edits) if self.path.endswith(".ipynb") else None

    def as_list(self, generator: ast.GeneratorExp, reader: ast.AST | None) -> tuple[Edit, Edit] | None:
        """The edits that make a list of a generator expression; None where `reader` may want it bit by bit."""
        if not isinstance(reader, ast.Call) or reader.keywords or len(reader.args) != 1:
            return None
        name = reader.func.attr if isinstance(reader.func, ast.Attribute) else getattr(reader.func, "id", "")
        start, end = self.offsets(generator)
        if name not in _READERS or (self.text[start], self.text[end - 1]) != ("(", ")"):
            return None
        return Edit(self.path, start + 1, start + 1, "["), Edit(self.path, end - 1, end - 1, "]")

    def lines_of(self, statement: ast.stmt) -> tuple[str, int, str] | None:
        """The indent of a statement that has its lines to itself, where the last of them ends, and how lines end."""
        text = self.text
        start, stop = self.offsets(statement)
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        end = text.find("\n", stop)
        newline = "\r\n" if text[max(end - 1, 0) : max(end, 0)] == "\r" else "\n"
        end = len(text) if end < 0 else end - len(newline) + 1
        rest = text[stop:end].strip()
        return None if indent.strip() or (rest and not rest.startswith("#")) else (indent, end, newline)

    def offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node of the same file begins and ends, in characters."""
        source = self.source
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return source.offset(node.lineno, node.col_offset), source.offset(end_line, end_column)


def standing(program: Program, path: str, at: At) -> Standing | None:
    """How the expression at `at` stands; None where the file does not say it as the facts do.

    The places inside f-strings that Python 3.11 gives are wrong now and then: what is cut out there must read as what
    the tree holds, or nobody may write there.
    """
    text = program.text(path)
    tree = _tree(text.value)
    way = None if tree is None else _way(tree, at)
    if way is None:
        return None
    node, *around = way
    assert isinstance(node, ast.expr)
    start, end = text.offset(at[0], at[1]), text.offset(at[2], at[3])
    if any(isinstance(one, ast.JoinedStr) for one in around) and not _reads_as(text.value[start:end], node):
        return None
    return Standing(path, text, start, end, node, tuple(around))


@lru_cache(maxsize=8)  # findings come file by file
def _tree(source: str) -> ast.Module | None:
    return tree_of(source)


def _way(tree: ast.Module, at: At) -> list[ast.AST] | None:
    """The call, await, attribute, name or subscript at `at` and all that it is part of, from the nearest outward.

    Only statements that reach over the line are looked into; inside one, places are not to be trusted (f-strings).
    """
    line = at[0]
    todo: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while todo:
        node, around = todo.pop()
        within = (node, *around)
        for child in _children(node, line):
            if (
                isinstance(child, ast.Call | ast.Attribute | ast.Name | ast.Subscript | ast.Await)
                and (child.lineno, child.col_offset, child.end_lineno, child.end_col_offset) == at
            ):
                return [child, *within]
            todo.append((child, within))
    return None


def _children(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The children of a node without the statements that lie before or after a line.

    In a body these are found by halving it: a module may have ten thousand functions, and a finding in each.
    """
    for _, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            for at in range(bisect_left(value, line, key=_last_line), len(value)):
                if _first_line(value[at]) > line:
                    break
                yield value[at]
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, ast.AST))


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min(statement.lineno, *(one.lineno for one in decorators)) if decorators else statement.lineno


def _last_line(statement: ast.stmt) -> int:
    return statement.lineno if statement.end_lineno is None else statement.end_lineno


def _reads_as(text: str, node: ast.expr) -> bool:
    try:
        return ast.dump(ast.parse(f"({text})", mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return False
