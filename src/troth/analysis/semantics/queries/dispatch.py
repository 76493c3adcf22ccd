"""The places that pick a handler at run time and await it: out of a table, or by a name made for `getattr`.

Such a place pulls every handler into async, those that never wait included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.model import PARAM_NAME
from troth.analysis.incremental.dependencies import TrackedTable
from troth.analysis.semantics.infer.call_results import NAME_BY_PARTS
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, MutableMapping

    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Module

__all__ = ["Dispatcher", "dispatchers", "dispatchers_in", "dispatchers_of", "picked_in"]

_FEWEST = 2  # one function under two names is no table


class Dispatcher(NamedTuple):
    """A call that awaits one of several handlers."""

    call: Call
    handlers: tuple[Function, ...]


def dispatchers(program: Program) -> tuple[Dispatcher, ...]:
    """All of them, worked out once for a program."""
    return tuple(dispatcher for module in program.own_modules() for dispatcher in dispatchers_in(program, module))


def dispatchers_of(program: Program, functions: Collection[Function]) -> tuple[Dispatcher, ...]:
    """Those that pick one of `functions`."""
    if not functions:
        return ()
    by_name = picking(program)
    paths = {path for name in {function.name for function in functions} for path in by_name.get(name, ())}
    targets = set(functions)
    return tuple(
        dispatcher
        for path in sorted(paths, key=program.places.__getitem__)
        for dispatcher in dispatchers_in(program, program.module(path))
        if not targets.isdisjoint(dispatcher.handlers)
    )


def picking(program: Program) -> Mapping[str, list[str]]:
    """The files with dispatchers, by the names of what these pick."""
    picking = program.picking
    if picking is None:
        picking = {}
        with program.aside():
            for path in program.paths:
                for name in picked_in(program, path):
                    picking.setdefault(name, []).append(path)
        if program.reads is not None:
            picking = TrackedTable(program.reads, "picked", picking)
        program.picking = picking
    return picking


def picked_in(program: Program, path: str) -> frozenset[str]:
    """The names of what the dispatchers of a file pick."""
    answer = program.picked.get(path)
    if answer is None:
        with program.aside():
            dispatchers = dispatchers_in(program, program.module(path))
        answer = program.picked[path] = frozenset(
            handler.name for dispatcher in dispatchers for handler in dispatcher.handlers
        )
    return answer


def dispatchers_in(program: Program, module: Module) -> tuple[Dispatcher, ...]:
    """Those that stand in one file."""
    answers: MutableMapping[Module, tuple[Dispatcher, ...]] = program.answers_to("dispatchers")
    if module not in answers:
        answers[module] = tuple(_find(program, module))
    return answers[module]


def _find(program: Program, module: Module) -> Iterator[Dispatcher]:
    for index, facts in enumerate(module.facts.functions):
        plain = [callee for callee in facts.awaited if "." not in callee and " " not in callee]
        if not plain:
            continue
        function = module.function(index)
        picked = tuple(_by_parts(program, function)) if "getattr" in facts.calls else ()
        if not picked and not any(_could_pick(callee, function) for callee in plain):
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
    if callee in module.bindings:
        return False
    around: Function | None = function
    while around is not None:  # a parameter is somebody else's choice, and a function inside is known
        if callee in module.inner(around.index) or any(param[PARAM_NAME] == callee for param in around.facts.params):
            return False
        around = around.parent
    return True


def _own_functions(call: Call) -> Iterator[Function]:
    if call.node[1][0] == "attr":
        return  # a method call whose receiver may be of several classes
    for member in members_of(call.callee):
        if isinstance(member, FunctionValue) and isinstance(member.function, Function):
            yield member.function


def _by_parts(program: Program, function: Function) -> Iterator[Function]:
    """The methods that `getattr(self, f"handle_{kind}")` in the function may pick."""
    owner: Class | None = function.owner
    if owner is None or not function.facts.params:
        return
    text = program.text(function.module.path).cut(*function.facts.at)
    for match in NAME_BY_PARTS.finditer(text):
        prefix, suffix = match["prefix"], match["suffix"]
        if match["base"] != function.facts.params[0][0] or not (prefix or suffix):
            continue
        classes = [
            ancestor
            for ancestor in (*program.classes.order(owner), *program.classes.children(owner))
            if isinstance(ancestor, Class)
        ]
        for cls in classes:
            for name, indexes in cls.methods.items():
                if name.startswith(prefix) and name.endswith(suffix) and len(name) > len(prefix) + len(suffix):
                    yield cls.module.function(indexes[-1])
