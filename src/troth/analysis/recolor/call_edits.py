"""Rewrite every call of functions that become async: awaited, or run where async ends."""

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from troth.analysis.findings import Edit
from troth.analysis.project.python_versions import oldest_python
from troth.analysis.recolor.decisions import Answer, Decisions, place_of
from troth.analysis.recolor.plan import Listed, split_by_kind
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.entries import ASYNC_NAMES
from troth.analysis.recolor.project.sites import CallSite, Sites
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.boundary import Boundary, is_start
from troth.analysis.recolor.reach.callback_takers import is_called_plain, lambda_taken, mention_taken
from troth.analysis.recolor.reach.loop_start import runner_in
from troth.analysis.recolor.rewrite.doubts import doubtful
from troth.analysis.recolor.rewrite.generators import site_entered, site_looped
from troth.analysis.recolor.rewrite.rewrite_async import (
    import_added,
    mention_run,
    onto_loop,
    out_of_thread,
    site_awaited,
    site_run,
)
from troth.analysis.recolor.rewrite.value_use import CONSUMES
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["calls_rewritten", "not_awaited"]

_HAS_ANEXT = 10  # the minor version of Python 3


def not_awaited(sites: Sites, within: Callable[[str], bool]) -> list[CallSite]:
    """The calls that nobody awaits yet."""
    return [site for site in sites.calls if site.use.kind not in CONSUMES and within(site.path)]


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """What is decided for the whole of a change before any call is rewritten."""

    program: Program
    changed: Collection[Function]
    stays: Mapping[Function, str]
    starts: Collection[CallSite]  # the calls with which programs start
    entered: Collection[ast.expr]  # what is entered by `async with` from now on
    has_anext: bool


def calls_rewritten(
    workspace: RecolorWorkspace,
    sites: Sites,
    changed: Collection[Function],
    boundary: Boundary,
    stays: dict[Function, str],
    within: Callable[[str], bool],
    decisions: Decisions,
) -> tuple[list[Edit], list[Obstacle], list[Listed], list[Listed]]:
    """The edits of all calls and mentions, what somebody has to decide first, where a loop is run, and what is told."""
    program = workspace.program
    edits: list[Edit] = []
    found_at: dict[CallSite, Obstacle] = {}
    run_in: dict[Tree, None] = {}
    run_at: list[Listed] = []
    change = _Change(
        program,
        changed,
        stays,
        _starts(sites, within),
        {site.node for site in sites.calls if _is_entered_async(site)},
        oldest_python(workspace.root) >= _HAS_ANEXT,
    )
    for site in (site for site in sites.calls if site.use.kind == "entered" and within(site.path)):
        entered = _entered(site)
        if isinstance(entered, Obstacle):
            found_at[site] = entered
        else:
            edits += entered
    for site in not_awaited(sites, within):
        answer = decisions.about(site.caller, site.path, site.line)
        if answer == "leave" and site.caller not in changed:
            continue
        rewritten = _rewritten(change, site, _with(boundary, site, answer))
        if isinstance(rewritten, Obstacle):
            found_at[site] = replace(rewritten, settled_by=_settled_by(site), about=rewritten.about or site.functions)
            continue
        edits += rewritten[0]
        if runner := rewritten[1]:
            if runner.partition(".")[0] == boundary.runner.partition(".")[0]:  # else the function has its own
                run_in[site.tree] = None
            reason = stays.get(site.caller) if site.caller is not None else None
            why = f"run here by `{runner}`" + ("" if reason is None else f": {reason}")
            run_at.append(Listed(site.path, site.line, site.text, why))
    for site in sites.mixed:
        if within(site.path) and site.use.kind not in CONSUMES:
            why = "its receiver may be of another class too, whose method keeps its color"
            lines = tuple(f"{place_of(site.caller, site.path)}: {choice}" for choice in ("recolor", "leave"))
            doubt = doubtful(site, site.functions, "async")
            found_at[site] = Obstacle(site.path, site.line, site.text, why, site.functions, lines, doubt)
    problems, in_text = split_by_kind(found_at)
    for mention in sites.mentions:
        if mention.is_known and within(mention.path):
            taker_edits = out_of_thread(mention) or onto_loop(mention) or mention_taken(program, mention, "async")
            if not isinstance(taker_edits, Obstacle):
                edits += taker_edits
                continue
            answer = decisions.about(mention.caller, mention.path, mention.line)
            run = mention_run(mention, boundary.runner)
            is_run = answer == "boundary" or (answer is None and boundary.is_auto and is_called_plain(program, mention))
            if is_run and run is not None:
                edits += run
                run_in[mention.tree] = None
                why = f"run by `{boundary.runner}` whenever it is called"
                run_at.append(Listed(mention.path, mention.line, ast.unparse(mention.node), why))
            elif answer is None or answer == "boundary":
                choices = ("recolor", "leave") if run is None else ("recolor", "boundary", "leave")
                lines = tuple(f"{place_of(mention.caller, mention.path)}: {choice}" for choice in choices)
                problems.append(replace(taker_edits, settled_by=lines))
    for tree in run_in:
        edits += import_added(tree, boundary.import_line, boundary.import_line.rpartition(" ")[2])
    return edits, problems, run_at, in_text


def _entered(site: CallSite) -> list[Edit] | Obstacle:
    """`async with x.f()` as `async with await x.f()`: what the function gave is given by its coroutine from now on."""
    if any(function.is_generator for function in site.functions):
        why = "it is entered by `async with` or `async for`, which a generator cannot be"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    return site_awaited(site)


def _rewritten(change: _Change, site: CallSite, boundary: Boundary) -> tuple[list[Edit], str] | Obstacle:
    """The edits of one call, and what runs it where async ends; empty where it is awaited."""
    if site.use.kind == "lambda":
        answer = lambda_taken(change.program, site, "async")
        if not isinstance(answer, Obstacle) or not (
            boundary.is_auto or boundary.holds(site.caller, site.tree.view.name)
        ):
            return answer if isinstance(answer, Obstacle) else (answer, "")
    around = site.tree.around(site.node)
    can_await = isinstance(around, ast.AsyncFunctionDef) or (
        isinstance(around, Definition) and site.caller in change.changed
    )
    if can_await or (isinstance(around, ast.Module) and site.tree.view.kind != "code"):  # as the top of a notebook
        awaited = _in_place(change, site)
        return awaited if isinstance(awaited, Obstacle) else (awaited, "")
    if (runner := runner_in(site.tree, site.node)) and not any(function.is_generator for function in site.functions):
        run = site_run(site, runner)
        return run if isinstance(run, Obstacle) else (run, runner)
    is_here = boundary.is_auto or boundary.holds(site.caller, site.tree.view.name)
    if site in change.starts or is_here:
        return _run_in_place(site, boundary)
    return Obstacle(site.path, site.line, site.text, _why_not(site, around, change.stays))


def _is_entered_async(site: CallSite) -> bool:
    """Whether what the site gives is entered by `async with`, where it is entered at all."""
    return any(function.name in ASYNC_NAMES or function.is_generator for function in site.functions)


def _in_place(change: _Change, site: CallSite) -> list[Edit] | Obstacle:
    """The edits of a call where async code stands."""
    if any(function.name in ASYNC_NAMES for function in site.functions):
        return site_entered(site, change.entered) if site.use.kind == "managed" else _by_new_name(site)
    is_generator = any(function.is_generator for function in site.functions)
    return site_looped(site, change.entered, has_anext=change.has_anext) if is_generator else site_awaited(site)


def _run_in_place(site: CallSite, boundary: Boundary) -> tuple[list[Edit], str] | Obstacle:
    """The edits of a call where plain code runs the coroutine, loops over the generator or enters the object."""
    is_entering = any(function.name in ASYNC_NAMES for function in site.functions)
    runner = boundary.runner
    if is_entering and site.use.kind != "managed":
        why = "it is called by its name, which `async with` calls by another one"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    if is_entering or any(function.is_generator for function in site.functions):
        if runner != "bridge.run":
            why = "what is looped over or entered cannot be run to its end at a boundary; `--run-with bridge.run` can"
            return Obstacle(site.path, site.line, site.text, why, site.functions)
        is_manager = is_entering or all(function.decorated_with("contextmanager") for function in site.functions)
        runner = "bridge.enter" if is_manager else "bridge.iterate"
    edits = site_run(site, runner)
    return edits if isinstance(edits, Obstacle) else (edits, runner)


def _why_not(site: CallSite, around: ast.AST, stays: Mapping[Function, str]) -> str:
    """Why nothing can wait where a call stands."""
    if isinstance(around, ast.Lambda | ast.ClassDef):
        return "a lambda or a class body cannot await"
    if isinstance(around, ast.Module):
        return "it is called while the module is imported; name the module with `--boundary` to run it there"
    name = around.name if isinstance(around, Definition) else "?"
    reason = stays.get(site.caller) if site.caller is not None else None
    if reason is not None:
        return f"`{name}` is sync and has to stay so: {reason}"
    return f"`{name}` is sync; make it follow with `--cascade`, or name it with `--boundary`"


def _by_new_name(site: CallSite) -> list[Edit] | Obstacle:
    """`super().__enter__()` as `await super().__aenter__()`."""
    callee = site.call.func
    edits = site_awaited(site)
    if isinstance(edits, Obstacle) or not isinstance(callee, ast.Attribute):
        return edits
    end = site.tree.end(callee)
    renamed = site.tree.view.edit(end - len(callee.attr), end, ASYNC_NAMES[callee.attr])
    return edits if renamed is None else [*edits, renamed]


def _starts(sites: Sites, within: Callable[[str], bool]) -> set[CallSite]:
    """The calls with which a program starts. Of several, each would get a loop of its own, so none is taken."""
    by_place: dict[str, list[CallSite]] = {}
    for site in not_awaited(sites, within):
        is_top = site.caller is None and site.tree.view.kind == "code" and site.use.kind != "lambda"
        if is_top and isinstance(site.tree.around(site.node), ast.Module) and is_start(site.tree, site.line):
            by_place.setdefault(site.path, []).append(site)
    return {
        sites[0]
        for sites in by_place.values()
        if len(sites) == 1 and not any(function.is_generator for function in sites[0].functions)
    }


def _with(boundary: Boundary, site: CallSite, answer: Answer | None) -> Boundary:
    if answer != "boundary":
        return boundary
    if site.caller is None:
        return replace(boundary, modules=boundary.modules | {site.tree.view.name})
    return replace(boundary, functions=boundary.functions | {site.caller})


def _settled_by(site: CallSite) -> tuple[str, ...]:
    around = site.tree.around(site.node)
    answers = ["boundary", "leave"] if isinstance(around, ast.Module) else ["recolor", "boundary", "leave"]
    if isinstance(around, ast.Lambda | ast.ClassDef):
        answers = ["boundary", "leave"]
    return tuple(f"{place_of(site.caller, site.path)}: {answer}" for answer in answers)
