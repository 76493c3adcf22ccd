"""Find what keeps functions from becoming async: the targets themselves, and callers that would follow."""

from collections.abc import Mapping, Sequence

from troth.analysis.recolor.decisions import Decisions
from troth.analysis.recolor.plan import Waits
from troth.analysis.recolor.project.sites import Sites
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.callers import kept_by
from troth.analysis.recolor.reach.color_requirements import required_by
from troth.analysis.recolor.reach.family import family
from troth.analysis.recolor.rewrite.generators import keeps_generator
from troth.analysis.recolor.rewrite.unittest_base import is_unittest, isolated
from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.never_awaitable import gives_no_promise
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["awaited_already", "kept_plain", "unable_among"]

_AWAITS = frozenset({"awaited", "run", "gathered", "timed", "spawned", "other thread"})
_UNABLE = frozenset({"property", "cached_property", "setter", "deleter", "contextmanager", "overload"})
_STARTERS = frozenset({"asyncio.run", "anyio.run", "trio.run", "uvloop.run"})
_LOOP_METHODS = frozenset({"run_until_complete", "run_forever"})


def kept_plain(
    workspace: Workspace, function: Function, handed: Mapping[Function, str], kin: list[Function]
) -> str | None:
    """Why a caller has to stay plain though `kin` would change with it; None if it need not."""
    if (start := _starts_loop(function)) is not None:
        return f"it starts a loop itself, with `{start}`"
    where = workspace.definition(function) if function.is_generator else None
    if where is not None and not function.name.startswith("__"):
        return keeps_generator(where[1]) or handed.get(function)
    if is_unittest(workspace.program, function):
        base = isolated(workspace, function)
        return base if isinstance(base, str) else None
    return kept_by(workspace.program, function, handed, kin)


def awaited_already(program: Program, functions: Sequence[Function], sites: Sites) -> list[Waits]:
    """Those that are plain and give something to be awaited: as `async def` they would have to be awaited twice."""
    found = []
    for function in functions:
        awaited = [one for one in sites.calls if function in one.functions and one.use.kind in _AWAITS]
        if awaited and not gives_no_promise(program, function):
            why = f"gives what its callers await already ({awaited[0].path}:{awaited[0].line})"
            found.append(Waits(function, why, function.place[1]))
    return found


def unable_among(workspace: Workspace, functions: Sequence[Function], decisions: Decisions) -> list[Waits]:
    """The targets that cannot be async, with why."""
    program = workspace.program
    found = []
    for function in functions:
        is_decided = decisions.about(function, function.module.path) == "recolor"
        if function.name.startswith("__") and function.name.endswith("__"):
            found.append(Waits(function, "is called by Python itself, which would not await it", function.place[1]))
        elif (start := _starts_loop(function)) is not None:
            found.append(Waits(function, f"starts a loop itself, with `{start}`", function.place[1]))
        elif function.is_generator:
            where = workspace.definition(function)
            why = keeps_generator(where[1]) if where is not None else "it is a generator"
            found += [] if why is None else [Waits(function, why.removeprefix("it "), function.place[1])]
        elif any(one.is_async and one.is_generator for one in family(program, [function])):
            found.append(Waits(function, "has namesakes in its family that are async generators", function.place[1]))
        elif function.decorated_with(*_UNABLE):
            found.append(Waits(function, "has a decorator that asks for a plain function", function.place[1]))
        elif is_unittest(program, function):
            base = isolated(workspace, function)
            found += [Waits(function, base, function.place[1])] if isinstance(base, str) else []
        elif not is_decided and (why := required_by(program, function, functions)):
            found.append(Waits(function, why, function.place[1]))
        elif not is_decided and _extends_unknown(workspace, function):
            why = "extends a method of a base class that is not known, which may call it"
            found.append(Waits(function, why, function.place[1]))
    return found


def _starts_loop(function: Function) -> str | None:
    """The call in a plain function that starts an event loop: what runs one cannot be run by one."""
    for callee in function.facts.calls:
        if callee in _STARTERS or callee.rpartition(".")[2] in _LOOP_METHODS:
            return callee
    return None


def _extends_unknown(workspace: Workspace, function: Function) -> bool:
    """Whether it calls `super()` for its own name where the bases of the project have none: then another base does."""
    where, owner = workspace.definition(function), function.owner
    if where is None or owner is None:
        return False
    above = [one for one in workspace.program.classes.order(owner) if one is not owner]
    if None not in above or any(isinstance(one, Class) and function.name in one.methods for one in above):
        return False
    return f"super().{function.name}(" in where[0].source(where[1])
