"""Find what keeps functions from becoming async: the targets themselves, and callers that would follow."""

from collections.abc import Collection, Mapping, Sequence

from troth.analysis.recolor.decisions import Decisions, place_of
from troth.analysis.recolor.plan import Listed, Waits
from troth.analysis.recolor.project.entries import is_entering
from troth.analysis.recolor.project.property_reads import is_property
from troth.analysis.recolor.project.sites import Sites
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.callers import kept_by
from troth.analysis.recolor.reach.color_requirements import required_by
from troth.analysis.recolor.reach.context_managers import kept_entering
from troth.analysis.recolor.reach.family import family, stands_in
from troth.analysis.recolor.reach.loop_start import is_undone, loop_start
from troth.analysis.recolor.reach.properties import kept_property
from troth.analysis.recolor.rewrite.generators import keeps_generator
from troth.analysis.recolor.rewrite.unittest_base import is_unittest, isolated
from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["awaited_already", "kept_plain", "split_unable", "unable_among"]

_AWAITS = frozenset({"awaited", "run", "gathered", "timed", "spawned", "other thread"})
_ASKED_FOR = "is a property; `--properties` makes a method of it"
_UNABLE = frozenset({"property", "cached_property", "setter", "deleter", "contextmanager"})


def kept_plain(
    workspace: RecolorWorkspace,
    function: Function,
    handed: Mapping[Function, str],
    kin: list[Function],
    *,
    changed: Collection[Function] = (),
    properties: bool = False,
    entering: bool = False,
) -> str | None:
    """Why a caller has to stay plain though `kin` would change with it; None if it need not.

    `changed` is what becomes async before it. With `properties`, a property becomes a method; with `entering`, a class
    is entered by `async with` from now on.
    """
    if is_entering(function) and entering:
        why = kept_entering(workspace.program, function, kin)
        return None if why is None else f"it {why}"
    if properties and is_property(function):
        return kept_property(workspace.program, function)
    if (start := loop_start(workspace.program, function, changed)) is not None:
        return f"it {start}"
    where = workspace.definition(function) if function.is_generator else None
    if where is not None and not function.name.startswith("__"):
        return keeps_generator(where[1]) or handed.get(function)
    if is_unittest(workspace.program, function):
        base = isolated(workspace, function)
        return base if isinstance(base, str) else None
    return kept_by(workspace.program, function, handed, kin)


def awaited_already(program: Program, functions: Sequence[Function], sites: Sites) -> list[Waits]:
    """Those that are plain and give something to be awaited: as `async def` they would have to be awaited twice."""
    unable = []
    for function in functions:
        awaited = [site for site in sites.calls if function in site.functions and site.use.kind in _AWAITS]
        if awaited and not gives_no_awaitable(program, function):
            why = f"returns what its callers already await ({awaited[0].path}:{awaited[0].line})"
            unable.append(Waits(function, why, function.place[1], _lines(function)))
    return unable


def unable_among(
    workspace: RecolorWorkspace, functions: Sequence[Function], decisions: Decisions, *, properties: bool = False
) -> list[Waits]:
    """The targets that cannot be async, with why. With `properties`, a property becomes a method."""
    program = workspace.program
    unable = []
    for function in functions:
        is_decided = decisions.about(function, function.module.path) == "recolor"
        if is_entering(function):
            why = kept_entering(program, function, functions)
            unable += [] if why is None else [Waits(function, why, function.place[1])]
        elif function.name.startswith("__") and function.name.endswith("__"):
            unable.append(Waits(function, "is called by Python itself, which would not await it", function.place[1]))
        elif (start := _loop_start(workspace, function, functions)) is not None:
            unable.append(Waits(function, start, function.place[1]))
        elif function.is_generator:
            where = workspace.definition(function)
            why = keeps_generator(where[1]) if where is not None else "it is a generator"
            unable += [] if why is None else [Waits(function, why.removeprefix("it "), function.place[1])]
        elif any(relative.is_async and relative.is_generator for relative in family(program, [function])):
            unable.append(Waits(function, "has namesakes in its family that are async generators", function.place[1]))
        elif is_property(function) and function.owner is not None:
            if not (properties or is_decided):
                unable.append(Waits(function, _ASKED_FOR, function.place[1], _lines(function)))
            elif (why := kept_property(program, function)) is not None:
                unable.append(Waits(function, why, function.place[1]))
        elif function.decorated_with(*_UNABLE):
            unable.append(Waits(function, "has a decorator that asks for a sync function", function.place[1]))
        elif is_unittest(program, function):
            base = isolated(workspace, function)
            unable += [Waits(function, base, function.place[1])] if isinstance(base, str) else []
        elif not is_decided and (why := required_by(program, function, functions)):
            unable.append(_doubtful(function, why))
        elif not is_decided and function.owner is not None and _is_fulfilled_elsewhere(program, function.owner):
            why = "is required by a protocol that no class of the project implements: other objects are passed for it"
            unable.append(_doubtful(function, why))
        elif not is_decided and _extends_unknown(workspace, function):
            why = "extends a method of a base class that is not known, which may call it"
            unable.append(_doubtful(function, why))
    return unable


def split_unable(workspace: RecolorWorkspace, unable: Sequence[Waits]) -> tuple[list[Waits], list[Listed]]:
    """What cannot take the color, and what stands in a page or docstring only: that is named, and never runs."""
    in_code: list[Waits] = []
    in_text: list[Listed] = []
    for waits in unable:
        view = workspace.views.get(waits.function.module.path)
        if view is not None and view.kind in {"markdown", "docstring"}:
            in_text.append(Listed(view.path, waits.line, waits.function.qualname, waits.why))
        else:
            in_code.append(waits)
    return in_code, in_text


def _doubtful(function: Function, why: str) -> Waits:
    """A target that somebody may call who knows nothing of its color."""
    doubt = f"`{function.qualname}` is async now, though it {why}"
    return Waits(function, why, function.place[1], _lines(function), doubt)


def _lines(function: Function) -> tuple[str, ...]:
    return (f"{place_of(function, function.module.path)}: recolor",)


def _is_fulfilled_elsewhere(program: Program, cls: Class) -> bool:
    """Whether a class is a protocol, and no class of the project derives from it or has all of its methods."""
    return is_protocol(cls) and not program.classes.children(cls) and not stands_in(program, cls)


def _extends_unknown(workspace: RecolorWorkspace, function: Function) -> bool:
    """Whether it calls `super()` for its own name where the bases of the project have none: then another base does."""
    where, owner = workspace.definition(function), function.owner
    if where is None or owner is None:
        return False
    above = [base for base in workspace.program.classes.order(owner) if base is not owner]
    if None not in above or any(isinstance(base, Class) and function.name in base.methods for base in above):
        return False
    return f"super().{function.name}(" in where[0].source(where[1])


def _loop_start(workspace: RecolorWorkspace, function: Function, together: Sequence[Function]) -> str | None:
    """How a target starts a loop in a way that it cannot await instead."""
    where = workspace.definition(function)
    return loop_start(workspace.program, function, together, is_own_allowed=where is not None and is_undone(where[1]))
