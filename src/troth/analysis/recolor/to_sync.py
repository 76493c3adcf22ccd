"""Plan that functions become plain: their definitions, their calls, and callers that wait no more."""

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.findings import Edit
from troth.analysis.recolor.decisions import NOTHING_DECIDED, Decisions, place_of
from troth.analysis.recolor.plan import Listed, Plan, Waits, outside, split_by_kind
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite, Sites, find_sites
from troth.analysis.recolor.project.tree import Definition, Tree, Waiting, waiting_in
from troth.analysis.recolor.project.unread import in_unread_files
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.callback_takers import lambda_taken, mention_taken
from troth.analysis.recolor.reach.callers import Cascade, in_scope, kept_by
from troth.analysis.recolor.reach.color_requirements import required_by
from troth.analysis.recolor.reach.decided import decided
from troth.analysis.recolor.reach.family import family
from troth.analysis.recolor.reach.handed_around import handed_around
from troth.analysis.recolor.reach.protocols import perhaps_fulfilling
from troth.analysis.recolor.rewrite.mocks import mocks_recolored
from troth.analysis.recolor.rewrite.plain_generators import generator_made_plain, is_plain_able
from troth.analysis.recolor.rewrite.rewrite_sync import PassThrough, Rewritten, definition_made_plain, site_made_plain
from troth.analysis.recolor.rewrite.test_marks import marks_dropped
from troth.analysis.recolor.rewrite.unittest_base import isolation_dropped
from troth.analysis.recolor.rewrite.value_use import CONSUMES
from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.dispatch import Dispatcher
from troth.analysis.semantics.symbols import Function

__all__ = ["plan_sync"]


# The functions that dispatchers pick, each with all of these; they take both colors once the plan is carried out.
Dispatched = Mapping[Function, Sequence[Dispatcher]]


class _Round:
    """What changing a set of functions does: edits by site, what cannot be changed, and the waiting that goes.

    `passing` are sync functions that return what the calls give; their own calls change with them.
    """

    def __init__(self, workspace: RecolorWorkspace, found: Sites, dispatched: Dispatched) -> None:
        sites = self.sites = _without(found, dispatched)
        ours = {site.call for site in sites.calls}
        self.edits: dict[CallSite, list[Edit]] = {}
        self.problems: dict[CallSite, Obstacle] = {}
        self.gone: set[ast.AST] = set()
        self.passing: dict[Function, CallSite] = {}
        self.handed: list[Edit] = []
        self.handed_problems: list[Obstacle] = []
        program = workspace.program
        for site in sites.calls:
            if site.use.kind == "lambda":
                plain: Rewritten = _with_nothing_gone(lambda_taken(program, site, "sync"))
            else:
                plain = site_made_plain(site, ours)
            if isinstance(plain, PassThrough):
                plain = self._passed_on(program, site, plain.function)
            if isinstance(plain, Obstacle):
                self.problems[site] = plain
            else:
                self.edits[site] = plain[0]
                self.gone.update(plain[1])
        self.unknown = tuple(site for site in sites.unknown if site.use.kind in CONSUMES)
        for site in sites.mixed:
            if site.use.kind in CONSUMES:
                why = "its receiver may be of another class too, whose method keeps its color"
                self.problems[site] = Obstacle(site.path, site.line, site.text, why, site.functions)
        for mention in sites.mentions:
            if mention.is_known and not (mention.taker is None and set(mention.functions) <= set(dispatched)):
                answer = mention_taken(program, mention, "sync")
                if isinstance(answer, Obstacle):
                    self.handed_problems.append(answer)
                else:
                    self.handed += answer

    def _passed_on(
        self, program: Program, site: CallSite, function: Function
    ) -> tuple[list[Edit], list[ast.AST]] | Obstacle:
        if function.name.startswith("__") or len(family(program, [function])) > 1:
            why = f"its coroutine is returned by `{function.qualname}`, which is one of several methods of that name"
            return Obstacle(site.path, site.line, site.text, f"{why}; their callers await it", site.functions)
        self.passing[function] = site
        return [], []


def _without(sites: Sites, dispatched: Dispatched) -> Sites:
    """The sites but for the calls of dispatchers, which are written anew as a whole."""
    dispatching = {
        (dispatcher.call.caller.module.path, dispatcher.call.at)
        for dispatchers in dispatched.values()
        for dispatcher in dispatchers
    }
    if not dispatching:
        return sites
    calls, unknown, mixed = (
        tuple(site for site in group if (site.tree.view.name, at(site.node)) not in dispatching)
        for group in (sites.calls, sites.unknown, sites.mixed)
    )
    return replace(sites, calls=calls, unknown=unknown, mixed=mixed)


def _with_nothing_gone(found: list[Edit] | Obstacle) -> Rewritten:
    return found if isinstance(found, Obstacle) else (found, [])


def plan_sync(
    workspace: RecolorWorkspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    within: Callable[[str], bool] = lambda _path: True,
    dispatched: Dispatched = MappingProxyType({}),
    decisions: Decisions = NOTHING_DECIDED,
) -> Plan:
    """The plan for `functions`, and for those that `cascade` lets follow.

    Whoever picks one of `dispatched` out of a table is taught elsewhere to take both colors.
    """
    program = workspace.program
    definitions = tuple(function for function in family(program, functions) if _has_color(workspace, function))
    first = set(definitions)
    changed: set[Function] = set(definitions)
    stays: dict[Function, str] = {}
    current = _settled(workspace, changed, dispatched, decisions)
    unable = tuple(_unable(workspace, definitions, current.gone))
    while cascade != "none":
        new = _ready(workspace, current, changed, stays, cascade, decisions)
        if not new:
            break
        wider = changed | set(new)
        trial = _settled(workspace, wider, dispatched, decisions)
        bad = _spoiled(trial, set(new))
        stays |= bad
        good = set(new) - bad.keys()
        if good:
            if bad:
                changed |= good
                current = _settled(workspace, changed, dispatched, decisions)
            else:
                changed |= wider
                current = trial
    edits: list[Edit] = [*(edit for group in current.edits.values() for edit in group), *current.handed]
    by_tree: dict[Tree, list[Definition]] = {}
    for function in changed:
        where = workspace.definition(function)
        if where is not None:
            edits += definition_made_plain(*where)
            if function.is_generator and function.is_async:
                edits += generator_made_plain(*where)
            by_tree.setdefault(where[0], []).append(where[1])
    for tree, nodes in by_tree.items():
        edits += [*marks_dropped(tree, nodes), *isolation_dropped(tree, nodes)]
    mocked, odd_mocks = mocks_recolored(workspace, definitions, "sync")
    in_code, in_text = split_by_kind(
        {
            site: replace(problem, settled_by=(f"{place_of(site.caller, site.path)}: leave",))
            for site, problem in current.problems.items()
            if decisions.about(site.caller, site.path, site.line) != "leave"
        }
    )
    problems = [*in_code, *current.handed_problems, *in_unread_files(workspace, changed, decisions)]
    problems += [
        replace(problem, settled_by=problem.settled_by[-1:])
        for problem in perhaps_fulfilling(program, definitions, changed, decisions, "sync")
    ]
    return Plan(
        target,
        "sync",
        definitions,
        tuple(sorted(changed - first, key=lambda one: one.place)),
        tuple(site for site in current.sites.calls if within(site.path)),
        tuple(edit for edit in dict.fromkeys([*edits, *mocked]) if within(edit.path)),
        unable,
        tuple(sorted(problem for problem in problems if within(problem.path))),
        tuple(site for site in current.unknown if within(site.path)),
        current.sites.mentions,
        tuple(sorted(Listed(*function.place, function.qualname, why) for function, why in stays.items())),
        notes=(*odd_mocks, *in_text, *outside(current.sites.calls, within)),
    )


def _settled(
    workspace: RecolorWorkspace, changed: set[Function], dispatched: Dispatched, decisions: Decisions
) -> _Round:
    """What changing the functions does; those that only pass on what these give are added to `changed`."""
    while True:
        current = _Round(workspace, decided(find_sites(workspace, changed), changed, decisions), dispatched)
        if changed >= current.passing.keys():
            return current
        changed.update(current.passing)


def _has_color(workspace: RecolorWorkspace, function: Function) -> bool:
    """Whether there is something to change: an `async def`, or an abstract method that is annotated as awaitable."""
    where = workspace.definition(function)
    return where is not None and (function.is_async or bool(definition_made_plain(*where)))


def _unable(workspace: RecolorWorkspace, functions: Sequence[Function], gone: Collection[ast.AST]) -> list[Waits]:
    unable = []
    for function in functions:
        where = workspace.definition(function) if function.is_async and function.is_generator else None
        if where is not None and not is_plain_able(where[1]):
            unable.append(Waits(function, "is an async generator, and a decorator asks for one", function.place[1]))
            continue
        waits = _left(workspace, function, gone)
        if waits:
            node = waits[0]
            line = node.iter.lineno if isinstance(node, ast.comprehension) else node.lineno
            shown = f"`{ast.unparse(node).splitlines()[0]}`" if not isinstance(node, ast.comprehension) else "in a loop"
            unable.append(Waits(function, f"truly waits: {shown}", line))
        elif function.name.startswith("__") and function.name.endswith("__"):
            unable.append(Waits(function, "is called by Python itself, which awaits it", function.place[1]))
        elif why := required_by(workspace.program, function, functions):
            unable.append(Waits(function, why, function.place[1]))
    return unable


def _left(workspace: RecolorWorkspace, function: Function, gone: Collection[ast.AST]) -> list[Waiting]:
    """Where `function` still waits."""
    where = workspace.definition(function)
    if where is None:
        return []
    waits = [waiting for waiting in waiting_in(where[1]) if waiting not in gone]
    return sorted(waits, key=lambda one: one.iter.lineno if isinstance(one, ast.comprehension) else one.lineno)


def _ready(
    workspace: RecolorWorkspace,
    current: _Round,
    changed: Collection[Function],
    stays: dict[Function, str],
    cascade: Cascade,
    decisions: Decisions,
) -> list[Function]:
    """The functions that wait no more and are free to follow."""
    callers = {site.caller for site in current.edits if site.caller is not None and site.tree.view.kind == "code"}
    free = []
    for function in callers:
        if function in changed or function in stays or not function.is_async or not in_scope(function, cascade):
            continue
        if not _left(workspace, function, current.gone):
            free.append(function)
    program = workspace.program
    handed = handed_around(workspace, free, "sync", lambda _path: True, decisions)
    ready = []
    for function in free:
        why = (
            _kept_generator(workspace, function, handed)
            if function.is_generator
            else kept_by(program, function, handed)
        )
        kin = [relative for relative in family(program, [function]) if relative is not function]
        if why is None and any(relative.is_async and _left(workspace, relative, current.gone) for relative in kin):
            why = "another method of that name in its family still waits"
        if why is not None:
            stays[function] = why
        else:
            ready += [function, *(relative for relative in kin if _has_color(workspace, relative))]
    return ready


def _kept_generator(workspace: RecolorWorkspace, function: Function, handed: Mapping[Function, str]) -> str | None:
    """What keeps an async generator as it is; None if nothing does."""
    where = workspace.definition(function)
    if where is None or function.name.startswith("__") or not is_plain_able(where[1]):
        return "it is a generator, and other code depends on its color"
    why = required_by(workspace.program, function, ()) if not function.facts.decorators else None
    return handed.get(function) or (None if why is None else f"it {why}")


def _spoiled(trial: _Round, new: Collection[Function]) -> dict[Function, str]:
    """Those of `new` that are called somewhere in a way that cannot follow."""
    bad: dict[Function, str] = {}
    for site, problem in trial.problems.items():
        for function in site.functions:
            if function in new:
                bad[function] = f"{problem.path}:{problem.line}: {problem.why}"
    for problem in trial.handed_problems:
        for function in problem.about:
            if function in new:
                bad[function] = f"{problem.path}:{problem.line}: {problem.why}"
    by_name: dict[str, list[Function]] = {}
    for function in new:
        by_name.setdefault(function.name, []).append(function)
    for site in trial.unknown:
        for function in by_name.get(site.name, ()):
            bad[function] = f"{site.path}:{site.line}: it is unclear whose `{site.name}` is called there"
    return bad
