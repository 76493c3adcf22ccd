"""Plan that functions become async: definitions, an `await` at each call, and callers that follow."""

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.recolor.decisions import NOTHING_DECIDED, Answer, Decisions, place_of
from troth.analysis.recolor.plan import Listed, Plan, outside, split_by_kind
from troth.analysis.recolor.problem import Problem
from troth.analysis.recolor.project.sites import Site, Sites, find_sites
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.unread import in_unread_files
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.boundary import Boundary, is_start
from troth.analysis.recolor.reach.callback_takers import lambda_taken, mention_taken
from troth.analysis.recolor.reach.callers import Cascade, in_scope, is_test_file
from troth.analysis.recolor.reach.decided import decided
from troth.analysis.recolor.reach.family import family, may_fulfil
from troth.analysis.recolor.reach.handed_around import handed_around
from troth.analysis.recolor.reach.unable import awaited_already, kept_plain, unable_among
from troth.analysis.recolor.rewrite.generators import generator_made_async, site_looped
from troth.analysis.recolor.rewrite.mocks import mocks_recolored
from troth.analysis.recolor.rewrite.rewrite_async import (
    definition_made_async,
    import_added,
    onto_loop,
    out_of_thread,
    site_awaited,
    site_run,
)
from troth.analysis.recolor.rewrite.test_marks import ASYNCIO, Marking, marked
from troth.analysis.recolor.rewrite.unittest_base import is_unittest, isolated
from troth.analysis.recolor.rewrite.value_use import CONSUMES
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["plan_async"]


def plan_async(
    workspace: Workspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    boundary: Boundary,
    *,
    marking: Marking = ASYNCIO,
    within: Callable[[str], bool] = lambda _path: True,
    decisions: Decisions = NOTHING_DECIDED,
) -> Plan:
    """The plan for `functions`, and for the plain callers that `cascade` lets follow up to `boundary`.

    What people have decided counts for more than any reason that is found here. Where every plain caller may run the
    coroutine, one that would bring an obstacle of its own with it stays plain instead.
    """
    kept: dict[Function, str] = {}
    while True:
        plan = _planned(workspace, target, functions, cascade, boundary, marking, within, decisions, kept)
        more = _bringing_obstacles(workspace.program, plan) if boundary.is_auto else {}
        if not more.keys() - kept.keys():
            return plan
        kept |= more


def _bringing_obstacles(program: Program, plan: Plan) -> dict[Function, str]:
    """The callers that cannot all be awaited, or not in every place, with why; their kin stays plain with them."""
    found: dict[Function, str] = {}
    followers = set(plan.followers)
    for problem in plan.problems:
        for function in followers.intersection(problem.about):
            found.setdefault(function, f"{problem.path}:{problem.line}: {problem.why}")
    for site in plan.unknown:
        for function in (one for one in followers if one.name == site.name):
            found.setdefault(function, f"{site.path}:{site.line} may call it, and nobody can tell")
    for function, why in list(found.items()):
        found |= {one: why for one in family(program, [function]) if one in followers and one not in found}
    return found


def _planned(
    workspace: Workspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    boundary: Boundary,
    marking: Marking,
    within: Callable[[str], bool],
    decisions: Decisions,
    kept: Mapping[Function, str],
) -> Plan:
    program = workspace.program
    definitions = tuple(
        one
        for one in family(program, functions)
        if not one.is_async
        and _is_written(workspace, one)
        and (one in functions or decisions.about(one, one.module.path) != "leave")
    )
    unable = unable_among(workspace, definitions, decisions)
    first, changed = set(definitions), set(definitions)
    stays: dict[Function, str] = dict(kept)
    sites = decided(find_sites(workspace, changed), changed, decisions)
    unable += awaited_already(program, definitions, sites)
    while True:
        waiting = {
            site.caller
            for site in _plain(sites, within)
            if site.caller is not None
            and site.caller not in changed
            and site.caller not in stays
            and not site.caller.is_async
            and not boundary.holds(site.caller)
            and not isinstance(site.tree.around(site.node), ast.Lambda)  # which cannot await, whoever it stands in
            and _follows(site.caller, cascade, decisions)
        }
        if not waiting:
            break
        handed = handed_around(workspace, waiting, "async", within, decisions)
        for function in waiting:
            kin = [one for one in family(program, [function]) if not one.is_async and _is_written(workspace, one)]
            why = None
            if decisions.about(function, function.module.path) != "recolor":
                whys = (kept_plain(workspace, one, handed, kin) for one in (function, *kin))
                why = next((one for one in whys if one is not None), None)
            if why is None and not any(one in kept for one in kin):
                changed |= {function, *kin}
            elif why is None:
                stays[function] = next(kept[one] for one in kin if one in kept)
            else:
                stays[function] = why
        sites = decided(find_sites(workspace, changed), changed, decisions)
    mocked, odd_mocks = mocks_recolored(workspace, definitions, "async")
    edits, problems, notes = _edits(program, sites, changed, boundary, stays, within, decisions)
    problems += in_unread_files(workspace, changed, decisions)
    problems += _perhaps_fulfilling(program, definitions, changed, decisions)
    for function in changed:
        where = workspace.definition(function)
        if where is not None:
            tree, node = where
            if is_unittest(program, function):
                base = isolated(workspace, function)
                edits += base if isinstance(base, list) else []
            elif is_test_file(tree.view.path) and node.name.startswith("test"):
                edits += marked(tree, node, marking)
            if function.is_generator:
                edits += generator_made_async(tree, node)
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
            if decisions.about(one.caller, one.path, one.line) != "leave"
        ),
        sites.mentions,
        tuple(sorted(Listed(*one.place, one.qualname, why) for one, why in stays.items())),
        notes=(*odd_mocks, *notes, *_by_name(sites, within), *outside(sites.calls, within)),
    )


def _plain(sites: Sites, within: Callable[[str], bool]) -> list[Site]:
    """The calls that nobody awaits yet."""
    return [site for site in sites.calls if site.use.kind not in CONSUMES and within(site.path)]


def _by_name(sites: Sites, within: Callable[[str], bool]) -> list[Listed]:
    """The calls that are meant by their name alone: a reader may know better."""
    why = "meant by its name: nobody can tell its receiver, and nothing else in the project has a method of that name"
    return [Listed(one.path, one.line, one.text, why) for one in sites.calls if one.by_name and within(one.path)]


def _edits(
    program: Program,
    sites: Sites,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    within: Callable[[str], bool],
    decisions: Decisions,
) -> tuple[list[Edit], list[Problem], list[Listed]]:
    edits: list[Edit] = []
    found_at: dict[Site, Problem] = {}
    run_in: dict[Tree, None] = {}
    run_at: list[Listed] = []
    starts = _starts(sites, within)
    for site in (one for one in sites.calls if one.use.kind == "entered" and within(one.path)):
        why = "it is entered by `async with` or `async for`, which would get a coroutine"
        found_at[site] = Problem(site.path, site.line, site.text, why, site.functions)
    for site in _plain(sites, within):
        answer = decisions.about(site.caller, site.path, site.line)
        if answer == "leave" and site.caller not in changed:
            continue
        found = _rewritten(program, site, changed, _with(boundary, site, answer), stays, starts)
        if isinstance(found, Problem):
            found_at[site] = replace(found, settled_by=_settled_by(site), about=found.about or site.functions)
            continue
        edits += found[0]
        if found[1]:
            run_in[site.tree] = None
            kept = stays.get(site.caller) if site.caller is not None else None
            why = f"run here by `{boundary.runner}`" + ("" if kept is None else f": {kept}")
            run_at.append(Listed(site.path, site.line, site.text, why))
    for tree in run_in:
        edits += import_added(tree, boundary.import_line, boundary.import_line.rpartition(" ")[2])
    for site in sites.mixed:
        if within(site.path) and site.use.kind not in CONSUMES:
            why = "its receiver may be of another class too, whose method keeps its color"
            lines = tuple(f"{place_of(site.caller, site.path)}: {one}" for one in ("recolor", "leave"))
            found_at[site] = Problem(site.path, site.line, site.text, why, site.functions, lines)
    problems, in_text = split_by_kind(found_at)
    for mention in sites.mentions:
        if mention.is_known and within(mention.path):
            taken = out_of_thread(mention) or onto_loop(mention) or mention_taken(program, mention, "async")
            if isinstance(taken, Problem):
                if decisions.about(mention.caller, mention.path, mention.line) is None:
                    lines = tuple(f"{place_of(mention.caller, mention.path)}: {one}" for one in ("recolor", "leave"))
                    problems.append(replace(taken, settled_by=lines))
            else:
                edits += taken
    return edits, problems, [*run_at, *in_text]


def _rewritten(
    program: Program,
    site: Site,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    starts: Collection[Site],
) -> tuple[list[Edit], bool] | Problem:
    """The edits of one call, and whether it is run at a boundary."""
    around = site.tree.around(site.node)
    kind = site.tree.view.kind
    if site.use.kind == "lambda":
        taken = lambda_taken(program, site, "async")
        if not isinstance(taken, Problem) or not boundary.is_auto:
            return taken if isinstance(taken, Problem) else (taken, False)
    is_generator = any(one.is_generator for one in site.functions)
    if isinstance(around, ast.AsyncFunctionDef) or (isinstance(around, Definition) and site.caller in changed):
        found = site_looped(site) if is_generator else site_awaited(site)
        return found if isinstance(found, Problem) else (found, False)
    is_here = boundary.is_auto or boundary.holds(site.caller, site.tree.view.name)
    if is_generator and is_here:
        return Problem(site.path, site.line, site.text, "an async generator cannot be run to its end at a boundary")
    if isinstance(around, ast.Module) and kind != "code":
        found = site_awaited(site)
        return found if isinstance(found, Problem) else (found, False)
    if site in starts or (is_here and (boundary.is_auto or isinstance(around, Definition | ast.Module))):
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


def _starts(sites: Sites, within: Callable[[str], bool]) -> set[Site]:
    """The calls with which a program starts. Of several, each would get a loop of its own, so none is taken."""
    found: dict[str, list[Site]] = {}
    for site in _plain(sites, within):
        is_top = site.caller is None and site.tree.view.kind == "code" and site.use.kind != "lambda"
        if is_top and isinstance(site.tree.around(site.node), ast.Module) and is_start(site.tree, site.line):
            found.setdefault(site.path, []).append(site)
    return {
        here[0] for here in found.values() if len(here) == 1 and not any(one.is_generator for one in here[0].functions)
    }


def _follows(caller: Function, cascade: Cascade, decisions: Decisions) -> bool:
    """Whether a caller is to become async as well: as somebody has decided, else as the cascade says."""
    answer = decisions.about(caller, caller.module.path)
    return answer == "recolor" if answer is not None else in_scope(caller, cascade)


def _with(boundary: Boundary, site: Site, answer: Answer | None) -> Boundary:
    if answer != "boundary":
        return boundary
    if site.caller is None:
        return replace(boundary, modules=boundary.modules | {site.tree.view.name})
    return replace(boundary, functions=boundary.functions | {site.caller})


def _settled_by(site: Site) -> tuple[str, ...]:
    around = site.tree.around(site.node)
    answers = ["boundary", "leave"] if isinstance(around, ast.Module) else ["recolor", "boundary", "leave"]
    if isinstance(around, ast.Lambda | ast.ClassDef):
        answers = ["leave"]
    return tuple(f"{place_of(site.caller, site.path)}: {one}" for one in answers)


def _perhaps_fulfilling(
    program: Program, functions: Sequence[Function], changed: Collection[Function], decisions: Decisions
) -> list[Problem]:
    """The classes that may stand in for a protocol with one method: whether they do is for somebody to say."""
    problems = []
    for function in functions:
        for one in may_fulfil(program, function, changed):
            if decisions.about(one, one.module.path) is None:
                path, line = one.place
                why = f"it may stand in for `{function.qualname}`, which becomes async"
                lines = tuple(f"{place_of(one, path)}: {answer}" for answer in ("recolor", "leave"))
                problems.append(Problem(path, line, one.qualname, why, (function,), lines))
    return problems


def _is_written(workspace: Workspace, function: Function) -> bool:
    return workspace.definition(function) is not None
