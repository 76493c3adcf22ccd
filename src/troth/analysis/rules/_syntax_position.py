"""How an expression stands in its file: what it is part of, and how it has to be written to be awaited there."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit
from troth.analysis.rules._syntax import source_of
from troth.analysis.source.text import DecodedText
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from troth.analysis.facts.model import At
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["Standing", "standing"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What takes a list as gladly as a generator, and has read it to the end when it returns.
_READERS = frozenset({"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple", "join"})


# What a coroutine can stand in that is a container, or part of one.
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.comprehension)
_PUTTING = frozenset({"append", "add", "insert", "extend", "appendleft", "put", "put_nowait"})
_FOR_LATER = re.compile(r"(?i)task|coro|future|await|job|pending|promise")
_MANY_FUNCTIONS = 200  # from about a thousand on, the lines above them take longer to parse than the whole file
_TAKING = re.compile(
    r"(?:^|\.)(gather|wait|wait_for|as_completed|shield|create_task|ensure_future|start_soon|run|run_until_complete"
    r"|run_coroutine_threadsafe|run_forever|timeout|map)$"
)


class Standing(NamedTuple):
    """An expression with all that it is part of, from the nearest outward."""

    path: str
    source: DecodedText
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
        return next(enclosing for enclosing in self.around if isinstance(enclosing, ast.stmt))

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The nearest function around it."""
        return next((enclosing for enclosing in self.around if isinstance(enclosing, _FUNCTIONS)), None)

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
        """Whether a variable or a container takes it that the same function awaits somewhere, or gives to who does."""
        names = self._held_by(is_container=False) | self._held_by(is_container=True)
        return bool(names) and self.function is not None and not names.isdisjoint(_taken_in(self.function))

    @property
    def is_collected(self) -> bool:
        """Whether it is put into a container whose name says that somebody is to await what is in it."""
        return any(_FOR_LATER.search(name) for name in self._held_by(is_container=True))

    def _held_by(self, *, is_container: bool) -> set[str]:
        """The variables that take it, or take a container with it inside."""
        chain = [self.node, *self.around]
        depth = 0
        while isinstance(chain[depth + 1], _DISPLAYS) and depth + 2 < len(chain):
            depth += 1
        holder, inner = chain[depth + 1], chain[depth]
        if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute) and inner in holder.args:
            receiver = holder.func.value
            is_put = is_container and holder.func.attr in _PUTTING and isinstance(receiver, ast.Name)
            return {receiver.id} if is_put and isinstance(receiver, ast.Name) else set()
        targets = holder.targets if isinstance(holder, ast.Assign) else [getattr(holder, "target", None)]
        if is_container:
            containers = [target.value for target in targets if isinstance(target, ast.Subscript)] + (
                targets if depth else []
            )
        else:
            containers = [] if depth else targets
        return {container.id for container in containers if isinstance(container, ast.Name)}

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
            if isinstance(parent, (*_FUNCTIONS, ast.ClassDef)) and isinstance(child, ast.stmt):  # one of its body
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
        tail = text[stop:end].strip()
        return None if indent.strip() or (tail and not tail.startswith("#")) else (indent, end, newline)

    def offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node of the same file begins and ends, in characters."""
        source = self.source
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return source.offset(node.lineno, node.col_offset), source.offset(end_line, end_column)


@lru_cache(maxsize=8)  # a function may have ten thousand findings
def _taken_in(function: ast.AST) -> frozenset[str]:
    return frozenset(_taken(ast.walk(function)))


def _taken(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that are awaited, or given to somebody who awaits them; `for x in xs: await x` as well."""
    for node in nodes:
        if isinstance(node, ast.Await):
            if isinstance(node.value, ast.Name):
                yield node.value.id
        elif isinstance(node, ast.Call) and _TAKING.search(ast.unparse(node.func)):
            arguments = (arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args)
            yield from (argument.id for argument in arguments if isinstance(argument, ast.Name))
        elif isinstance(node, ast.For | ast.AsyncFor) and isinstance(node.iter, ast.Name):
            inner = (part for statement in node.body for part in ast.walk(statement))
            if isinstance(node.target, ast.Name) and node.target.id in set(_taken(inner)):
                yield node.iter.id


def standing(program: Program, path: str, at: At, *, within: Function | None = None) -> Standing | None:
    """How the expression at `at` stands; None where the file does not say it as the facts do.

    Whoever asks about nothing outside of the function that it stands in names that `within`: no more is parsed then,
    unless this was so for many functions of the file. Each begins with as many line ends as there are lines above it.

    The places inside f-strings that Python 3.11 gives are wrong now and then: what is cut out there must read as what
    the tree holds, or nobody may write there.
    """
    text = program.text(path)
    tree = None
    if within is not None and within.index and not path.endswith(".ipynb"):
        parsed = _parsed_in(text)
        if within.index in parsed or len(parsed) < _MANY_FUNCTIONS:
            parsed.add(within.index)
            tree = _tree(source_of(program, within))
    way = None if tree is None else _way(tree, at)
    if way is None:
        tree = _tree(text.value)
        way = None if tree is None else _way(tree, at)
    if way is None:
        return None
    node, *around = way
    assert isinstance(node, ast.expr)
    start, end = text.offset(at[0], at[1]), text.offset(at[2], at[3])
    if any(isinstance(enclosing, ast.JoinedStr) for enclosing in around) and not _reads_as(text.value[start:end], node):
        return None
    return Standing(path, text, start, end, node, tuple(around))


@lru_cache(maxsize=8)  # findings come file by file
def _parsed_in(_text: DecodedText) -> set[int]:
    """The functions of a file that were parsed one by one."""
    return set()


@lru_cache(maxsize=8)
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
            yield from (child for child in value if isinstance(child, ast.AST))


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min(statement.lineno, *(decorator.lineno for decorator in decorators)) if decorators else statement.lineno


def _last_line(statement: ast.stmt) -> int:
    return statement.lineno if statement.end_lineno is None else statement.end_lineno


def _reads_as(text: str, node: ast.expr) -> bool:
    try:
        return ast.dump(ast.parse(f"({text})", mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return False
