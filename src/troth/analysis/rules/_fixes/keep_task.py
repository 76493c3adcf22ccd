"""Find where a task can be kept until it is done, and how that is written."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._syntax_position import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

__all__ = ["keep_fix"]

_NAMES = {"Task": ("task", "background_task", "kept_task"), "Future": ("work", "future", "kept_future")}
_NEW_HOMES = {"Task": "_background_tasks", "Future": "_background_work"}
_OLD = 9  # before Python 3.9, `set` and `asyncio.Task` could not be subscripted when they were evaluated


class _Home(NamedTuple):
    """A set that holds tasks: how it is named at the call, and the edit that makes it where it is new."""

    name: str
    made: tuple[Edit, ...] = ()


def keep_fix(program: Program, incident: LossIncident) -> Fix | None:
    """Give the task a name, put it into a set and let it leave when it is done; an `await` for a dropped future.

    What a thread was given to do may end only through what the function does next, so it is awaited only at the very end.
    """
    position = standing(program, incident.site.function.module.path, incident.site.at)
    if (
        position is None
        or position.function is None
        or position.path.endswith(".ipynb")
        or not isinstance(position.parent, ast.Expr)
    ):
        return None
    is_thread = incident.site.callee.rpartition(".")[2] == "run_in_executor"
    if incident.site.awaitable == "future" and (not is_thread or _is_last(position)):
        awaited = position.awaited()
        return Fix("await it", "likely", awaited) if awaited is not None else None
    kind = "Future" if is_thread else "Task"
    lines = position.lines_of(position.parent)
    home = _home(position, kind, is_old=program.oldest_python < _OLD)
    name = _free(_NAMES[kind], {*_names_in(position.function)})
    if lines is None or home is None or name is None:
        return None
    indent, end, newline = lines
    after = f"{newline}{indent}{home.name}.add({name}){newline}{indent}{name}.add_done_callback({home.name}.discard)"
    edits = (
        *home.made,
        Edit(position.path, position.start, position.start, f"{name} = "),
        Edit(position.path, end, end, after),
    )
    phrase = "task" if kind == "Task" else "future"
    return Fix(f"keep the {phrase} in `{home.name}` until it is done", "likely", edits)


def _is_last(here: Standing) -> bool:
    """Whether nothing of the function comes after the statement."""
    chain = [enclosing for enclosing in here.around if not isinstance(enclosing, ast.expr)]
    for inner, outer in pairwise(chain):
        if isinstance(outer, ast.For | ast.AsyncFor | ast.While | ast.Try):
            return False
        body = getattr(outer, "body", [])
        siblings = getattr(outer, "orelse", [])
        last = [*body[-1:], *siblings[-1:]]
        if inner not in last:
            return False
        if outer is here.function:
            return True
    return False


def _home(here: Standing, kind: str, *, is_old: bool) -> _Home | None:
    function, tree = here.function, here.around[-1]
    assert function is not None
    assert isinstance(tree, ast.Module)
    cls = here.around[here.around.index(function) + 1]
    receiver = function.args.args[0].arg if function.args.args else ""
    if isinstance(cls, ast.ClassDef) and receiver == "self":
        for target in _sets_of(kind, ast.walk(cls), here.text):
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == receiver:
                return _Home(f"{receiver}.{target.attr}")
    for target in _sets_of(kind, tree.body, here.text):
        if isinstance(target, ast.Name) and target.id not in _bound_in(function):
            return _Home(target.id)
    if _NEW_HOMES[kind] in here.text:
        return None
    return _new_home(here, tree, kind, is_old=is_old)


def _new_home(here: Standing, tree: ast.Module, kind: str, *, is_old: bool) -> _Home | None:
    """A set of the module's own, after its imports."""
    head: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        head.append(statement)
    imports = [statement for statement in head if isinstance(statement, ast.Import | ast.ImportFrom)]
    if not imports:
        return None
    has_asyncio = any(
        alias.name == "asyncio" and alias.asname is None
        for imported in imports
        if isinstance(imported, ast.Import)
        for alias in imported.names
    )
    annotation = f"set[{f'asyncio.{kind}[object]' if has_asyncio else 'object'}]"
    is_read_late = any(isinstance(imported, ast.ImportFrom) and imported.module == "__future__" for imported in imports)
    if is_old and not is_read_late:
        annotation = f'"{annotation}"'
    _, end = here.offsets(imports[-1])
    line_end = here.text.find("\n", end)
    if line_end < 0:
        return None
    newline = "\r\n" if here.text[line_end - 1] == "\r" else "\n"
    following = here.text[line_end + 1 :].partition("\n")[0].strip()
    name = _NEW_HOMES[kind]
    declaration = f"{newline}{name}: {annotation} = set()  # the loop itself holds {kind.lower()}s only weakly{newline}"
    declaration += newline if following else ""
    return _Home(name, (Edit(here.path, line_end + 1, line_end + 1, declaration),))


def _sets_of(kind: str, nodes: Iterable[ast.AST], text: str) -> Iterator[ast.expr]:
    """What an empty set is assigned to that says of itself, or by what is done with it, that it keeps tasks or futures."""
    if "set()" not in text or not (f"{kind}[" in text or "add_done_callback(" in text):
        return
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value) != "set()":
            continue
        annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            is_used_so = not annotation and f"add_done_callback({ast.unparse(target)}.discard)" in text
            if re.search(rf"\b{kind}\b", annotation) or is_used_so:
                yield target


def _names_in(node: ast.AST) -> set[str]:
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return names | {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}


def _bound_in(function: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def _free(names: Iterable[str], taken: set[str]) -> str | None:
    return next((name for name in names if name not in taken), None)
