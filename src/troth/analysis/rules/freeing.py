"""Knows how to write a function plain that was async for nothing: its `def`, and every call of it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.program import Program
    from troth.analysis.program.calling import Call
    from troth.analysis.program.dispatch import Dispatcher
    from troth.analysis.program.entities import Function
    from troth.analysis.program.needless import Needless
    from troth.analysis.rules.standing import Standing

__all__ = ["dispatch_fix", "free_fix"]

_ASYNC = re.compile(r"async\s+(?=def\b)")
_AWAIT = re.compile(r"await\b\s*")
_RESULTS = ("result", "outcome", "handled")


def free_fix(program: Program, one: Needless) -> Fix | None:
    """Drop the `async` with the `await` of every call, or nothing at all.

    All calls are known only where no call of that name has an unclear target, and no string says it that a mock or a
    `getattr` may take.
    """
    if one.is_pulled or not one.is_sure:
        return None
    every: tuple[Edit, ...] = ()
    for edits in (_plain(program, one.function), *(_without_await(program, call) for call in one.awaited)):
        if edits is None:
            return None
        every += edits
    if _is_quoted(program, one.function.name):
        return None
    calls = f"{len(one.awaited)} call" + ("s" if len(one.awaited) != 1 else "")
    return Fix(f"make it a plain `def`, and drop the `await` of {calls}", "likely", every)


def dispatch_fix(program: Program, dispatcher: Dispatcher, free: list[Function]) -> Fix | None:
    """Let the dispatcher await only what can be awaited, and make plain the handlers that nobody else mentions."""
    call = dispatcher.call
    here = standing(program, call.caller.module.path, call.at)
    if here is None or here.path.endswith(".ipynb"):
        return None
    edits = _both_colors(here)
    if edits is None:
        return None
    names = 1 if call.node[1][0] == "name" and call.callee is None else 2  # its `def`; and its place in a table
    freed = [one for one in free if sum(_mentions(program, one.name)) == names]
    plain = [edit for one in freed for edit in _plain(program, one) or ()]
    count = f"{len(freed)} handler" + ("s" if len(freed) != 1 else "")
    title = "await only what can be awaited" + (f", and make {count} plain" if freed else "")
    return Fix(title, "likely", (*edits, *plain))


def _is_quoted(program: Program, name: str) -> bool:
    """Whether a string of the project ends in a name, as `patch("store.load")` has it."""
    word = re.compile(rf"""["'](?:[\w.:]*[.:])?{re.escape(name)}["']""")
    texts = (program.text(module.path).value for module in program.own_modules())
    return any((f'{name}"' in text or f"{name}'" in text) and word.search(text) for text in texts)


def _mentions(program: Program, name: str) -> Iterator[int]:
    """How often each file of the project says a name, in code, strings and comments alike."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for module in program.own_modules():
        text = program.text(module.path).value
        if name in text:
            yield len(word.findall(text))


def _plain(program: Program, function: Function) -> tuple[Edit, ...] | None:
    path = function.module.path
    text = program.text(path)
    start = text.offset(function.facts.at[0], function.facts.at[1])
    found = _ASYNC.match(text.value, start)
    return (Edit(path, found.start(), found.end(), ""),) if found and not path.endswith(".ipynb") else None


def _without_await(program: Program, call: Call) -> tuple[Edit, ...] | None:
    here = standing(program, call.caller.module.path, call.at)
    if here is None or here.path.endswith(".ipynb") or not isinstance(here.parent, ast.Await):
        return None
    if any(isinstance(one, ast.GeneratorExp) for one in here.around):
        return None  # without its await it may turn plain, and whoever reads it asynchronously would fail
    start, end = here.offsets(here.parent)
    found = _AWAIT.match(here.text, start)
    assert found is not None
    whole = here._replace(start=start, end=end, node=here.parent, around=here.around[1:])
    if whole.binds_tighter and here.text[start - 1] == "(" and here.text[end : end + 1] == ")":
        inside = here.text[start:end]
        if "\n" not in inside:  # the parentheses were there for the await alone
            return Edit(here.path, start - 1, found.end(), ""), Edit(here.path, end, end + 1, "")
    return (Edit(here.path, found.start(), found.end(), ""),)


def _both_colors(here: Standing) -> tuple[Edit, ...] | None:
    """`await handler(m)` as a call, and an `await` of what it gives if that can be awaited."""
    waiting, statement = here.parent, here.around[1]
    lines = here.lines_of(statement) if isinstance(statement, ast.stmt) else None
    if (
        not isinstance(waiting, ast.Await)
        or lines is None
        or here.function is None
        or not isinstance(statement, ast.stmt)
    ):
        return None
    indent, end, newline = lines
    start, _ = here.offsets(statement)
    taken = {one.id for one in ast.walk(here.function) if isinstance(one, ast.Name)}
    taken |= {one.arg for one in ast.walk(here.function) if isinstance(one, ast.arg)}
    name = next((one for one in _RESULTS if one not in taken), None)
    inner = f"{indent}\t" if indent.endswith("\t") else f"{indent}    "
    returned = ""
    if isinstance(statement, ast.Expr) and name:
        head, then = f"{name} = ", f"await {name}"
    elif isinstance(statement, ast.Return) and name:
        head, then, returned = f"{name} = ", f"{name} = await {name}", f"{newline}{indent}return {name}"
    elif (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    ):
        name = statement.targets[0].id
        head, then = here.text[start : here.offsets(waiting)[0]], f"{name} = await {name}"
    else:
        return None
    imported = _inspect(here)
    if imported is None:
        return None
    after = f"{newline}{indent}if inspect.isawaitable({name}):{newline}{inner}{then}{returned}"
    return (*imported, Edit(here.path, start, here.start, head), Edit(here.path, end, end, after))


def _inspect(here: Standing) -> tuple[Edit, ...] | None:
    """The import of the standard library's `inspect`, where the file lacks it; None where there is no place for it."""
    tree = here.around[-1]
    assert isinstance(tree, ast.Module)
    names = [alias for one in tree.body if isinstance(one, ast.Import) for alias in one.names]
    if any(alias.name == "inspect" and alias.asname is None for alias in names):
        return ()
    if any(isinstance(one, ast.Name) and one.id == "inspect" for one in ast.walk(tree)):
        return None
    body = [one for one in tree.body if not _is_head(one)]
    first = body[0] if body else None
    if first is None:
        return None
    line = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
    at = here.source.offset(line, 0)
    newline = "\r\n" if "\r\n" in here.text else "\n"
    gap = "" if isinstance(first, ast.Import | ast.ImportFrom) else newline * 2
    return (Edit(here.path, at, at, f"import inspect{newline}{gap}"),)


def _is_head(statement: ast.stmt) -> bool:
    """Whether a statement has to come first: the docstring and imports from `__future__`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
