"""Knows the places that pick a handler at run time and await it: out of a table, or by a name made for `getattr`.

Such a place pulls every handler into async, those that never wait included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.program.entities import Class, Function
from troth.analysis.program.values import FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from troth.analysis.program.calling import Call
    from troth.analysis.program.link import Program

__all__ = ["Dispatcher", "dispatchers"]

_FEWEST = 2  # one function under two names is no table
_NAME_BY_PARTS = re.compile(r"""getattr\(\s*(?P<base>[\w.]+)\s*,\s*f(["'])(?P<prefix>\w*)\{[^}]*\}(?P<suffix>\w*)\2""")


class Dispatcher(NamedTuple):
    """A call that awaits one of several handlers."""

    call: Call
    handlers: tuple[Function, ...]


def dispatchers(program: Program, paths: Sequence[str] | None = None) -> tuple[Dispatcher, ...]:
    """All of them, or those in certain files; each file is looked at once for a program."""
    known: dict[str, tuple[Dispatcher, ...]] = program.__dict__.setdefault("_dispatchers", {})
    found: list[Dispatcher] = []
    for path in program.paths if paths is None else paths:
        if path not in known:
            known[path] = tuple(_find(program, path))
        found += known[path]
    return tuple(found)


def _find(program: Program, path: str) -> Iterator[Dispatcher]:
    module = program.module(path)
    for index, facts in enumerate(module.facts.functions):
        if not facts.awaited:
            continue
        function = module.function(index)
        picked = tuple(_by_parts(program, function)) if "getattr" in facts.calls else ()
        if not picked and not any(_could_pick(callee, function) for callee in facts.awaited):
            continue
        for call in program.calling.of(function):
            if not call.is_awaited:
                continue
            handlers = tuple(_own_functions(call))
            if not handlers and picked and call.callee is None and call.node[1][0] == "name":
                handlers = picked
            if len(handlers) >= _FEWEST:
                yield Dispatcher(call, handlers)


def _could_pick(callee: str, function: Function) -> bool:
    """Whether a callee, as written, may be a variable of the function that holds a handler."""
    if callee == "[]":
        return True
    module = function.module
    if " " in callee or "." in callee or callee in module.bindings:
        return False
    around: Function | None = function
    while around is not None:  # a parameter is somebody else's choice, and a function inside is known
        if callee in module.inner(around.index) or any(param[0] == callee for param in around.facts.params):
            return False
        around = around.parent
    return True


def _own_functions(call: Call) -> Iterator[Function]:
    if call.node[1][0] == "attr":
        return  # a method call whose receiver may be of several classes
    for one in members_of(call.callee):
        if isinstance(one, FunctionValue) and isinstance(one.function, Function):
            yield one.function


def _by_parts(program: Program, function: Function) -> Iterator[Function]:
    """The methods that `getattr(self, f"handle_{kind}")` in the function may pick."""
    owner: Class | None = function.owner
    if owner is None or not function.facts.params:
        return
    text = program.text(function.module.path).cut(*function.facts.at)
    for found in _NAME_BY_PARTS.finditer(text):
        prefix, suffix = found["prefix"], found["suffix"]
        if found["base"] != function.facts.params[0][0] or not (prefix or suffix):
            continue
        classes = [
            one for one in (*program.classes.order(owner), *program.classes.children(owner)) if isinstance(one, Class)
        ]
        for cls in classes:
            for name, indexes in cls.methods.items():
                if name.startswith(prefix) and name.endswith(suffix) and len(name) > len(prefix) + len(suffix):
                    yield cls.module.function(indexes[-1])
