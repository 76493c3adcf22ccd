"""Find which async functions never wait, and which of these somebody needs to be async all the same."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.model import ASYNC, GENERATOR, WAITS
from troth.analysis.facts.nodes import children, words_of
from troth.analysis.semantics.queries.await_points import awaited_calls
from troth.analysis.semantics.queries.callback_uses import handed
from troth.analysis.semantics.queries.color_requirements import is_required
from troth.analysis.semantics.queries.dispatch import dispatchers_of
from troth.analysis.semantics.resolve.references import mentioned
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, External, FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, MutableMapping, Sequence

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.queries.call_graph import Call

__all__ = ["Needless", "handed_over", "needless", "of_surfaces", "pulled"]

_FEWEST = 2
_RUNNING = frozenset({"run", "run_until_complete", "run_async", "async_to_sync"})
# What a project calls its own way to run a coroutine to its end, in plain code.
_RUNS_HERE = re.compile(r"_*(?:run|await|block|wait)(?:_|$)")
_TELLING = frozenset(
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
_USED_UP = frozenset(
    {"expr", "assign", "annassign", "if", "while", "not", "compare", "binop", "assert", "attr", "index"}
)
_DEEPEST = 8  # rounds of functions that wait only for functions of the round before


class Needless(NamedTuple):
    """An async function that never waits and need not be async; `awaited` are the calls that would change.

    One that is `pulled` is async only because somebody of the project awaits whatever he picks or is given: a
    dispatcher, whose calls are the awaited ones, or the parameter `slot`. One that waits only for needless ones names
    them in `through`.
    """

    function: Function
    awaited: tuple[Call, ...]
    is_sure: bool
    is_pulled: bool = False
    is_seen: bool = True
    """Whether calls were seen, and all of them await: else nobody was seen to call it, or a call lost its coroutine."""
    slot: AwaitedParameter | None = None
    through: tuple[Function, ...] = ()


def needless(program: Program) -> tuple[Needless, ...]:
    """Those in the asked files, worked out once for each walk."""
    if not program.asked:
        return ()
    known: MutableMapping[tuple[str, ...], tuple[Needless, ...]] = program.answers_to("needless")
    paths = program.paths  # one that waits for such a one in another file is another
    if paths not in known:
        known[paths] = tuple(_find(program, paths))
    asked = frozenset(program.asked)
    return tuple(one for one in known[paths] if one.function.module.path in asked)


def of_surfaces(program: Program, is_asked_for: Callable[[Class], bool]) -> list[Needless]:
    """Those methods in the asked files whose class never waits at all, where all of its async methods are such."""
    idle: dict[Class, list[Function]] = defaultdict(list)
    for function in _idle(program, program.asked):
        if function.owner is not None:
            idle[function.owner].append(function)
    surfaces = [cls for cls in idle if _never_waits(cls) and is_asked_for(cls)]
    return _freed(program, [one for cls in surfaces for one in idle[cls]], {}, surfaces)


def pulled(program: Program, handlers: Collection[Function]) -> set[Function]:
    """Those of `handlers` that are async only because a dispatcher awaits whatever it picks."""
    idle = [one for one in handlers if one.is_async and not one.is_generator and not one.waits]
    return {one.function for one in _freed(program, idle, {}) if one.is_pulled}


def _async_methods(cls: Class) -> list[Function]:
    methods = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
    return [one for one in methods if one.is_async and not one.name.startswith("__")]


def _never_waits(cls: Class) -> bool:
    """Whether the class has async methods, at least two of them public, and none of them ever waits."""
    methods = _async_methods(cls)
    public = sum(not one.name.startswith("_") for one in methods)
    return public >= _FEWEST and not any(one.is_generator or one.is_abstract or one.waits for one in methods)


def handed_over(program: Program) -> tuple[Function, ...]:
    """Those that are async for nothing but for somebody whom they are handed to, and who may await what they give."""
    idle = _idle(program, program.asked)
    handlers = _handlers(program, idle)
    candidates = [one for one in idle if one not in handlers and not is_required(program, one)]
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


def _idle(program: Program, paths: Sequence[str]) -> list[Function]:
    """The async functions of these files that never wait."""
    return [
        module.function(index)
        for module in map(program.module, paths)
        for index, facts in enumerate(module.facts.functions)
        if index and facts.flags & (ASYNC | GENERATOR | WAITS) == ASYNC
    ]


def _handlers(program: Program, functions: Collection[Function]) -> set[Function]:
    """Those that dispatchers pick."""
    return {handler for one in dispatchers_of(program, functions) for handler in one.handlers}


def _find(program: Program, paths: Sequence[str]) -> list[Needless]:
    found = _freed(program, _idle(program, paths), {})
    known = {one.function: one for one in found}
    for _ in range(_DEEPEST):
        following = _waiting_only_for(known)
        fresh = _freed(program, [one for one in following if one not in known], following)
        if not fresh:
            break
        known.update((one.function, one) for one in fresh)
    return list(known.values())


def _freed(
    program: Program,
    idle: Collection[Function],
    through: dict[Function, tuple[Function, ...]],
    surfaces: Collection[Class] | None = None,
) -> list[Needless]:
    """Those of `idle`, which never wait, that nobody needs to be async.

    With `surfaces`, classes one of whose methods is needed are left out, before their calls are looked for.
    """
    candidates = [function for function in idle if not is_required(program, function)]
    if surfaces is not None:
        candidates = _wholly(candidates, surfaces)
    if not candidates:
        return []
    pulling: dict[Function, list[Call]] = defaultdict(list)
    for dispatcher in dispatchers_of(program, candidates):
        for handler in dispatcher.handlers:
            pulling[handler].append(dispatcher.call)
    families = _families(program, candidates)
    twins = _with_waiting_twins(program, [one for one in candidates if one not in pulling])
    given = handed(program, [one for one in candidates if one not in pulling and one not in twins])
    found: list[Needless] = []
    free: list[Function] = []
    for function in candidates:
        because = through.get(function, ())
        if _takes_both(program, function):
            found.append(Needless(function, (), is_sure=False, is_seen=False, through=because))
        elif any((one.waits and one not in through) or not one.is_async for one in families[function]):
            continue
        elif function in pulling:
            calls = tuple(pulling[function])
            found.append(Needless(function, calls, is_sure=False, is_pulled=True, through=because))
        elif not function.is_abstract and function not in twins:
            takers = [one for relative in families[function] for one in given.get(relative, ())]
            if all(one.need != "unknown" for one in takers):
                free.append(function)
    if surfaces is not None:
        free = _wholly(free, surfaces)
    sites, unknown = _sites(program, {function.name for function in free}, {o for f in free for o in families[f]})
    for function in free:
        family, because = families[function], through.get(function, ())
        calls = tuple(dict.fromkeys(call for one in family for call in sites.get(one, ())))
        is_awaited = any(call.is_awaited for call in calls)
        if any(not call.is_awaited and _hands_on(program, call, is_awaited=is_awaited) for call in calls):
            continue  # its coroutine goes to somebody who needs one
        takers = [one for relative in family for one in given.get(relative, ())]
        slot = next((one.slot for one in takers if one.slot is not None), None)
        if slot is not None:
            found.append(Needless(function, calls, is_sure=False, is_pulled=True, slot=slot, through=because))
        elif not calls or takers or any(not call.is_awaited for call in calls):
            if not (function.owner is None and function.parent is None and not calls and _is_entry(function)):
                found.append(Needless(function, calls, is_sure=False, is_seen=False, through=because))
        else:
            closed = function.owner is None or program.classes.is_complete(function.owner)
            sure = closed and len(family) == 1 and not unknown.get(function.name) and not because
            found.append(Needless(function, calls, sure, through=because))
    return found


def _wholly(functions: list[Function], classes: Collection[Class]) -> list[Function]:
    """Those of `functions` whose class has no other async methods."""
    whole = {cls for cls in classes if set(functions).issuperset(_async_methods(cls))}
    return [one for one in functions if one.owner in whole]


def _takes_both(program: Program, function: Function) -> bool:
    """Whether a class above declares the method for either color: `def execute(self) -> None | Awaitable[None]`."""
    bases = program.classes.order(function.owner)[1:] if function.owner is not None else ()
    declared = [
        one.module.function(one.methods[function.name][-1])
        for one in bases
        if isinstance(one, Class) and function.name in one.methods
    ]
    return bool(declared) and not declared[-1].is_async and _is_either(declared[-1].facts.returns)


def _is_either(annotation: Node | None) -> bool:
    """Whether a type says that there may be something to await, or not."""
    if annotation is None:
        return False
    if annotation[0] == "index":
        name = (
            annotation[1][-1] if annotation[1][0] == "name" else annotation[1][2] if annotation[1][0] == "attr" else ""
        )
        return name in {"Union", "Optional", "MaybeAwaitable"} and (
            name == "MaybeAwaitable" or _is_awaitable(annotation[2])
        )
    return annotation[0] == "binop" and (_is_awaitable(annotation[1]) != _is_awaitable(annotation[2]))


def _is_awaitable(annotation: Node) -> bool:
    return any(word in {"Awaitable", "Coroutine"} for word in words_of(annotation))


def _waiting_only_for(freed: dict[Function, Needless]) -> dict[Function, tuple[Function, ...]]:
    """The async functions that wait for nothing but calls of `freed` ones."""
    targets: dict[tuple[Function, At], Function] = {}
    for one in freed.values():
        if not one.is_pulled or one.slot is not None:
            for call in one.awaited:
                if call.is_awaited and len(members_of(call.callee)) == 1:
                    targets[call.caller, call.at] = one.function
    found: dict[Function, tuple[Function, ...]] = {}
    for caller in dict.fromkeys(caller for caller, _ in targets):
        if caller in freed or not caller.is_async or caller.is_generator or not caller.module.own:
            continue
        awaits = awaited_calls(caller)
        if awaits and all((caller, at) in targets for at in awaits):
            found[caller] = tuple(dict.fromkeys(targets[caller, at] for at in awaits))
    return found


def _hands_on(program: Program, call: Call, *, is_awaited: bool) -> bool:
    """Whether the coroutine that a call makes goes to somebody who may need one: a task, a list, whoever called us.

    One that an async function returns or yields, though other calls of the same are awaited, is lost rather than given.
    """
    around = _around(call.caller.body(), call.node, ())
    if not around or around[0] in _USED_UP:
        return False
    if is_awaited and call.caller.is_async and around[0] in {"return", "yield"}:
        return False
    if around[0] == "call":
        taker = next((one for one in program.calling.of(call.caller) if one.at == around[-1]), None)
        last = taker.text.rpartition(".")[2] if taker is not None else ""
        is_run = last in _RUNNING or (_RUNS_HERE.match(last) is not None and not call.caller.is_async)
        return not (is_run or (taker is not None and isinstance(taker.callee, ClassObject)))
    return True


def _around(nodes: Iterable[Node], wanted: Node, parent: Node) -> Node | None:
    """The node of a kind that tells which has `wanted` for a part, however deep."""
    for node in nodes:
        if node == wanted:
            return parent
        found = _around(children(node), wanted, node if node[0] in _TELLING else parent)
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
    for name in names:
        for one in program.calling.functions_named(name):
            if one.owner is not None and one.waits:
                waiting[name].append(one.owner)
    return {
        function
        for function in functions
        if function.owner is not None
        and any(_is_of_one_shape(program, function.owner, other) for other in waiting[function.name])
    }


def _is_of_one_shape(program: Program, one: Class, other: Class) -> bool:
    """Whether two classes have most of their methods in common, besides those that a common base asks for."""
    if one is other:
        return False
    above = [base for base in program.classes.order(one) if isinstance(base, Class)]
    common = {
        name for base in program.classes.order(other) if base in above and base is not None for name in base.methods
    }
    mine = {name for name in one.methods if not name.startswith("__")} - common
    theirs = {name for name in other.methods if not name.startswith("__")} - common
    shared = len(mine & theirs)
    return shared >= 3 and shared * 2 >= min(len(mine), len(theirs))


def _sites(
    program: Program, names: set[str], wanted: Collection[Function]
) -> tuple[dict[Function, list[Call]], dict[str, int]]:
    """The calls of each wanted function, and how many calls of each name nobody can tell the target of."""
    sites: dict[Function, list[Call]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    if not names:
        return sites, unknown
    for caller in program.calling.functions_naming(names):
        if not (program.has_walked(caller) or program.glance.may_call(caller, names, wanted)):
            continue
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
