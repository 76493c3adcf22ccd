"""Give tests the marks of pytest that they need once they are async, and drop those that have lost their point."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from troth.analysis.findings import Edit
from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.reach.callers import asyncio_mark, bound_in
from troth.analysis.recolor.rewrite.rewrite_async import import_added

__all__ = ["ASYNCIO", "Marking", "fixture_marked", "marked", "marks_dropped"]

_MARK = re.compile(r"\bmark\.(asyncio|anyio|trio)\b")


class Marking(NamedTuple):
    """How the tests of a project say that an event loop runs them.

    `usual` is the mark that most of them have. `is_auto` says that none is needed, by the settings of pytest.
    """

    usual: str = "asyncio"
    is_auto: bool = False


ASYNCIO = Marking()


def marked(tree: Tree, node: Definition, marking: Marking) -> list[Edit]:
    """The edits that let pytest run a test that has become async: with the mark that its own file uses."""
    around = tree.parent(node)
    decorators = [*node.decorator_list, *(around.decorator_list if isinstance(around, ast.ClassDef) else ())]
    if any(asyncio_mark(decorator) for decorator in decorators) or _is_marked_as_a_whole(tree, around):
        return []
    marks = Counter(_MARK.findall(tree.text.value))
    if not marks and marking.is_auto:
        return []
    mark = marks.most_common(1)[0][0] if marks else marking.usual
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    start = tree.text.offset(first, 0)
    edit = tree.view.edit(start, start, f"{' ' * node.col_offset}@pytest.mark.{mark}\n")
    imports = [] if "pytest" in bound_in(tree) else import_added(tree, "import pytest", "pytest")
    return [*([edit] if edit is not None else []), *imports]


def fixture_marked(tree: Tree, node: Definition, marking: Marking) -> list[Edit]:
    """The edits that let pytest-asyncio run a fixture that has become async: its strict mode takes its own only."""
    names = {"pytest.fixture", "fixture"} if is_test(tree.view.path) else {"pytest.fixture"}
    fixtures = [decorator for decorator in node.decorator_list if _callee(decorator) in names]
    marks = Counter(_MARK.findall(tree.text.value))
    mark = marks.most_common(1)[0][0] if marks else marking.usual
    if not fixtures or mark != "asyncio" or marking.is_auto:
        return []
    callee = fixtures[0].func if isinstance(fixtures[0], ast.Call) else fixtures[0]
    edit = tree.view.edit(tree.start(callee), tree.end(callee), "pytest_asyncio.fixture")
    imports = (
        [] if "pytest_asyncio" in bound_in(tree) else import_added(tree, "import pytest_asyncio", "pytest_asyncio")
    )
    return [*([edit] if edit is not None else []), *imports]


def _is_marked_as_a_whole(tree: Tree, around: ast.AST | None) -> bool:
    """Whether `pytestmark` of the class or of the file says it for all of its tests."""
    for body in (tree.module.body, around.body if isinstance(around, ast.ClassDef) else []):
        for statement in body:
            if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [
                "pytestmark"
            ]:
                value = statement.value
                if any(map(asyncio_mark, value.elts if isinstance(value, ast.List | ast.Tuple) else [value])):
                    return True
    return False


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
        inside = [node for node in ast.walk(cls) if isinstance(node, Definition)]
        if any(node in plain for node in inside) and not _any_async(inside, plain):
            edits += [_line_dropped(tree, decorator) for decorator in cls.decorator_list if asyncio_mark(decorator)]
    if plain and not _any_async(tree.definitions.values(), plain):
        for statement in tree.module.body:
            if (
                isinstance(statement, ast.Assign)
                and [ast.unparse(target) for target in statement.targets] == ["pytestmark"]
                and asyncio_mark(statement.value)
            ):
                start = tree.text.offset(statement.lineno, 0)
                edits.append(tree.view.edit(start, _next_line(tree, tree.end(statement)), ""))
    edits += [edit for name in ("pytest", "pytest_asyncio") for edit in _import_dropped(tree, name, edits)]
    return [edit for edit in edits if edit is not None]


def _import_dropped(tree: Tree, name: str, edits: Collection[Edit | None]) -> list[Edit | None]:
    """The edit that takes out an import which nothing but the dropped marks has used."""
    dropped = [(edit.start, edit.end) for edit in edits if edit is not None]
    uses = [tree.start(node) for node in tree.parents if isinstance(node, ast.Name) and node.id == name]
    is_used = any(not any(start <= use < end for start, end in dropped) for use in uses)
    is_written = any(edit is not None and edit.text.startswith(f"{name}.") for edit in edits)
    imports = [
        statement
        for statement in tree.module.body
        if isinstance(statement, ast.Import) and ast.unparse(statement) == f"import {name}"
    ]
    if tree.view.kind != "code" or not uses or is_used or is_written or len(imports) != 1:
        return []
    line = imports[0].lineno
    is_apart = line > 1 and not tree.text.line(line - 1).strip() and not tree.text.line(line + 1).strip()
    start = tree.text.offset(line - 1 if is_apart else line, 0)
    return [tree.view.edit(start, _next_line(tree, tree.end(imports[0])), "")]


def _any_async(definitions: Collection[Definition] | Iterator[Definition], plain: Collection[Definition]) -> bool:
    return any(isinstance(definition, ast.AsyncFunctionDef) and definition not in plain for definition in definitions)


def _line_dropped(tree: Tree, decorator: ast.expr) -> Edit | None:
    start = tree.text.offset(decorator.lineno, 0)
    return tree.view.edit(start, _next_line(tree, tree.end(decorator)), "")


def _next_line(tree: Tree, offset: int) -> int:
    text = tree.text.value
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _callee(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)
