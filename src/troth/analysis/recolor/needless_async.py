"""Plan that everything becomes plain which is async without need, as far as that goes by rule.

Handlers that are async only because a dispatcher awaits whatever it picks go too: the dispatcher is taught first to
await only what can be awaited.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.recolor.plan import Listed, Plan
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.callers import Cascade, is_test_file
from troth.analysis.recolor.to_sync import plan_sync
from troth.analysis.rules._fixes.maybe_await import both_colors
from troth.analysis.rules._syntax_position import standing
from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.dispatch import Dispatcher, dispatchers
from troth.analysis.semantics.queries.needless_async import handed_over, needless
from troth.analysis.semantics.symbols import Function

__all__ = ["needless_functions", "plan_needless"]


def needless_functions(program: Program, within: Callable[[str], bool]) -> tuple[Function, ...]:
    """The functions that never wait and that nobody needs to be async.

    Those are among them that a dispatcher awaits, or somebody whom they are handed to; but what a test hands over has
    the color of what it stands for.
    """
    handed = (one for one in handed_over(program) if not is_test_file(one.module.path))
    found = dict.fromkeys([*(one.function for one in needless(program)), *handed])
    return tuple(one for one in found if one.module.path.endswith((".py", ".pyi")) and within(one.module.path))


def plan_needless(
    workspace: Workspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    within: Callable[[str], bool],
) -> Plan:
    """The plan for as many of `functions` as can change; one that somebody would have to decide about is left out."""
    lost = _losing(workspace.program)
    functions = [one for one in functions if one not in lost]
    picked = _picked(workspace.program, functions)
    taught = {one: _taught(workspace.program, one, within) for found in picked.values() for one in found}
    out: dict[Function, str] = {}
    for function, by in picked.items():
        for one in (one for one in by if taught[one] is None):
            path, line = one.call.caller.module.path, one.call.at[0]
            out[function] = f"{path}:{line}: a dispatcher awaits it, and cannot be written to take both colors"
    left = [one for one in functions if one not in out]
    while True:
        plan = plan_sync(workspace, target, left, cascade, within, dispatched=picked)
        spoiled = _spoiled(plan, left)
        if not spoiled:
            break
        out |= spoiled
        left = [one for one in left if one not in out]
    needed = dict.fromkeys(one for function in left for one in picked.get(function, ()))
    edits = [edit for one in needed for edit in taught[one] or ()]
    stays = [Listed(*one.place, one.qualname, why) for one, why in out.items()]
    return replace(
        plan,
        edits=tuple(dict.fromkeys([*plan.edits, *edits])),
        stays=tuple(sorted([*plan.stays, *stays])),
        taught=tuple(Listed(one.call.caller.module.path, one.call.at[0], one.call.text, _NOW) for one in needed),
    )


_NOW = "awaits only what can be awaited"


def _losing(program: Program) -> set[Function]:
    """The functions that wait for nothing because an `await` is missing: to make them plain would hide that."""
    program.walk([path for path in program.paths if path.endswith((".py", ".pyi"))])
    return {one.site.function for one in program.incidents()}


def _picked(program: Program, functions: Sequence[Function]) -> dict[Function, list[Dispatcher]]:
    """The functions that dispatchers pick, each with all of these."""
    found: dict[Function, list[Dispatcher]] = {}
    for one in dispatchers(program):
        for function in one.handlers:
            if function in functions:
                found.setdefault(function, []).append(one)
    return found


def _taught(program: Program, dispatcher: Dispatcher, within: Callable[[str], bool]) -> tuple[Edit, ...] | None:
    path = dispatcher.call.caller.module.path
    here = standing(program, path, dispatcher.call.at) if within(path) and path.endswith(".py") else None
    return None if here is None else both_colors(here)


def _spoiled(plan: Plan, left: Sequence[Function]) -> dict[Function, str]:
    """Those of `left` that something stands in the way of, and what."""
    found: dict[Function, str] = {}
    by_name: dict[str, list[Function]] = {}
    for one in left:
        by_name.setdefault(one.name, []).append(one)
    for problem in plan.problems:
        why = f"{problem.path}:{problem.line}: {problem.why}"
        found |= dict.fromkeys(problem.about or by_name.get(problem.text.rpartition(".")[2], ()), why)
    for site in (one for one in plan.unknown if one.tree.view.kind in {"code", "notebook"}):
        why = f"{site.path}:{site.line}: nobody can tell whose `{site.name}` is called there"
        found |= dict.fromkeys(by_name.get(site.name, ()), why)
    for unable in plan.unable:
        found[unable.function] = unable.why
    reached = {one: why for one, why in found.items() if one in left}
    if found and not reached:  # an override of one of them stands in the way; its name tells which
        names = {one.name: why for one, why in found.items()}
        reached = {one: names[one.name] for one in left if one.name in names}
    return reached
