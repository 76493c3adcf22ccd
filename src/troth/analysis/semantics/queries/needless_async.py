"""Find which async functions never wait, and which of these somebody needs to be async all the same."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import AT, ATTR_NAME, BINOP_LEFT, BINOP_RIGHT, INDEX_BASE, INDEX_KEY, KIND
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
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program

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
    answers: MutableMapping[tuple[str, ...], tuple[Needless, ...]] = program.answers_to("needless")
    paths = program.paths  # one that waits for such a one in another file is another
    if paths not in answers:
        answers[paths] = tuple(_find(program, paths))
    paths_asked = frozenset(program.asked)
    return tuple(finding for finding in answers[paths] if finding.function.module.path in paths_asked)


def of_surfaces(program: Program, is_asked_for: Callable[[Class], bool]) -> list[Needless]:
    """Those methods in the asked files whose class never waits at all, where all of its async methods are such."""
    idle: dict[Class, list[Function]] = defaultdict(list)
    for function in _idle(program, program.asked):
        if function.owner is not None:
            idle[function.owner].append(function)
    surfaces = [cls for cls in idle if _never_waits(cls) and is_asked_for(cls)]
    return _freed(program, [method for cls in surfaces for method in idle[cls]], {}, surfaces)


def pulled(program: Program, handlers: Collection[Function]) -> set[Function]:
    """Those of `handlers` that are async only because a dispatcher awaits whatever it picks."""
    idle = [handler for handler in handlers if handler.is_async and not handler.is_generator and not handler.waits]
    return {finding.function for finding in _freed(program, idle, {}) if finding.is_pulled}


def _async_methods(cls: Class) -> list[Function]:
    methods = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
    return [method for method in methods if method.is_async and not method.name.startswith("__")]


def _never_waits(cls: Class) -> bool:
    """Whether the class has async methods, at least two of them public, and none of them ever waits."""
    methods = _async_methods(cls)
    public = sum(not method.name.startswith("_") for method in methods)
    return public >= _FEWEST and not any(
        method.is_generator or method.is_abstract or method.waits for method in methods
    )


def handed_over(program: Program) -> tuple[Function, ...]:
    """Those that are async for nothing but for somebody whom they are handed to, and who may await what they give."""
    idle = _idle(program, program.asked)
    handlers = _handlers(program, idle)
    candidates = [function for function in idle if function not in handlers and not is_required(program, function)]
    families = _families(program, candidates)
    names = mentioned(program, {function.name for function in candidates})
    twins = _with_waiting_twins(program, candidates)
    return tuple(
        candidate
        for candidate in candidates
        if candidate.name in names
        and candidate not in twins
        and not candidate.is_abstract
        and not any(relative.waits or not relative.is_async for relative in families[candidate])
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
    return {handler for dispatcher in dispatchers_of(program, functions) for handler in dispatcher.handlers}


def _find(program: Program, paths: Sequence[str]) -> list[Needless]:
    freed = _freed(program, _idle(program, paths), {})
    by_function = {finding.function: finding for finding in freed}
    for _ in range(_DEEPEST):
        following = _waiting_only_for(by_function)
        fresh = _freed(program, [function for function in following if function not in by_function], following)
        if not fresh:
            break
        by_function.update((finding.function, finding) for finding in fresh)
    return list(by_function.values())


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
    twins = _with_waiting_twins(program, [candidate for candidate in candidates if candidate not in pulling])
    uses = handed(
        program, [candidate for candidate in candidates if candidate not in pulling and candidate not in twins]
    )
    needless: list[Needless] = []
    free: list[Function] = []
    for function in candidates:
        because = through.get(function, ())
        if _takes_both(program, function):
            needless.append(Needless(function, (), is_sure=False, is_seen=False, through=because))
        elif any(
            (relative.waits and relative not in through) or not relative.is_async for relative in families[function]
        ):
            continue
        elif function in pulling:
            calls = tuple(pulling[function])
            needless.append(Needless(function, calls, is_sure=False, is_pulled=True, through=because))
        elif not function.is_abstract and function not in twins:
            takers = [use for relative in families[function] for use in uses.get(relative, ())]
            if all(taker.need != "unknown" for taker in takers):
                free.append(function)
    if surfaces is not None:
        free = _wholly(free, surfaces)
    sites, unknown = _sites(program, {function.name for function in free}, {o for f in free for o in families[f]})
    for function in free:
        family, because = families[function], through.get(function, ())
        calls = tuple(dict.fromkeys(call for relative_ in family for call in sites.get(relative_, ())))
        is_awaited = any(call.is_awaited for call in calls)
        if any(not call.is_awaited and _hands_on(program, call, is_awaited=is_awaited) for call in calls):
            continue  # its coroutine goes to somebody who needs one
        takers = [use for relative in family for use in uses.get(relative, ())]
        slot = next((taker.slot for taker in takers if taker.slot is not None), None)
        if slot is not None:
            needless.append(Needless(function, calls, is_sure=False, is_pulled=True, slot=slot, through=because))
        elif not calls or takers or any(not call.is_awaited for call in calls):
            if not (function.owner is None and function.parent is None and not calls and _is_entry(function)):
                needless.append(Needless(function, calls, is_sure=False, is_seen=False, through=because))
        else:
            closed = function.owner is None or program.classes.is_complete(function.owner)
            sure = closed and len(family) == 1 and not unknown.get(function.name) and not because
            needless.append(Needless(function, calls, sure, through=because))
    return needless


def _wholly(functions: list[Function], classes: Collection[Class]) -> list[Function]:
    """Those of `functions` whose class has no other async methods."""
    whole = {cls for cls in classes if set(functions).issuperset(_async_methods(cls))}
    return [function for function in functions if function.owner in whole]


def _takes_both(program: Program, function: Function) -> bool:
    """Whether a class above declares the method for either color: `def execute(self) -> None | Awaitable[None]`."""
    bases = program.classes.order(function.owner)[1:] if function.owner is not None else ()
    declared = [
        base.module.function(base.methods[function.name][-1])
        for base in bases
        if isinstance(base, Class) and function.name in base.methods
    ]
    return bool(declared) and not declared[-1].is_async and _is_either(declared[-1].facts.returns)


def _is_either(annotation: Node | None) -> bool:
    """Whether a type says that there may be something to await, or not."""
    if annotation is None:
        return False
    if annotation[KIND] == "index":
        name = (
            annotation[INDEX_BASE][-1]
            if annotation[INDEX_BASE][KIND] == "name"
            else annotation[INDEX_BASE][ATTR_NAME]
            if annotation[INDEX_BASE][KIND] == "attr"
            else ""
        )
        return name in {"Union", "Optional", "MaybeAwaitable"} and (
            name == "MaybeAwaitable" or _is_awaitable(annotation[INDEX_KEY])
        )
    return annotation[KIND] == "binop" and (
        _is_awaitable(annotation[BINOP_LEFT]) != _is_awaitable(annotation[BINOP_RIGHT])
    )


def _is_awaitable(annotation: Node) -> bool:
    return any(word in {"Awaitable", "Coroutine"} for word in words_of(annotation))


def _waiting_only_for(freed: dict[Function, Needless]) -> dict[Function, tuple[Function, ...]]:
    """The async functions that wait for nothing but calls of `freed` ones."""
    targets: dict[tuple[Function, At], Function] = {}
    for finding in freed.values():
        if not finding.is_pulled or finding.slot is not None:
            for call in finding.awaited:
                if call.is_awaited and len(members_of(call.callee)) == 1:
                    targets[call.caller, call.at] = finding.function
    by_function: dict[Function, tuple[Function, ...]] = {}
    for caller in dict.fromkeys(caller for caller, _ in targets):
        if caller in freed or not caller.is_async or caller.is_generator or not caller.module.own:
            continue
        awaits = awaited_calls(caller)
        if awaits and all((caller, at) in targets for at in awaits):
            by_function[caller] = tuple(dict.fromkeys(targets[caller, at] for at in awaits))
    return by_function


def _hands_on(program: Program, call: Call, *, is_awaited: bool) -> bool:
    """Whether the coroutine that a call makes goes to somebody who may need one: a task, a list, whoever called us.

    One that an async function returns or yields, though other calls of the same are awaited, is lost rather than given.
    """
    around = _around(call.caller.body(), call.node, ())
    if not around or around[KIND] in _USED_UP:
        return False
    if is_awaited and call.caller.is_async and around[KIND] in {"return", "yield"}:
        return False
    if around[KIND] == "call":
        taker = next((call_ for call_ in program.calling.of(call.caller) if call_.at == around[AT]), None)
        last = taker.text.rpartition(".")[2] if taker is not None else ""
        is_run = last in _RUNNING or (_RUNS_HERE.match(last) is not None and not call.caller.is_async)
        return not (is_run or (taker is not None and isinstance(taker.callee, ClassObject)))
    return True


def _around(nodes: Iterable[Node], wanted: Node, parent: Node) -> Node | None:
    """The node of a kind that tells which has `wanted` for a part, however deep."""
    for node in nodes:
        if node == wanted:
            return parent
        around = _around(children(node), wanted, node if node[0] in _TELLING else parent)
        if around is not None:
            return around
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
                ancestor
                for ancestor in program.classes.order(cls)
                if isinstance(ancestor, Class) and function.name in ancestor.methods
            ]
            todo += [child for child in program.classes.children(cls) if function.name in child.methods]
        family = [
            cls.module.function(index)
            for cls in related
            if function.name in cls.methods
            for index in cls.methods[function.name]
        ]
        result[function] = [relative for relative in family if not relative.is_abstract] or [function]
    return result


def _with_waiting_twins(program: Program, functions: list[Function]) -> set[Function]:
    """The methods that another class of the same shape has too, and waits in: one surface, written twice."""
    names = {function.name for function in functions if function.owner is not None}
    waiting: dict[str, list[Class]] = defaultdict(list)
    for name in names:
        for namesake in program.calling.functions_named(name):
            if namesake.owner is not None and namesake.waits:
                waiting[name].append(namesake.owner)
    return {
        function
        for function in functions
        if function.owner is not None
        and any(_is_of_one_shape(program, function.owner, cls) for cls in waiting[function.name])
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
            targets = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
            for target in targets:
                if isinstance(target, Function):
                    sites[target].append(call)
            if not targets and not isinstance(call.callee, External | ClassObject):
                unknown[last] += 1
    return sites, unknown
