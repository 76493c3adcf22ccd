"""Find where in a project a function of a given name is defined and called, from the text of its files alone."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from troth.analysis.source.lines import Lines
from troth.analysis.source.tree import tree_of

__all__ = ["LoggedSite", "Use", "calls_of", "definitions_of"]

Use = Literal["dropped", "kept", "task", "awaited"]
_SPAWNERS = frozenset({"create_task", "ensure_future", "start_soon", "run_coroutine_threadsafe", "spawn", "gather"})


@dataclass(frozen=True, slots=True)
class LoggedSite:
    """A place in a file, and how the value of the call there is used; `symbol` is the function around it."""

    path: str
    line: int
    symbol: str
    use: Use | None = None


def definitions_of(name: str, files: Sequence[str], lines: Lines) -> list[LoggedSite]:
    """Where functions of this qualified name are defined; where its last part alone is known, all of that name."""
    parts = _plain(name)
    sites = []
    for path, tree in _trees(parts[-1], rb"def\s+", files, lines):
        for node, outer in _walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == parts[-1]:
                sites.append(LoggedSite(path, node.lineno, f"{outer}.{node.name}" if outer else node.name))
    exact = [site for site in sites if site.symbol.split(".")[-len(parts) :] == parts]
    return exact or sites


def calls_of(name: str, files: Sequence[str], lines: Lines) -> list[LoggedSite]:
    """Where something of this name is called; those that look lost come first."""
    last = _plain(name)[-1]
    sites = []
    for path, tree in _trees(last, rb"", files, lines):
        uses: dict[int, Use] = {}
        for node, outer in _walk(tree):
            _note_use(node, uses)
            if isinstance(node, ast.Call) and _called(node) == last:
                sites.append(LoggedSite(path, node.lineno, outer, uses.get(id(node), "kept")))
    order: dict[Use | None, int] = {"dropped": 0, "task": 1, "kept": 2, "awaited": 3, None: 4}
    return sorted(sites, key=lambda site: (order[site.use], site.path, site.line))


def _note_use(node: ast.AST, uses: dict[int, Use]) -> None:
    """Remember how the calls directly inside `node` are used; parents are met before their children."""
    if isinstance(node, ast.Await):
        uses[id(node.value)] = "awaited"
    elif isinstance(node, ast.Expr):
        uses.setdefault(id(node.value), "dropped")
    elif isinstance(node, ast.Call) and _called(node) in _SPAWNERS:
        uses.update({id(argument): "task" for argument in node.args})


def _plain(name: str) -> list[str]:
    return [part for part in name.split(".") if part != "<locals>"]


def _called(node: ast.Call) -> str:
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _trees(word: str, before: bytes, files: Sequence[str], lines: Lines) -> Iterator[tuple[str, ast.Module]]:
    """The files that hold the word at all, parsed; a file that does not parse is passed over."""
    trace = re.compile(rb"\b" + before + re.escape(word.encode()) + rb"\s*\(")
    for path in files:
        data = None if path.endswith(".ipynb") else lines.data(path)
        if data is None or trace.search(data) is None:
            continue
        tree = tree_of(data)
        if tree is not None:
            yield path, tree


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """All nodes with the qualified name of the function or class around them, parents first, in order."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, outer = stack.pop()
        yield node, outer
        inner = outer
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{outer}.{node.name}" if outer else node.name
        stack.extend((child, inner) for child in reversed(list(ast.iter_child_nodes(node))))
