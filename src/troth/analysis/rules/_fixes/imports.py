"""How a module of the standard library is imported where a file lacks it, and whether it may be."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from troth.analysis.facts.names import dotted
from troth.analysis.facts.nodes import walk
from troth.analysis.findings import Edit
from troth.analysis.incremental.project_queries import part

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Module

__all__ = ["imported", "is_imported", "may_use_asyncio", "waits_otherwise"]

_OTHER_LOOPS = frozenset({"anyio", "trio", "curio", "gevent", "eventlet"})


def is_imported(tree: ast.Module, module: str) -> bool:
    """Whether the file imports `module` at its top, under its own name."""
    names = [alias for statement in tree.body if isinstance(statement, ast.Import) for alias in statement.names]
    return any(alias.name == module and alias.asname is None for alias in names)


def may_use_asyncio(program: Program) -> bool:
    """Whether the project runs on asyncio: it says so somewhere, or names no other library of that kind."""
    loops = {name for names in program.said("imported loops").values() for name in names}
    return "asyncio" in loops or not loops


@part("imported loops")
def _loops_in(file: FileFacts) -> frozenset[str]:
    return frozenset(imported.module.partition(".")[0] for imported in file.imports) & {"asyncio", *_OTHER_LOOPS}


def waits_otherwise(module: Module) -> bool:
    """Whether a file knows another library of that kind and not asyncio, or its tests are marked for trio."""
    tops = {imported.module.partition(".")[0] for imported in module.facts.imports if not imported.level}
    return "asyncio" not in tops and (not tops.isdisjoint(_OTHER_LOOPS) or _is_marked(module))


def _is_marked(module: Module) -> bool:
    """`@pytest.mark.trio` on a test, or as the `pytestmark` of the file."""
    marks = (mark for function in module.facts.functions for mark in function.decorators)
    values = (value for name, _, value in module.facts.variables if name == "pytestmark" and value is not None)
    return any(dotted(node) == "pytest.mark.trio" for node in walk((*marks, *values)))


def imported(here: Standing, module: str) -> tuple[Edit, ...] | None:
    """The edit that imports `module`, none where the file has it; None where its name or the place for it is taken."""
    tree = here.around[-1]
    assert isinstance(tree, ast.Module)
    if is_imported(tree, module):
        return ()
    if here.path.endswith(".ipynb") or (module in here.text and _is_bound(tree, module)):
        return None
    body = [statement for statement in tree.body if not _is_head(statement)]
    if not body:
        return None
    newline = "\r\n" if "\r\n" in here.text else "\n"
    before = _sorted_before(body, module)
    if before:
        line = (before[-1].end_lineno or before[-1].lineno) + 1
        gap = ""
    else:
        first = body[0]
        line = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", ()))])
        gap = "" if isinstance(first, ast.Import | ast.ImportFrom) else newline * 2
    at = here.source.offset(line, 0)
    return (Edit(here.path, at, at, f"import {module}{newline}{gap}"),)


def _sorted_before(body: list[ast.stmt], module: str) -> list[ast.Import]:
    """The imports of the file's first group that a sorted file has before that of `module`."""
    imports: list[ast.Import] = []
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.Import) or statement.names[0].name > module or following is None:
            break
        if imports and statement.lineno > (imports[-1].end_lineno or 0) + 1:
            break  # another group
        if statement.end_lineno == following.lineno:
            break  # two statements on one line
        imports.append(statement)
    return imports


@lru_cache(maxsize=8)  # findings come file by file, and one tree serves all of a file
def _is_bound(tree: ast.Module, name: str) -> bool:
    """Whether the file gives the name a meaning, or an import inside a function leaves it open."""
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.Name:
            if node.id == name:  # type: ignore[attr-defined]
                return True
        elif kind is ast.Import or kind is ast.ImportFrom:
            aliases: list[ast.alias] = node.names  # type: ignore[attr-defined]
            if any((alias.asname or alias.name.partition(".")[0]) == name for alias in aliases):
                return True
        elif kind is ast.arg and node.arg == name:  # type: ignore[attr-defined]
            return True
    return False


def _is_head(statement: ast.stmt) -> bool:
    """Whether a statement has to come first: the docstring and imports from `__future__`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
