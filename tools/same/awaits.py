"""Remove awaits from programs, the same ones every time.

Troth has a command for this (`troth mutate`). It is not used here, because it is built of what this package guards: a
record whose programs change together with the code under test says nothing.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Await", "awaits_in", "choose", "without"]

_WORD = re.compile(rb"await[ \t]*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Await(NamedTuple):
    """The word `await` before a call: where it stands (in bytes), on which lines its call, and in which function."""

    path: str
    start: int
    end: int
    line: int
    last_line: int
    function: str

    @property
    def rank(self) -> str:
        """An order that has nothing to do with where things stand."""
        return hashlib.sha256(f"7:{self.path}:{self.function}:{self.start}".encode()).hexdigest()


def awaits_in(path: str, data: bytes) -> list[Await]:
    """Every awaited call inside of a function, in the order of the text; none where the file cannot be parsed."""
    if b"await" not in data:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return []
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    awaits = []
    for node, function in _awaited_calls(tree, ""):
        start = starts[node.lineno - 1] + node.col_offset
        word = _WORD.match(data, start)
        if word is not None:
            awaits.append(Await(path, start, word.end(), node.lineno, node.end_lineno or node.lineno, function))
    return sorted(awaits)


def choose(awaits: Iterable[Await], n: int) -> list[Await]:
    """Up to `n` awaits, at most one of each outermost function: two that are lost together hide each other."""
    by_function: dict[tuple[str, str], Await] = {}
    for candidate in sorted(awaits, key=lambda candidate: candidate.rank):
        by_function.setdefault((candidate.path, candidate.function), candidate)
    return list(by_function.values())[:n]


def without(data: bytes, awaits: Iterable[Await]) -> bytes:
    """The text of a file without these awaits."""
    for gone in sorted(awaits, reverse=True):
        data = data[: gone.start] + data[gone.end :]
    return data


def _awaited_calls(node: ast.AST, function: str) -> Iterator[tuple[ast.Await, str]]:
    """The awaited calls below a node, with the outermost function around each."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            continue  # Python 3.11 does not say where its parts stand
        if function and isinstance(child, ast.Await) and isinstance(child.value, ast.Call):
            yield child, function
        inner = function
        if not function and isinstance(child, _FUNCTIONS):
            inner = f"{child.name}:{child.lineno}"
        yield from _awaited_calls(child, inner)
