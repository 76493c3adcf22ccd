"""Get from targets to a plan: read the project, find the functions, plan one direction or both."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from troth.analysis.crash import grouped
from troth.analysis.mutate.measure.coverage import read_coverage
from troth.analysis.project.project import Project
from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.decisions import NOTHING_DECIDED, Decisions
from troth.analysis.recolor.needless_async import needless_functions, plan_needless
from troth.analysis.recolor.plan import Color, Plan
from troth.analysis.recolor.project.prose import left_in_text
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.workspace import RecolorWorkspace, Subject, read_workspace
from troth.analysis.recolor.reach.boundary import AUTO, find_boundary
from troth.analysis.recolor.reach.callers import Cascade
from troth.analysis.recolor.reach.runner import usual_runner
from troth.analysis.recolor.reach.wrong_color import wrong_colors
from troth.analysis.recolor.rewrite.doubts import doubts_marked
from troth.analysis.recolor.rewrite.test_marks import Marking
from troth.analysis.recolor.surface import Surface, surface
from troth.analysis.recolor.target import Target, find_target
from troth.analysis.recolor.to_async import Properties, plan_async
from troth.analysis.recolor.to_sync import plan_sync
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function
from troth.errors import MisuseError

__all__ = ["Wish", "marking_of", "plan_recolor", "plan_surface"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user wants recolored, and how far. `scope` are folders and files; outside nothing is changed."""

    targets: tuple[str, ...]
    methods: tuple[str, ...] = ()
    cascade: Cascade = "none"
    boundary: tuple[str, ...] = ()
    runner: str | None = None  # None for the usual one of the project
    coverage: Path | None = None
    scope: tuple[str, ...] = ()
    decisions: Decisions = NOTHING_DECIDED
    properties: Properties = False  # may become methods
    mark: bool = False  # what nobody can decide gets a comment, and stops nothing
    needless: bool = False  # the targets are folders and files, and what is async there without need is meant

    def means(self, path: str) -> bool:
        """Whether a file lies in one of the targets, where these are folders and files."""
        return any(path == target or path.startswith(f"{target}/") or not target for target in self.targets)

    def covers(self, path: str) -> bool:
        """Whether a file may be changed."""
        return not self.scope or any(
            path == folder or path.startswith(f"{folder}/") or not folder for folder in self.scope
        )


def _named(wish: Wish) -> str:
    return ", ".join(target or "." for target in wish.targets)


def plan_recolor(project: Project, wish: Wish, to: Color, overlay: Mapping[str, bytes] | None = None) -> Plan:
    """What making the targets `to` comes to; `overlay` are texts that differ from the disk."""
    workspace, functions = _read(project, wish, overlay)
    if wish.needless:
        if to != "sync":
            raise MisuseError(
                f"`--needless` makes functions sync, so it cannot be combined with `--to {to}`.\n"
                "Nothing was changed.\nLeave one of them out."
            )
        needless = needless_functions(workspace.program, wish.means)
        return _told(plan_needless(workspace, _named(wish), needless, wish.cascade, wish.covers), workspace, wish)
    chosen = _chosen(functions, wish, to)
    if not chosen:
        raise MisuseError(
            f"Nothing in {', '.join(wish.targets)} has another color than {to}.\nNothing was changed.\n"
            "`troth recolor TARGET --plan` shows the colors it has."
        )
    return _plan(workspace, wish, chosen, to)


def plan_surface(project: Project, wish: Wish) -> Surface:
    """The colors of the targets, and what each direction would cost."""
    workspace, functions = _read(project, wish)
    return surface(
        tuple(function for function in functions if not _is_pythons(function)),
        _plan(workspace, wish, _chosen(functions, wish, "sync"), "sync"),
        _plan(workspace, wish, _chosen(functions, wish, "async"), "async"),
    )


def _read(
    project: Project, wish: Wish, overlay: Mapping[str, bytes] | None = None
) -> tuple[RecolorWorkspace, tuple[Function, ...]]:
    def about(program: Program) -> Subject:
        if wish.needless:
            return Subject(frozenset(function.name for function in needless_functions(program, wish.means)), {})
        targets = [find_target(program, target) for target in wish.targets]
        names = frozenset(function.name for target in targets for function in target.functions)
        return Subject(names, {name: module for target in targets for module, name in _tops(target)})

    workspace = read_workspace(project, about, within=wish.covers, overlay=overlay)
    if wish.needless:
        return workspace, ()
    functions = [function for text in wish.targets for function in find_target(workspace.program, text).functions]
    return workspace, tuple(dict.fromkeys(functions))


def _tops(target: Target) -> list[tuple[str, str]]:
    """The names that a snippet about the target may use without an import, each with its module."""
    if target.cls is not None:
        return [(target.cls.module.name, target.cls.name)]
    owners = [function.owner or function for function in target.functions]
    return [(owner.module.name, owner.name) for owner in owners]


def _chosen(functions: Sequence[Function], wish: Wish, to: Color) -> tuple[Function, ...]:
    methods = set(wish.methods)
    missing = methods - {function.name for function in functions}
    if missing:
        raise MisuseError(
            f"`--methods` names {', '.join(sorted(missing))}, which {', '.join(wish.targets)} does not have.\n"
            f"Nothing was changed.\nThere are {', '.join(sorted({function.name for function in functions}))}."
        )
    return tuple(
        function
        for function in functions
        if function.is_async != (to == "async")
        and (function.name in methods if methods else _is_of_surface(function, wish, to))
    )


def _is_of_surface(function: Function, wish: Wish, to: Color) -> bool:
    """Whether a method changes unless `--methods` says otherwise.

    What a class keeps to itself has to become plain for its surface to be plain, but need not wait because that waits.
    """
    is_named = any(
        target.rpartition(".")[2] == function.name or target.endswith(f":{function.name}") for target in wish.targets
    )
    if _is_pythons(function):
        return is_named and to == "async"
    return to == "sync" or is_named or function.owner is None or not function.name.startswith("_")


def _is_pythons(function: Function) -> bool:
    return function.name.startswith("__") and function.name.endswith("__")


def _plan(workspace: RecolorWorkspace, wish: Wish, functions: Sequence[Function], to: Color) -> Plan:
    target = _named(wish)
    within: Callable[[str], bool] = wish.covers
    if to == "sync":
        plan = plan_sync(workspace, target, functions, wish.cascade, within, decisions=wish.decisions)
    else:
        runner = wish.runner or usual_runner(workspace, auto=AUTO in wish.boundary)
        boundary = find_boundary(workspace.program, wish.boundary, runner)
        plan = plan_async(
            workspace,
            target,
            functions,
            wish.cascade,
            boundary,
            marking=marking_of(workspace),
            within=within,
            decisions=wish.decisions,
            properties=wish.properties,
        )
    return _told(doubts_marked(workspace, plan) if wish.mark else plan, workspace, wish)


def _told(plan: Plan, workspace: RecolorWorkspace, wish: Wish) -> Plan:
    """The plan with what is told beside it."""
    to, within = plan.to, wish.covers
    names = {definition.name for definition in plan.definitions}
    callers = dict.fromkeys(
        site.caller for site in plan.sites if site.caller is not None and site.tree.view.kind == "code"
    )
    texts = [*(left_in_text(workspace, names, to) if names and to == "sync" else ())]
    return replace(
        plan,
        texts=tuple(place for place in texts if within(place.path)),
        wrong_colors=tuple(sorted(set(wrong_colors(workspace.program, callers)))),
        untested=_untested(plan, wish, workspace.root),
        concerned=frozenset(_concerned(workspace, plan)),
        crashes=grouped([*workspace.crashes, *workspace.program.crashes]),
    )


def _concerned(workspace: RecolorWorkspace, plan: Plan) -> Iterator[str]:
    """The Python files in which the change may be felt: they say the name of something that changes."""
    names = {function.name for function in (*plan.definitions, *plan.followers)}
    if not names:
        return
    mentioned = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    for view in workspace.views.values():
        if view.kind in {"code", "notebook"} and mentioned.search(view.text):
            yield view.path


def _untested(plan: Plan, wish: Wish, root: Path) -> tuple[CallSite, ...] | None:
    if wish.coverage is None:
        return None
    coverage = read_coverage(wish.coverage, root)
    return tuple(
        site
        for site in plan.sites
        if site.tree.view.kind == "code"
        and not coverage.is_reached(site.path, site.line, site.node.end_lineno or site.line)
    )


def marking_of(workspace: RecolorWorkspace) -> Marking:
    """How the tests of the project say that a loop runs them; a plugin may take every async test by itself."""
    marks = Counter(
        mark
        for path, view in workspace.views.items()
        if is_test(path)
        for mark in re.findall(r"\bmark\.(asyncio|anyio|trio)\b", view.text)
    )
    usual = marks.most_common(1)[0][0] if marks else "asyncio"
    for name in ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"):
        try:
            text = (workspace.root / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if re.search(r"""\b(asyncio_mode|anyio_mode)\s*=\s*["']?auto|\btrio_mode\s*=\s*["']?true""", text):
            return Marking(usual, is_auto=True)
    return Marking(usual)
