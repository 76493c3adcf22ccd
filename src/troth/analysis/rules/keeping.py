"""Knows where a task can be kept until it is done, and how that is written."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.program import Program
    from troth.analysis.program.sites import Incident
    from troth.analysis.rules.standing import Standing

__all__ = ["keep_fix"]

_NEW_HOME = "_background_tasks"
_NAMES = ("task", "background_task", "kept_task")


class _Home(NamedTuple):
    """A set that holds tasks: how it is named at the call, and the edit that makes it where it is new."""

    name: str
    made: tuple[Edit, ...] = ()


def keep_fix(program: Program, incident: Incident) -> Fix | None:
    """Give the task a name, put it into a set and let it leave when it is done; an `await` for a dropped future."""
    here = standing(program, incident.site.function.module.path, incident.site.at)
    if here is None or here.function is None or here.path.endswith(".ipynb") or not isinstance(here.parent, ast.Expr):
        return None
    if incident.site.promise == "future":
        awaited = here.awaited()
        return Fix("await it", "likely", awaited) if awaited is not None else None
    lines = here.lines_of(here.parent)
    home = _home(here)
    name = _free(_NAMES, {*_names_in(here.function)})
    if lines is None or home is None or name is None:
        return None
    indent, end, newline = lines
    after = f"{newline}{indent}{home.name}.add({name}){newline}{indent}{name}.add_done_callback({home.name}.discard)"
    edits = (*home.made, Edit(here.path, here.start, here.start, f"{name} = "), Edit(here.path, end, end, after))
    return Fix(f"keep the task in `{home.name}` until it is done", "likely", edits)


def _home(here: Standing) -> _Home | None:
    function, tree = here.function, here.around[-1]
    assert function is not None
    assert isinstance(tree, ast.Module)
    cls = here.around[here.around.index(function) + 1]
    receiver = function.args.args[0].arg if function.args.args else ""
    if isinstance(cls, ast.ClassDef) and receiver == "self":
        for target in _sets_of_tasks(ast.walk(cls), here.text):
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == receiver:
                return _Home(f"{receiver}.{target.attr}")
    for target in _sets_of_tasks(tree.body, here.text):
        if isinstance(target, ast.Name) and target.id not in _bound_in(function):
            return _Home(target.id)
    if _NEW_HOME in here.text:
        return None
    return _new_home(here, tree)


def _new_home(here: Standing, tree: ast.Module) -> _Home | None:
    """A set of the module's own, after its imports."""
    head: list[ast.stmt] = []
    for one in tree.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        head.append(one)
    imports = [one for one in head if isinstance(one, ast.Import | ast.ImportFrom)]
    if not imports:
        return None
    has_asyncio = any(
        alias.name == "asyncio" and alias.asname is None
        for one in imports
        if isinstance(one, ast.Import)
        for alias in one.names
    )
    kind = "asyncio.Task[object]" if has_asyncio else "object"
    _, end = here.offsets(imports[-1])
    line_end = here.text.find("\n", end)
    if line_end < 0:
        return None
    newline = "\r\n" if here.text[line_end - 1] == "\r" else "\n"
    following = here.text[line_end + 1 :].partition("\n")[0].strip()
    made = f"{newline}{_NEW_HOME}: set[{kind}] = set()  # the loop itself holds tasks only weakly{newline}"
    made += newline if following else ""
    return _Home(_NEW_HOME, (Edit(here.path, line_end + 1, line_end + 1, made),))


def _sets_of_tasks(nodes: Iterable[ast.AST], text: str) -> Iterator[ast.expr]:
    """What an empty set is assigned to that says of itself, or by what is done with it, that it keeps tasks."""
    if "set()" not in text or not ("Task[" in text or "add_done_callback(" in text):
        return
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value) != "set()":
            continue
        annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if re.search(r"\bTask\b", annotation) or f"add_done_callback({ast.unparse(target)}.discard)" in text:
                yield target


def _names_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}


def _bound_in(function: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return found | {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}


def _free(names: Iterable[str], taken: set[str]) -> str | None:
    return next((name for name in names if name not in taken), None)
