"""Rewrite every call of functions that become async: awaited, or run where async ends."""

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.recolor.decisions import Answer, Decisions, place_of
from troth.analysis.recolor.plan import Listed, split_by_kind
from troth.analysis.recolor.problem import Problem
from troth.analysis.recolor.project.entries import ASYNC_NAMES
from troth.analysis.recolor.project.sites import Site, Sites
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.reach.boundary import Boundary, is_start
from troth.analysis.recolor.reach.callback_takers import lambda_taken, mention_taken
from troth.analysis.recolor.rewrite.generators import site_entered, site_looped
from troth.analysis.recolor.rewrite.rewrite_async import import_added, onto_loop, out_of_thread, site_awaited, site_run
from troth.analysis.recolor.rewrite.value_use import CONSUMES
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["calls_rewritten", "not_awaited"]


def not_awaited(sites: Sites, within: Callable[[str], bool]) -> list[Site]:
    """The calls that nobody awaits yet."""
    return [site for site in sites.calls if site.use.kind not in CONSUMES and within(site.path)]


def calls_rewritten(
    program: Program,
    sites: Sites,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    within: Callable[[str], bool],
    decisions: Decisions,
) -> tuple[list[Edit], list[Problem], list[Listed]]:
    """The edits of all calls and mentions, what somebody has to decide first, and what is told besides."""
    edits: list[Edit] = []
    found_at: dict[Site, Problem] = {}
    run_in: dict[Tree, None] = {}
    run_at: list[Listed] = []
    starts = _starts(sites, within)
    for site in (site for site in sites.calls if site.use.kind == "entered" and within(site.path)):
        entered = _entered(site)
        if isinstance(entered, Problem):
            found_at[site] = entered
        else:
            edits += entered
    for site in not_awaited(sites, within):
        answer = decisions.about(site.caller, site.path, site.line)
        if answer == "leave" and site.caller not in changed:
            continue
        rewritten = _rewritten(program, site, changed, _with(boundary, site, answer), stays, starts)
        if isinstance(rewritten, Problem):
            found_at[site] = replace(rewritten, settled_by=_settled_by(site), about=rewritten.about or site.functions)
            continue
        edits += rewritten[0]
        if rewritten[1]:
            run_in[site.tree] = None
            reason = stays.get(site.caller) if site.caller is not None else None
            why = f"run here by `{boundary.runner}`" + ("" if reason is None else f": {reason}")
            run_at.append(Listed(site.path, site.line, site.text, why))
    for tree in run_in:
        edits += import_added(tree, boundary.import_line, boundary.import_line.rpartition(" ")[2])
    for site in sites.mixed:
        if within(site.path) and site.use.kind not in CONSUMES:
            why = "its receiver may be of another class too, whose method keeps its color"
            lines = tuple(f"{place_of(site.caller, site.path)}: {choice}" for choice in ("recolor", "leave"))
            found_at[site] = Problem(site.path, site.line, site.text, why, site.functions, lines)
    problems, in_text = split_by_kind(found_at)
    for mention in sites.mentions:
        if mention.is_known and within(mention.path):
            taker_edits = out_of_thread(mention) or onto_loop(mention) or mention_taken(program, mention, "async")
            if isinstance(taker_edits, Problem):
                if decisions.about(mention.caller, mention.path, mention.line) is None:
                    lines = tuple(
                        f"{place_of(mention.caller, mention.path)}: {choice}" for choice in ("recolor", "leave")
                    )
                    problems.append(replace(taker_edits, settled_by=lines))
            else:
                edits += taker_edits
    return edits, problems, [*run_at, *in_text]


def _entered(site: Site) -> list[Edit] | Problem:
    """`async with x.f()` as `async with await x.f()`: what the function gave is given by its coroutine from now on."""
    if any(function.is_generator for function in site.functions):
        why = "it is entered by `async with` or `async for`, which a generator cannot be"
        return Problem(site.path, site.line, site.text, why, site.functions)
    return site_awaited(site)


def _rewritten(
    program: Program,
    site: Site,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    starts: Collection[Site],
) -> tuple[list[Edit], bool] | Problem:
    """The edits of one call, and whether it is run at a boundary."""
    if site.use.kind == "lambda":
        answer = lambda_taken(program, site, "async")
        if not isinstance(answer, Problem) or not boundary.is_auto:
            return answer if isinstance(answer, Problem) else (answer, False)
    around = site.tree.around(site.node)
    can_await = isinstance(around, ast.AsyncFunctionDef) or (isinstance(around, Definition) and site.caller in changed)
    if can_await or (isinstance(around, ast.Module) and site.tree.view.kind != "code"):  # as the top of a notebook
        awaited = _in_place(site)
        return awaited if isinstance(awaited, Problem) else (awaited, False)
    is_here = boundary.is_auto or boundary.holds(site.caller, site.tree.view.name)
    if site in starts or (is_here and (boundary.is_auto or isinstance(around, Definition | ast.Module))):
        return _run_in_place(site, boundary)
    return Problem(site.path, site.line, site.text, _why_not(site, around, stays))


def _in_place(site: Site) -> list[Edit] | Problem:
    """The edits of a call where async code stands."""
    if any(function.name in ASYNC_NAMES for function in site.functions):
        return site_entered(site) if site.use.kind == "managed" else _by_new_name(site)
    is_generator = any(function.is_generator for function in site.functions)
    return site_looped(site) if is_generator else site_awaited(site)


def _run_in_place(site: Site, boundary: Boundary) -> tuple[list[Edit], bool] | Problem:
    """The edits of a call where plain code runs the coroutine, loops over the generator or enters the object."""
    is_entering = any(function.name in ASYNC_NAMES for function in site.functions)
    runner = boundary.runner
    if is_entering and site.use.kind != "managed":
        why = "it is called by its name, which `async with` calls by another one"
        return Problem(site.path, site.line, site.text, why, site.functions)
    if is_entering or any(function.is_generator for function in site.functions):
        if runner != "bridge.run":
            why = "what is looped over or entered cannot be run to its end at a boundary; `--run-with bridge.run` can"
            return Problem(site.path, site.line, site.text, why, site.functions)
        is_manager = is_entering or all(function.decorated_with("contextmanager") for function in site.functions)
        runner = "bridge.enter" if is_manager else "bridge.iterate"
    edits = site_run(site, runner)
    return edits if isinstance(edits, Problem) else (edits, True)


def _why_not(site: Site, around: ast.AST, stays: Mapping[Function, str]) -> str:
    """Why nothing can wait where a call stands."""
    if isinstance(around, ast.Lambda | ast.ClassDef):
        return "a lambda or a class body cannot await"
    if isinstance(around, ast.Module):
        return "it is called while the module is imported; name the module with `--boundary` to run it there"
    name = around.name if isinstance(around, Definition) else "?"
    reason = stays.get(site.caller) if site.caller is not None else None
    if reason is not None:
        return f"`{name}` is plain and has to stay so: {reason}"
    return f"`{name}` is plain; let it follow with `--cascade`, or name it with `--boundary`"


def _by_new_name(site: Site) -> list[Edit] | Problem:
    """`super().__enter__()` as `await super().__aenter__()`."""
    callee = site.call.func
    edits = site_awaited(site)
    if isinstance(edits, Problem) or not isinstance(callee, ast.Attribute):
        return edits
    end = site.tree.end(callee)
    renamed = site.tree.view.edit(end - len(callee.attr), end, ASYNC_NAMES[callee.attr])
    return edits if renamed is None else [*edits, renamed]


def _starts(sites: Sites, within: Callable[[str], bool]) -> set[Site]:
    """The calls with which a program starts. Of several, each would get a loop of its own, so none is taken."""
    by_place: dict[str, list[Site]] = {}
    for site in not_awaited(sites, within):
        is_top = site.caller is None and site.tree.view.kind == "code" and site.use.kind != "lambda"
        if is_top and isinstance(site.tree.around(site.node), ast.Module) and is_start(site.tree, site.line):
            by_place.setdefault(site.path, []).append(site)
    return {
        sites[0]
        for sites in by_place.values()
        if len(sites) == 1 and not any(function.is_generator for function in sites[0].functions)
    }


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
    return tuple(f"{place_of(site.caller, site.path)}: {answer}" for answer in answers)
