"""Knows which async functions never wait, and which of these somebody needs to be async all the same."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from troth.analysis.facts.model import body_of
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.program import library
from troth.analysis.program.dispatch import dispatchers
from troth.analysis.program.entities import Class, Function
from troth.analysis.program.library import LibraryClass
from troth.analysis.program.mentions import mentioned
from troth.analysis.program.values import ClassObject, External, FunctionValue, members_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.program.calling import Call
    from troth.analysis.program.link import Program

__all__ = ["Needless", "handed_over", "is_required", "keeps_color", "needless", "never_waits"]

_FEWEST = 2
_RUNNING = frozenset({"run", "run_until_complete", "run_async", "async_to_sync"})
_TAGS = frozenset(
    {
        "call",
        "expr",
        "assign",
        "annassign",
        "return",
        "await",
        "list",
        "tuple",
        "set",
        "dict",
        "comp",
        "lambda",
        "yield",
    }
    | {"yieldfrom", "star", "ifexp", "attr", "index", "compare", "binop", "and", "or", "not", "if", "for", "with"}
)
_HARMLESS = frozenset({"staticmethod", "classmethod", "override", "final", "abstractmethod"})


class Needless(NamedTuple):
    """An async function that never waits and need not be async; `awaited` are the calls that would change.

    One that is `pulled` is async only because a dispatcher awaits whatever it picks.
    """

    function: Function
    awaited: tuple[Call, ...]
    is_sure: bool
    is_pulled: bool = False
    is_seen: bool = True
    """Whether calls were seen, and all of them await: else nobody was seen to call it, or a call lost its coroutine."""


def needless(program: Program, *, of_surfaces: bool = False) -> tuple[Needless, ...]:
    """Those in the asked files, worked out once for each walk.

    `of_surfaces` leaves out all but the methods of classes that never wait at all, and the handlers of dispatchers: the
    others cost a look at every call of theirs.
    """
    known: dict[bool, tuple[tuple[str, ...], tuple[Needless, ...]]] = program.__dict__.setdefault("_needless", {})
    if of_surfaces not in known or known[of_surfaces][0] != program.asked:
        known[of_surfaces] = program.asked, tuple(_find(program, of_surfaces=of_surfaces))
    return known[of_surfaces][1]


def never_waits(cls: Class) -> bool:
    """Whether the class has async methods, at least two of them public, and none of them ever waits."""
    methods = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
    is_async = [one for one in methods if one.is_async and not one.name.startswith("__")]
    public = sum(not one.name.startswith("_") for one in is_async)
    return public >= _FEWEST and not any(one.is_generator or one.is_abstract or one.waits for one in is_async)


def handed_over(program: Program) -> tuple[Function, ...]:
    """Those that are async for nothing but for somebody whom they are handed to, and who may await what they give."""
    handlers = {handler for dispatcher in dispatchers(program) for handler in dispatcher.handlers}
    candidates = [one for one in _candidates(program, handlers, of_surfaces=False) if one not in handlers]
    families = _families(program, candidates)
    names = mentioned(program, {function.name for function in candidates})
    twins = _with_waiting_twins(program, candidates)
    return tuple(
        one
        for one in candidates
        if one.name in names
        and one not in twins
        and not one.is_abstract
        and not any(other.waits or not other.is_async for other in families[one])
    )


def _candidates(program: Program, handlers: set[Function], *, of_surfaces: bool) -> list[Function]:
    return [
        function
        for module in map(program.module, program.asked)
        for function in (module.function(index) for index in range(1, len(module.facts.functions)))
        if function.is_async
        and not function.is_generator
        and not function.waits
        and (not of_surfaces or function in handlers or (function.owner is not None and never_waits(function.owner)))
        and not is_required(program, function)
    ]


def _find(program: Program, *, of_surfaces: bool) -> list[Needless]:
    handlers = {handler for dispatcher in dispatchers(program) for handler in dispatcher.handlers}
    candidates = _candidates(program, handlers, of_surfaces=of_surfaces)
    pulled: dict[Function, list[Call]] = defaultdict(list)
    for dispatcher in dispatchers(program):
        for handler in dispatcher.handlers:
            pulled[handler].append(dispatcher.call)
    families = _families(program, candidates)
    handed_around = mentioned(program, {function.name for function in candidates})
    twins = _with_waiting_twins(program, candidates)
    found: list[Needless] = []
    free: list[Function] = []
    for function in candidates:
        if any(one.waits or not one.is_async for one in families[function]) or function in twins:
            continue
        if function in pulled:
            found.append(Needless(function, tuple(pulled[function]), is_sure=False, is_pulled=True))
        elif not function.is_abstract and function.name not in handed_around:
            free.append(function)
    sites, unknown = _sites(program, {function.name for function in free})
    for function in free:
        family = families[function]
        calls = [call for one in family for call in sites.get(one, ())]
        if any(not call.is_awaited and _hands_on(program, call) for call in calls):
            continue  # its coroutine goes to somebody who needs one
        if not calls or any(not call.is_awaited for call in calls):
            if not (function.owner is None and function.parent is None and _is_entry(function)):
                found.append(Needless(function, tuple(dict.fromkeys(calls)), is_sure=False, is_seen=False))
            continue
        closed = function.owner is None or program.classes.is_complete(function.owner)
        sure = closed and len(family) == 1 and not unknown.get(function.name)
        found.append(Needless(function, tuple(dict.fromkeys(calls)), sure))
    return found


def _hands_on(program: Program, call: Call) -> bool:
    """Whether the coroutine that a call makes goes to somebody who may need one: a task, a list, whoever called us."""
    body = body_of(call.caller.facts)
    around = _around(body, call.node, ())
    if not around or around[0] in {"expr", "assign", "annassign"}:
        return False
    if around[0] == "call":
        taker = next((one for one in program.calling.of(call.caller) if one.at == around[-1]), None)
        last = taker.text.rpartition(".")[2] if taker is not None else ""
        return not (last in _RUNNING or (taker is not None and isinstance(taker.callee, ClassObject)))
    return True


def _around(node: Any, wanted: Node, parent: Node) -> Node | None:
    """The node that has `wanted` for a part; keywords of a call belong to it."""
    if not isinstance(node, tuple):
        return None
    if node == wanted:
        return parent
    is_node = bool(node) and isinstance(node[0], str) and node[0] in _TAGS
    for part in node:
        found = _around(part, wanted, node if is_node else parent)
        if found is not None:
            return found
    return None


def _is_entry(function: Function) -> bool:
    """Whether a function nobody calls is found by its name: a command, a hook, a script's `main`."""
    return function.name in {"main", "setup", "teardown", "handler", "lifespan"} or function.name.startswith(
        ("async_", "on_", "handle_")
    )


def _families(program: Program, functions: list[Function]) -> dict[Function, list[Function]]:
    """For each method, all methods of that name in the classes above and below: they change color together."""
    result: dict[Function, list[Function]] = {}
    for function in functions:
        owner = function.owner
        if owner is None:
            result[function] = [function]
            continue
        related: dict[Class, None] = {}
        todo = [owner]
        while todo:
            cls = todo.pop()
            if cls in related:
                continue
            related[cls] = None
            todo += [
                one for one in program.classes.order(cls) if isinstance(one, Class) and function.name in one.methods
            ]
            todo += [one for one in program.classes.children(cls) if function.name in one.methods]
        family = [
            cls.module.function(index)
            for cls in related
            if function.name in cls.methods
            for index in cls.methods[function.name]
        ]
        result[function] = [one for one in family if not one.is_abstract] or [function]
    return result


def _with_waiting_twins(program: Program, functions: list[Function]) -> set[Function]:
    """The methods that another class of the same shape has too, and waits in: one surface, written twice."""
    names = {function.name for function in functions if function.owner is not None}
    waiting: dict[str, list[Class]] = defaultdict(list)
    for module in program.own_modules():
        for index in range(len(module.facts.classes)):
            cls = module.cls(index)
            for name in names & cls.methods.keys():
                if any(module.function(method).waits for method in cls.methods[name]):
                    waiting[name].append(cls)
    return {
        function
        for function in functions
        if function.owner is not None
        and any(_is_of_one_shape(function.owner, other) for other in waiting[function.name])
    }


def _is_of_one_shape(one: Class, other: Class) -> bool:
    if one is other:
        return False
    mine = {name for name in one.methods if not name.startswith("__")}
    theirs = {name for name in other.methods if not name.startswith("__")}
    shared = len(mine & theirs)
    return shared >= 3 and shared * 2 >= min(len(mine), len(theirs))


def _sites(program: Program, names: set[str]) -> tuple[dict[Function, list[Call]], dict[str, int]]:
    """The calls of each function, and how many calls of each name nobody can tell the target of."""
    sites: dict[Function, list[Call]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    if not names:
        return sites, unknown
    for caller in program.calling.functions_naming(names):
        for call in program.calling.of(caller):
            last = call.text.rpartition(".")[2]
            if last not in names:
                continue
            targets = [one.function for one in members_of(call.callee) if isinstance(one, FunctionValue)]
            for target in targets:
                if isinstance(target, Function):
                    sites[target].append(call)
            if not targets and not isinstance(call.callee, External | ClassObject):
                unknown[last] += 1
    return sites, unknown


def is_required(program: Program, function: Function) -> bool:
    """Whether something outside the function's own text asks for the color it has."""
    name = function.name
    if name.startswith("__") and name.endswith("__"):
        return True
    if name.startswith("test") or any(not keeps_color(program, function, one) for one in function.facts.decorators):
        return True
    if function.owner is not None:
        return _asked_for_by_base(program, function, function.owner)
    if function.parent is None and name in (function.module.facts.exports or ()):
        return True
    file = function.module.path.rpartition("/")[2]
    hooks = semantics().module_hooks
    return any(name in hook.names and any(fnmatchcase(file, one) for one in hook.files) for hook in hooks)


def keeps_color(program: Program, function: Function, decorator: Node) -> bool:
    """Whether a decorator of `function` is known to leave its color alone and to ask for none."""
    node = decorator[1] if decorator[0] == "call" else decorator
    name = node[1] if node[0] == "name" else node[2] if node[0] == "attr" else ""
    if name in _HARMLESS:
        return True
    value = program.static(function.module, function.parent).value(node)
    if isinstance(value, FunctionValue) and not isinstance(value.function, Function):
        return semantics().decorators.get(value.function.qualname) == "keeps"
    return False


def _asked_for_by_base(program: Program, function: Function, owner: Class) -> bool:
    name = function.name
    for ancestor in program.classes.order(owner):
        if ancestor is None:
            if not name.startswith("_"):
                return True  # an unknown base may call it by that name
        elif isinstance(ancestor, LibraryClass):
            if library.member(ancestor.qualified, name) is not None or semantics().hook(ancestor.qualified, name):
                return True
        elif name in ancestor.methods and _is_protocol(ancestor):
            return True
    return any(name in methods and methods <= owner.methods.keys() for methods in _protocols(program))


def _protocols(program: Program) -> list[frozenset[str]]:
    """The method names of each Protocol of the project: a class that has them all may be used for it."""
    known: list[frozenset[str]] | None = getattr(program, "_protocol_methods", None)
    if known is None:
        classes = (module.cls(index) for module in program.own_modules() for index in range(len(module.facts.classes)))
        known = [frozenset(cls.methods) for cls in classes if cls.methods and _is_protocol(cls)]
        program._protocol_methods = known  # type: ignore[attr-defined]
    return known


def _is_protocol(cls: Class) -> bool:
    for base in cls.facts.bases:
        node = base[1] if base[0] == "index" else base
        if (node[1] if node[0] == "name" else node[2] if node[0] == "attr" else "") == "Protocol":
            return True
    return False
