"""Knows how to plan that functions become async: definitions, an `await` at each call, and callers that follow."""

import ast
from collections.abc import Callable, Collection, Sequence

from troth.analysis.findings import Edit
from troth.analysis.program import Program
from troth.analysis.program.entities import Function
from troth.analysis.program.mentions import mentioned
from troth.analysis.program.results import gives_no_promise
from troth.analysis.recolor.boundary import Boundary
from troth.analysis.recolor.family import family
from troth.analysis.recolor.follow import Cascade, bound_in, in_scope, is_test_file, kept_by
from troth.analysis.recolor.isolated import is_unittest, isolated
from troth.analysis.recolor.mocks import mocks_recolored
from troth.analysis.recolor.plan import Listed, Plan, Waits, outside, split_by_kind
from troth.analysis.recolor.problem import Problem
from troth.analysis.recolor.required import required_by
from troth.analysis.recolor.rewrite_async import (
    definition_made_async,
    import_added,
    marked_for_asyncio,
    out_of_thread,
    site_awaited,
    site_run,
)
from troth.analysis.recolor.sites import Site, Sites, find_sites
from troth.analysis.recolor.takers import lambda_taken, mention_taken
from troth.analysis.recolor.tree import Definition, Tree
from troth.analysis.recolor.use import CONSUMES
from troth.analysis.recolor.workspace import Workspace

__all__ = ["plan_async"]

_AWAITS = frozenset({"awaited", "run", "gathered", "timed", "spawned"})
_UNABLE = frozenset({"property", "cached_property", "setter", "deleter", "contextmanager", "overload"})


def plan_async(
    workspace: Workspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    boundary: Boundary,
    *,
    asyncio_mode: str = "strict",
    within: Callable[[str], bool] = lambda _path: True,
) -> Plan:
    """The plan for `functions`, and for the plain callers that `cascade` lets follow up to `boundary`."""
    program = workspace.program
    definitions = tuple(one for one in family(program, functions) if not one.is_async and _is_written(workspace, one))
    unable = _unable(workspace, definitions)
    first, changed = set(definitions), set(definitions)
    stays: dict[Function, str] = {}
    sites = find_sites(workspace, changed)
    unable += _awaited_already(program, definitions, sites)
    while cascade != "none":
        waiting = {
            site.caller
            for site in _plain(sites, within)
            if site.caller is not None
            and site.caller not in changed
            and site.caller not in stays
            and not site.caller.is_async
            and not boundary.holds(site.caller)
            and in_scope(site.caller, cascade)
        }
        if not waiting:
            break
        handed = mentioned(program, {one.name for one in waiting})
        for function in waiting:
            why = kept_by(program, function, handed)
            if is_unittest(program, function):
                base = isolated(workspace, function)
                why = base if isinstance(base, str) else None
            if why is None:
                changed |= {
                    one for one in family(program, [function]) if not one.is_async and _is_written(workspace, one)
                }
            else:
                stays[function] = why
        sites = find_sites(workspace, changed)
    mocked, odd_mocks = mocks_recolored(workspace, definitions, "async")
    edits, problems, in_text = _edits(program, sites, changed, boundary, stays, within)
    for function in changed:
        where = workspace.definition(function)
        if where is not None:
            tree, node = where
            if is_unittest(program, function):
                base = isolated(workspace, function)
                edits += base if isinstance(base, list) else []
            elif is_test_file(tree.view.path) and node.name.startswith("test") and asyncio_mode != "auto":
                edits += marked_for_asyncio(tree, node)
                edits += [] if "pytest" in bound_in(tree) else import_added(tree, "import pytest", "pytest")
            edits += definition_made_async(tree, node)  # after the mark, which may go to the same place
    return Plan(
        target,
        "async",
        definitions,
        tuple(sorted(changed - first, key=lambda one: one.place)),
        tuple(site for site in sites.calls if within(site.path)),
        tuple(one for one in dict.fromkeys([*edits, *mocked]) if within(one.path)),
        tuple(unable),
        tuple(sorted(problems)),
        tuple(
            one
            for one in sites.unknown
            if one.use.kind not in CONSUMES and within(one.path) and one.tree.view.kind in {"code", "notebook"}
        ),
        sites.mentions,
        tuple(sorted(Listed(*one.place, one.qualname, why) for one, why in stays.items())),
        notes=(*odd_mocks, *in_text, *outside(sites.calls, within)),
    )


def _plain(sites: Sites, within: Callable[[str], bool]) -> list[Site]:
    """The calls that nobody awaits yet."""
    return [site for site in sites.calls if site.use.kind not in CONSUMES and within(site.path)]


def _edits(
    program: Program,
    sites: Sites,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    within: Callable[[str], bool],
) -> tuple[list[Edit], list[Problem], list[Listed]]:
    edits: list[Edit] = []
    found_at: dict[Site, Problem] = {}
    run_in: dict[Tree, None] = {}
    for site in (one for one in sites.calls if one.use.kind == "entered" and within(one.path)):
        why = "it is entered by `async with` or `async for`, which would get a coroutine"
        found_at[site] = Problem(site.path, site.line, site.text, why, site.functions)
    for site in _plain(sites, within):
        found = _rewritten(program, site, changed, boundary, stays)
        if isinstance(found, Problem):
            found_at[site] = found
            continue
        edits += found[0]
        if found[1]:
            run_in[site.tree] = None
    for tree in run_in:
        edits += import_added(tree, boundary.import_line, boundary.import_line.rpartition(" ")[2])
    for site in sites.mixed:
        if within(site.path) and site.use.kind not in CONSUMES:
            why = "its receiver may be of another class too, whose method keeps its color"
            found_at[site] = Problem(site.path, site.line, site.text, why, site.functions)
    problems, in_text = split_by_kind(found_at)
    for mention in sites.mentions:
        if mention.is_known and within(mention.path):
            taken = out_of_thread(mention) or mention_taken(program, mention, "async")
            if isinstance(taken, Problem):
                problems.append(taken)
            else:
                edits += taken
    return edits, problems, in_text


def _rewritten(
    program: Program, site: Site, changed: Collection[Function], boundary: Boundary, stays: dict[Function, str]
) -> tuple[list[Edit], bool] | Problem:
    """The edits of one call, and whether it is run at a boundary."""
    around = site.tree.around(site.node)
    kind = site.tree.view.kind
    if site.use.kind == "lambda":
        taken = lambda_taken(program, site, "async")
        return taken if isinstance(taken, Problem) else (taken, False)
    if isinstance(around, ast.AsyncFunctionDef) or (isinstance(around, Definition) and site.caller in changed):
        found = site_awaited(site)
        return found if isinstance(found, Problem) else (found, False)
    if isinstance(around, ast.Module) and kind != "code":
        found = site_awaited(site)
        return found if isinstance(found, Problem) else (found, False)
    if isinstance(around, Definition | ast.Module) and boundary.holds(site.caller, site.tree.view.name):
        found = site_run(site, boundary.runner)
        return found if isinstance(found, Problem) else (found, True)
    if isinstance(around, ast.Lambda | ast.ClassDef):
        return Problem(site.path, site.line, site.text, "a lambda or a class body cannot await")
    if isinstance(around, ast.Module):
        why = "it is called while the module is imported; name the module with `--boundary` to run it there"
        return Problem(site.path, site.line, site.text, why)
    name = around.name if isinstance(around, Definition) else "?"
    kept = stays.get(site.caller) if site.caller is not None else None
    if kept is not None:
        return Problem(site.path, site.line, site.text, f"`{name}` is plain and has to stay so: {kept}")
    why = f"`{name}` is plain; let it follow with `--cascade`, or name it with `--boundary`"
    return Problem(site.path, site.line, site.text, why)


def _is_written(workspace: Workspace, function: Function) -> bool:
    return workspace.definition(function) is not None


def _awaited_already(program: Program, functions: Sequence[Function], sites: Sites) -> list[Waits]:
    """Those that are plain and give something to be awaited: as `async def` they would have to be awaited twice."""
    found = []
    for function in functions:
        awaited = [one for one in sites.calls if function in one.functions and one.use.kind in _AWAITS]
        if awaited and not gives_no_promise(program, function):
            why = f"gives what its callers await already ({awaited[0].path}:{awaited[0].line})"
            found.append(Waits(function, why, function.place[1]))
    return found


def _unable(workspace: Workspace, functions: Sequence[Function]) -> list[Waits]:
    program = workspace.program
    found = []
    for function in functions:
        if function.name.startswith("__") and function.name.endswith("__"):
            found.append(Waits(function, "is called by Python itself, which would not await it", function.place[1]))
        elif function.is_generator:
            found.append(Waits(function, "is a generator", function.place[1]))
        elif any(one.is_async and one.is_generator for one in family(program, [function])):
            found.append(Waits(function, "has namesakes in its family that are async generators", function.place[1]))
        elif function.decorated_with(*_UNABLE):
            found.append(Waits(function, "has a decorator that asks for a plain function", function.place[1]))
        elif is_unittest(program, function):
            base = isolated(workspace, function)
            found += [Waits(function, base, function.place[1])] if isinstance(base, str) else []
        elif why := required_by(program, function, functions):
            found.append(Waits(function, why, function.place[1]))
    return found
