"""Plan that functions become async: definitions, an `await` at each call, and callers that follow.

The plan begins with the functions that were named and ends when nothing follows any more.

1. The family: a method turns together with its overrides and bases, and with its partners, such as the other half of
   a context manager. Functions that cannot turn (`__len__`, for example) are named as unable.
2. The callers: each call has to be awaited, so a sync caller turns as well, with its own family, as far as the
   cascade allows. A caller that is handed around as a callback, that the boundary holds, or that people have decided
   to leave stays plain, and the plan says why. This repeats until no other caller follows.
3. The calls: each site gets its `await`, or, in a caller that stays plain, a call of the runner (`asyncio.run`,
   `bridge.run`) if the boundary allows that. A call that cannot be rewritten is an obstacle, and a namesake whose
   receiver is unknown is a question to people.
4. The definitions: `async def`, with what tests, fixtures, generators and properties need besides.

If every sync caller may run a coroutine, a follower is worth nothing that brings obstacles of its own. So the plan
is made, the followers with obstacles are told to stay plain, and it is made again, until no new one is told. The set
only grows, so this ends.

Nothing is written here: a `Plan` has the edits, and everything that stands against them. What people have decided
(`Decisions`) counts for more than any reason that is found.
"""

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from troth.analysis.findings import Edit
from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.call_edits import calls_rewritten, not_awaited
from troth.analysis.recolor.decisions import NOTHING_DECIDED, Decisions
from troth.analysis.recolor.plan import Listed, Plan, outside
from troth.analysis.recolor.project.property_reads import is_property
from troth.analysis.recolor.project.sites import CallSite, Sites, find_sites
from troth.analysis.recolor.project.unread import in_unread_files
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.boundary import Boundary
from troth.analysis.recolor.reach.callers import Cascade, in_scope
from troth.analysis.recolor.reach.context_managers import with_partners
from troth.analysis.recolor.reach.decided import decided
from troth.analysis.recolor.reach.family import family
from troth.analysis.recolor.reach.handed_around import handed_around
from troth.analysis.recolor.reach.loop_start import runs_awaited
from troth.analysis.recolor.reach.pass_through import hands_on, passing_on, returns_awaited
from troth.analysis.recolor.reach.protocols import perhaps_fulfilling
from troth.analysis.recolor.reach.unable import awaited_already, kept_plain, split_unable, unable_among
from troth.analysis.recolor.rewrite.generators import generator_made_async
from troth.analysis.recolor.rewrite.mocks import mocks_recolored
from troth.analysis.recolor.rewrite.rewrite_async import definition_made_async, property_made_method
from troth.analysis.recolor.rewrite.test_marks import ASYNCIO, Marking, fixture_marked, marked
from troth.analysis.recolor.rewrite.unittest_base import is_unittest, isolated
from troth.analysis.recolor.rewrite.value_use import CONSUMES
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["Properties", "plan_async"]

Properties = bool | Literal["targets"]  # which of them may become methods


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """What the user allows, and what is decided already."""

    cascade: Cascade
    boundary: Boundary
    marking: Marking
    within: Callable[[str], bool]
    decisions: Decisions
    properties: Properties


def plan_async(
    workspace: RecolorWorkspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    boundary: Boundary,
    *,
    marking: Marking = ASYNCIO,
    within: Callable[[str], bool] = lambda _path: True,
    decisions: Decisions = NOTHING_DECIDED,
    properties: Properties = False,
) -> Plan:
    """The plan for `functions`, and for the sync callers that `cascade` lets follow up to `boundary`.

    What people have decided counts for more than any reason that is found here. Where every sync caller may run the
    coroutine, one that would bring an obstacle of its own with it stays plain instead. With `properties`, a property
    becomes a method; with "targets" only one that is among `functions` does.
    """
    terms = _Terms(cascade, boundary, marking, within, decisions, properties)
    plain: dict[Function, str] = {}
    while True:
        plan = _planned(workspace, target, functions, terms, plain)
        more = _bringing_obstacles(workspace.program, plan) if boundary.is_auto else {}
        if not more.keys() - plain.keys():
            return plan
        plain |= more


def _bringing_obstacles(program: Program, plan: Plan) -> dict[Function, str]:
    """The callers that cannot all be awaited, or not in every place, with why; their kin stays plain with them."""
    callers: dict[Function, str] = {}
    followers = set(plan.followers)
    for problem in plan.problems:
        for function in followers.intersection(problem.about):
            callers.setdefault(function, f"{problem.path}:{problem.line}: {problem.why}")
    for site in plan.unknown:
        for function in (follower for follower in followers if follower.name == site.name):
            callers.setdefault(function, f"{site.path}:{site.line} may call it, but this is uncertain")
    for function, why in list(callers.items()):
        callers |= {
            relative: why
            for relative in family(program, [function])
            if relative in followers and relative not in callers
        }
    return callers


def _planned(
    workspace: RecolorWorkspace, target: str, functions: Sequence[Function], terms: _Terms, kept: Mapping[Function, str]
) -> Plan:
    program, decisions, within = workspace.program, terms.decisions, terms.within
    definitions = tuple(
        function
        for function in with_partners(program, family(program, functions))
        if not function.is_async
        and _is_written(workspace, function)
        and (function in functions or decisions.about(function, function.module.path) != "leave")
    )
    unable = unable_among(workspace, definitions, decisions, properties=bool(terms.properties))
    calls = _sites(workspace, definitions, decisions)
    promising = awaited_already(program, definitions, calls)
    unable += (waits for waits in promising if not _is_settled(workspace, waits.function, calls, decisions))
    unable, in_text = split_unable(workspace, unable)
    changed, stays = _followed(workspace, definitions, terms, kept)
    sites = _sites(workspace, changed, decisions)
    mocked, odd_mocks = mocks_recolored(workspace, definitions, "async")
    edits, problems, runs, notes = calls_rewritten(workspace, sites, changed, terms.boundary, stays, within, decisions)
    problems += in_unread_files(workspace, changed, decisions)
    problems += perhaps_fulfilling(program, definitions, changed, decisions)
    promised = {waits.function for waits in promising}  # by decision only: else they are unable
    passing = passing_on(workspace, changed) | promised
    for function in changed:
        edits += _definition_edits(workspace, function, terms, is_passing=function in passing)
    return Plan(
        target,
        "async",
        definitions,
        tuple(sorted(changed.difference(definitions), key=lambda one: one.place)),
        tuple(site for site in sites.calls if within(site.path)),
        tuple(edit for edit in dict.fromkeys([*edits, *mocked]) if within(edit.path)),
        tuple(unable),
        tuple(sorted(problems)),
        tuple(site for site in sites.unknown if _is_open(site, terms)),
        sites.mentions,
        tuple(sorted(Listed(*function.place, function.qualname, why) for function, why in stays.items())),
        runs=tuple(runs),
        notes=(*odd_mocks, *notes, *in_text, *_by_name(sites, within), *outside(sites.calls, within)),
    )


def _is_settled(workspace: RecolorWorkspace, function: Function, calls: Sites, decisions: Decisions) -> bool:
    """Whether a function that gives something to be awaited may await it instead."""
    if decisions.about(function, function.module.path) == "recolor":
        return True
    uses = [site.use.kind for site in calls.calls if function in site.functions]
    is_open = any(site.name == function.name for site in (*calls.unknown, *calls.mixed))
    return not is_open and hands_on(workspace, function, uses)


def _sites(workspace: RecolorWorkspace, functions: Collection[Function], decisions: Decisions) -> Sites:
    """The calls of `functions` that change; those that gave a coroutine before are called as they were."""
    passing = passing_on(workspace, functions)
    subjects = [function for function in functions if function not in passing]
    return decided(find_sites(workspace, subjects), subjects, decisions)


def _followed(
    workspace: RecolorWorkspace, definitions: Sequence[Function], terms: _Terms, kept: Mapping[Function, str]
) -> tuple[set[Function], dict[Function, str]]:
    """All that changes, `definitions` and the callers that follow, and which callers stay plain and why."""
    changed = set(definitions)
    stays: dict[Function, str] = dict(kept)
    while True:
        sites = _sites(workspace, changed, terms.decisions)
        waiting = {
            site.caller
            for site in not_awaited(sites, terms.within)
            if site.caller is not None
            and site.caller not in changed
            and site.caller not in stays
            and not site.caller.is_async
            and not terms.boundary.holds(site.caller)
            and not isinstance(site.tree.around(site.node), ast.Lambda)  # which cannot await, whoever it stands in
            and _follows(site.caller, terms.cascade, terms.decisions)
        }
        if not waiting:
            return changed, stays
        handed = handed_around(workspace, waiting, "async", terms.within, terms.decisions)
        promising = awaited_already(
            workspace.program, sorted(waiting, key=_place), _sites(workspace, waiting, terms.decisions)
        )
        handed |= {promise.function: f"it {promise.why}" for promise in promising if promise.function not in handed}
        for function in waiting:
            kin = [
                relative
                for relative in with_partners(workspace.program, family(workspace.program, [function]))
                if not relative.is_async and _is_written(workspace, relative)
            ]
            why = _why_plain(workspace, function, kin, handed, terms, kept, changed)
            if why is None:
                changed |= {function, *kin}
            else:
                stays[function] = why


def _place(function: Function) -> tuple[str, int]:
    return function.place


def _why_plain(
    workspace: RecolorWorkspace,
    function: Function,
    kin: list[Function],
    handed: Mapping[Function, str],
    terms: _Terms,
    kept: Mapping[Function, str],
    changed: Collection[Function],
) -> str | None:
    """Why a caller stays plain; None if it follows with all of its kin."""
    if terms.decisions.about(function, function.module.path) != "recolor":
        for relative in (function, *kin):
            # Where every plain place may run a coroutine, a class is entered as before.
            why = kept_plain(
                workspace,
                relative,
                handed,
                kin,
                changed=changed,
                properties=terms.properties is True,
                entering=not terms.boundary.is_auto,
            )
            if why is not None:
                return why
    return next((kept[relative] for relative in kin if relative in kept), None)


def _definition_edits(
    workspace: RecolorWorkspace, function: Function, terms: _Terms, *, is_passing: bool
) -> list[Edit]:
    """The edits of a definition that becomes async, with what its tests or its decorators need."""
    where = workspace.definition(function)
    if where is None:
        return []
    tree, node = where
    edits: list[Edit] = []
    if is_unittest(workspace.program, function):
        base = isolated(workspace, function)
        edits += base if isinstance(base, list) else []
    elif is_test(tree.view.path) and node.name.startswith("test"):
        edits += marked(tree, node, terms.marking)
    else:
        edits += fixture_marked(tree, node, terms.marking)
    if function.is_generator:
        edits += generator_made_async(tree, node)
    if is_passing:
        edits += returns_awaited(tree, node)
    edits += runs_awaited(tree, node)
    if is_property(function):
        edits += property_made_method(tree, node)
    return [*edits, *definition_made_async(tree, node)]  # after the mark, which may go to the same place


def _is_open(site: CallSite, terms: _Terms) -> bool:
    """Whether somebody has to say if a call of a namesake is meant."""
    return (
        site.use.kind not in CONSUMES - {"entered"}
        and terms.within(site.path)
        and site.tree.view.kind in {"code", "notebook"}
        and terms.decisions.about(site.caller, site.path, site.line) != "leave"
    )


def _by_name(sites: Sites, within: Callable[[str], bool]) -> list[Listed]:
    """The calls that are meant by their name alone: a reader may know better."""
    why = "meant by its name: its receiver is unknown, and nothing else in the project has a method of that name"
    return [Listed(site.path, site.line, site.text, why) for site in sites.calls if site.by_name and within(site.path)]


def _follows(caller: Function, cascade: Cascade, decisions: Decisions) -> bool:
    """Whether a caller is to become async as well: as somebody has decided, else as the cascade says."""
    answer = decisions.about(caller, caller.module.path)
    return answer == "recolor" if answer is not None else in_scope(caller, cascade)


def _is_written(workspace: RecolorWorkspace, function: Function) -> bool:
    return workspace.definition(function) is not None
