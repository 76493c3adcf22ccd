"""Make a function sync that was async for nothing: its `def`, and every call of it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._fixes.maybe_await import both_colors
from troth.analysis.rules._syntax_position import standing

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.queries.dispatch import Dispatcher
    from troth.analysis.semantics.queries.needless_async import Needless
    from troth.analysis.semantics.symbols import Function, Module

__all__ = ["dispatch_fix", "free_fix", "is_said", "loses"]

_ASYNC = re.compile(r"async\s+(?=def\b)")
_AWAIT = re.compile(r"await\b\s*")


def free_fix(program: Program, one: Needless) -> Fix | None:
    """Drop the `async` with the `await` of every call, or nothing at all.

    All calls are known only where no call of that name has an unclear target, and no string says it that a mock or a
    `getattr` may take.
    """
    if one.is_pulled or not one.is_sure or loses(program, one.function):
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


def loses(program: Program, function: Function) -> bool:
    """Whether something is wrong with an awaitable in the function: it waits for nothing because an `await` is missing."""
    return program.is_chosen(function) and any(
        incident.site.function is function for incident in program.summary(function).incidents
    )


def dispatch_fix(program: Program, dispatcher: Dispatcher, free: list[Function]) -> Fix | None:
    """Let the dispatcher await only what can be awaited, and make sync the handlers that nobody else mentions."""
    call = dispatcher.call
    position = standing(program, call.caller.module.path, call.at)
    if position is None or position.path.endswith(".ipynb"):
        return None
    edits = both_colors(position)
    if edits is None:
        return None
    by_name = call.node[1][0] == "name" and (call.callee is None or "getattr" in call.caller.facts.calls)
    names = 1 if by_name else 2  # its `def`; and its place in a table
    freed = [
        function
        for function in free
        if not loses(program, function) and is_said(program, function.name, names, beyond=function)
    ]
    plain = [edit for function in freed for edit in _plain(program, function) or ()]
    count = f"{len(freed)} handler" + ("s" if len(freed) != 1 else "")
    title = "await only what can be awaited" + (f", and make {count} sync" if freed else "")
    return Fix(title, "likely", (*edits, *plain))


def _is_quoted(program: Program, name: str) -> bool:
    """Whether a string of the project ends in a name, as `patch("store.load")` has it, or may do so out of sight."""
    word = re.compile(rf"""["'](?:[\w.:]*[.:])?{re.escape(name)}["']""")
    texts = (text for _, text in program.own_texts())
    return any(text is None or ((f'{name}"' in text or f"{name}'" in text) and word.search(text)) for text in texts)


def is_said(program: Program, name: str, times: int, *, beyond: Function | None = None) -> bool:
    """Whether the project says a name so many times, in code, strings and comments alike.

    With `beyond`, a method, files are left out in which only other classes say it, of a method of their own.
    """
    word = re.compile(rf"\b{re.escape(name)}\b")
    remaining = times
    for module, text in program.own_texts():
        if text is None:
            return False  # nobody can count what it says
        if name in text and not (beyond is not None and _means_its_own(program, module, text, beyond)):
            remaining -= len(word.findall(text))
            if remaining < 0:
                return False
    return remaining == 0


def _means_its_own(program: Program, module: Module, text: str, function: Function) -> bool:
    """Whether a file says the name of a method only as `def name` and `self.name`, in classes of no kin."""
    owner = function.owner
    if owner is None or module is function.module:
        return False
    classes = [module.cls(index) for index in range(len(module.facts.classes))]
    namesakes = [cls for cls in classes if function.name in cls.methods]
    kin = {owner, *program.classes.order(owner), *program.classes.children(owner)}
    if not namesakes or any(cls in kin or owner in program.classes.order(cls) for cls in classes):
        return False
    return re.search(rf"(?<!def )(?<!self\.)\b{re.escape(function.name)}\b", text) is None


def _plain(program: Program, function: Function) -> tuple[Edit, ...] | None:
    path = function.module.path
    text = program.text(path)
    start = text.offset(function.facts.at[0], function.facts.at[1])
    match = _ASYNC.match(text.value, start)
    return (Edit(path, match.start(), match.end(), ""),) if match and not path.endswith(".ipynb") else None


def _without_await(program: Program, call: Call) -> tuple[Edit, ...] | None:
    position = standing(program, call.caller.module.path, call.at)
    if position is None or position.path.endswith(".ipynb") or not isinstance(position.parent, ast.Await):
        return None
    if any(isinstance(enclosing, ast.GeneratorExp) for enclosing in position.around):
        return None  # without its await it may turn plain, and whoever reads it asynchronously would fail
    start, end = position.offsets(position.parent)
    match = _AWAIT.match(position.text, start)
    assert match is not None
    whole = position._replace(start=start, end=end, node=position.parent, around=position.around[1:])
    if whole.binds_tighter and position.text[start - 1] == "(" and position.text[end : end + 1] == ")":
        inside = position.text[start:end]
        if "\n" not in inside:  # the parentheses were there for the await alone
            return Edit(position.path, start - 1, match.end(), ""), Edit(position.path, end, end + 1, "")
    return (Edit(position.path, match.start(), match.end(), ""),)
