"""Knows which marks and fixtures of pytest have lost their point once tests are plain functions."""

import ast
from collections.abc import Collection, Iterator

from troth.analysis.findings import Edit
from troth.analysis.recolor.follow import asyncio_mark, bound_in
from troth.analysis.recolor.tree import Definition, Tree

__all__ = ["marks_dropped"]


def marks_dropped(tree: Tree, plain: Collection[Definition]) -> list[Edit]:
    """The edits for one file in which the functions `plain` are no longer async."""
    edits: list[Edit | None] = []
    has_pytest = "pytest" in bound_in(tree)
    for node in plain:
        for decorator in node.decorator_list:
            if asyncio_mark(decorator):
                edits.append(_line_dropped(tree, decorator))
            elif has_pytest and _callee(decorator) == "pytest_asyncio.fixture":
                callee = decorator.func if isinstance(decorator, ast.Call) else decorator
                edits.append(tree.view.edit(tree.start(callee), tree.end(callee), "pytest.fixture"))
    for cls in (node for node in tree.module.body if isinstance(node, ast.ClassDef)):
        inside = [one for one in ast.walk(cls) if isinstance(one, Definition)]
        if any(one in plain for one in inside) and not _any_async(inside, plain):
            edits += [_line_dropped(tree, one) for one in cls.decorator_list if asyncio_mark(one)]
    if plain and not _any_async(tree.definitions.values(), plain):
        for statement in tree.module.body:
            if (
                isinstance(statement, ast.Assign)
                and [ast.unparse(one) for one in statement.targets] == ["pytestmark"]
                and asyncio_mark(statement.value)
            ):
                start = tree.text.offset(statement.lineno, 0)
                edits.append(tree.view.edit(start, _next_line(tree, tree.end(statement)), ""))
    return [one for one in edits if one is not None]


def _any_async(definitions: Collection[Definition] | Iterator[Definition], plain: Collection[Definition]) -> bool:
    return any(isinstance(one, ast.AsyncFunctionDef) and one not in plain for one in definitions)


def _line_dropped(tree: Tree, decorator: ast.expr) -> Edit | None:
    start = tree.text.offset(decorator.lineno, 0)
    return tree.view.edit(start, _next_line(tree, tree.end(decorator)), "")


def _next_line(tree: Tree, offset: int) -> int:
    text = tree.text.value
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _callee(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)
