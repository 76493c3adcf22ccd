"""Knows how to plan that everything becomes plain which is async without need, as far as that goes by rule."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from troth.analysis.program import Program
from troth.analysis.program.entities import Function
from troth.analysis.program.needless import needless
from troth.analysis.recolor.follow import Cascade
from troth.analysis.recolor.plan import Listed, Plan
from troth.analysis.recolor.to_sync import plan_sync
from troth.analysis.recolor.workspace import Workspace

__all__ = ["needless_functions", "plan_needless"]


def needless_functions(program: Program, within: Callable[[str], bool]) -> tuple[Function, ...]:
    """The functions that never wait and that nobody needs to be async; not those that a dispatcher awaits."""
    return tuple(one.function for one in needless(program) if not one.is_pulled and within(one.function.module.path))


def plan_needless(
    workspace: Workspace,
    target: str,
    functions: Sequence[Function],
    cascade: Cascade,
    within: Callable[[str], bool],
) -> Plan:
    """The plan for as many of `functions` as can change; one that somebody would have to decide about is left out."""
    left = list(functions)
    out: dict[Function, str] = {}
    while True:
        plan = plan_sync(workspace, target, left, cascade, within)
        reasons: dict[str, str] = {}
        for problem in plan.problems:
            reasons[problem.text.rpartition(".")[2]] = f"{problem.path}:{problem.line}: {problem.why}"
        for site in (one for one in plan.unknown if one.tree.view.kind in {"code", "notebook"}):
            reasons[site.name] = f"{site.path}:{site.line}: nobody can tell whose `{site.name}` is called there"
        for unable in plan.unable:
            reasons[unable.function.name] = unable.why
        spoiled = [one for one in left if one.name in reasons]
        if not spoiled:
            stays = [Listed(*one.place, one.qualname, why) for one, why in out.items()]
            return replace(plan, stays=tuple(sorted([*plan.stays, *stays])))
        out |= {one: reasons[one.name] for one in spoiled}
        left = [one for one in left if one not in out]
