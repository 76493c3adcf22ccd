"""Plan that everything becomes plain which is async without need, as far as that goes by rule.

Handlers that are async only because a dispatcher awaits whatever it picks go too: the dispatcher is taught first to
await only what can be awaited.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.plan import Listed, Plan
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.callers import Cascade
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
    handed = (function for function in handed_over(program) if not is_test(function.module.path))
    candidates = dict.fromkeys([*(answer.function for answer in needless(program)), *handed])
    return tuple(
        function
        for function in candidates
        if function.module.path.endswith((".py", ".pyi")) and within(function.module.path)
    )


def plan_needless(
    workspace: RecolorWorkspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    within: Callable[[str], bool],
) -> Plan:
    """The plan for as many of `functions` as can change; one that somebody would have to decide about is left out."""
    lost = _losing(workspace.program)
    functions = [function for function in functions if function not in lost]
    picked = _picked(workspace.program, functions)
    taught = {
        dispatcher: _taught(workspace.program, dispatcher, within)
        for dispatchers in picked.values()
        for dispatcher in dispatchers
    }
    out: dict[Function, str] = {}
    for function, by in picked.items():
        for dispatcher in (dispatcher for dispatcher in by if taught[dispatcher] is None):
            path, line = dispatcher.call.caller.module.path, dispatcher.call.at[0]
            out[function] = f"{path}:{line}: a dispatcher awaits it, and cannot be written to take both colors"
    changing = [function for function in functions if function not in out]
    while True:
        plan = plan_sync(workspace, target, changing, cascade, within, dispatched=picked)
        spoiled = _spoiled(plan, changing)
        if not spoiled:
            break
        out |= spoiled
        changing = [function for function in changing if function not in out]
    needed = dict.fromkeys(dispatcher for function in changing for dispatcher in picked.get(function, ()))
    edits = [edit for dispatcher in needed for edit in taught[dispatcher] or ()]
    stays = [Listed(*function.place, function.qualname, why) for function, why in out.items()]
    return replace(
        plan,
        edits=tuple(dict.fromkeys([*plan.edits, *edits])),
        stays=tuple(sorted([*plan.stays, *stays])),
        taught=tuple(
            Listed(dispatcher.call.caller.module.path, dispatcher.call.at[0], dispatcher.call.text, _NOW)
            for dispatcher in needed
        ),
    )


_NOW = "awaits only what can be awaited"


def _losing(program: Program) -> set[Function]:
    """The functions that wait for nothing because an `await` is missing: to make them plain would hide that."""
    program.walk([path for path in program.paths if path.endswith((".py", ".pyi"))])
    return {incident.site.function for incident in program.incidents()}


def _picked(program: Program, functions: Sequence[Function]) -> dict[Function, list[Dispatcher]]:
    """The functions that dispatchers pick, each with all of these."""
    by_handler: dict[Function, list[Dispatcher]] = {}
    for dispatcher in dispatchers(program):
        for function in dispatcher.handlers:
            if function in functions:
                by_handler.setdefault(function, []).append(dispatcher)
    return by_handler


def _taught(program: Program, dispatcher: Dispatcher, within: Callable[[str], bool]) -> tuple[Edit, ...] | None:
    path = dispatcher.call.caller.module.path
    position = standing(program, path, dispatcher.call.at) if within(path) and path.endswith(".py") else None
    return None if position is None else both_colors(position)


def _spoiled(plan: Plan, left: Sequence[Function]) -> dict[Function, str]:
    """Those of `left` that something stands in the way of, and what."""
    reasons: dict[Function, str] = {}
    by_name: dict[str, list[Function]] = {}
    for function in left:
        by_name.setdefault(function.name, []).append(function)
    for problem in plan.problems:
        why = f"{problem.path}:{problem.line}: {problem.why}"
        reasons |= dict.fromkeys(problem.about or by_name.get(problem.text.rpartition(".")[2], ()), why)
    for site in (site for site in plan.unknown if site.tree.view.kind in {"code", "notebook"}):
        why = f"{site.path}:{site.line}: it is unclear whose `{site.name}` is called there"
        reasons |= dict.fromkeys(by_name.get(site.name, ()), why)
    for unable in plan.unable:
        reasons[unable.function] = unable.why
    reached = {function: why for function, why in reasons.items() if function in left}
    if reasons and not reached:  # an override of one of them stands in the way; its name tells which
        names = {function.name: why for function, why in reasons.items()}
        reached = {function: names[function.name] for function in left if function.name in names}
    return reached
