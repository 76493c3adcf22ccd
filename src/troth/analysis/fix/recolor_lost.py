"""Repair what sync functions lose: make them async with their callers, and await the calls.

Where Python itself calls the function, nothing can await it; there the call is run to its end, if the user says how.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from troth.analysis.edits.write import Change
from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.findings import Fix
from troth.analysis.fix.proposal import proposals
from troth.analysis.recolor.check_plan import awaiting_lost, not_in, rewritten
from troth.analysis.recolor.decisions import TOP, Answer, Decisions
from troth.analysis.recolor.project.workspace import RecolorWorkspace, Subject, read_workspace
from troth.analysis.recolor.reach.boundary import Boundary, is_start
from troth.analysis.recolor.reach.runner import usual_runner
from troth.analysis.recolor.recolor import marking_of
from troth.analysis.recolor.rewrite.rewrite_async import import_added
from troth.analysis.recolor.to_async import plan_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from troth.analysis.findings import Edit, Finding
    from troth.analysis.fix.proposal import Proposal
    from troth.analysis.project.project import Project
    from troth.analysis.recolor.plan import Plan
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["RecolorProposal", "Recolored", "recolor_lost", "ways"]

_ROUNDS = 8  # boundaries that open one after the other while callers follow
_SLOTS = ("property", "cached_property", "setter", "deleter")


@dataclass(frozen=True, slots=True)
class RecolorProposal:
    """A sync function that loses calls, and the change of color that would repair it.

    `obstacle` says what stands in the way, empty where nothing does. `is_slot` says that Python itself calls it.
    """

    proposal: Proposal
    plan: Plan | None
    obstacle: str = ""
    starts: tuple[str, ...] = ()  # where a loop is started

    @property
    def command(self) -> str:
        """The command that makes the change; empty where only `troth fix --recolor` can."""
        return "" if self.starts else self.proposal.command()

    @property
    def is_slot(self) -> bool:
        """Whether Python itself calls the function, so that nothing can await it."""
        function = self.proposal.function
        return (function.name.startswith("__") and function.name.endswith("__")) or function.decorated_with(*_SLOTS)

    @property
    def other_way(self) -> str:
        """What else can be done where Python itself calls the function."""
        function = self.proposal.function
        if function.decorated_with(*_SLOTS):
            return f"make it a method (`troth recolor {self.proposal.target} --to async --properties`)"
        if function.name in {"__init__", "__new__", "__post_init__"}:
            return "make the object in an async function, which awaits the call"
        return "move the call to an async function that uses the object"


@dataclass(frozen=True, slots=True)
class Recolored:
    """What was repaired so: the changes of files, the calls that run now, and what could not be repaired, with why."""

    changes: tuple[Change, ...]
    awaited: tuple[Finding, ...]
    left: tuple[RecolorProposal, ...]


def ways(
    project: Project,
    program: Program,
    findings: Iterable[Finding],
    overlay: Mapping[str, bytes],
    runner: str | None = None,
) -> list[RecolorProposal]:
    """For each sync function that loses calls, the change of color that would go through, or what is in its way."""
    proposed = proposals(program, findings)
    if not proposed:
        return []
    names = frozenset(proposal.function.name for proposal in proposed)
    workspace = read_workspace(project, partial(_subject, names), overlay=overlay)
    return [_way(workspace, proposal, runner) for proposal in proposed]


def recolor_lost(
    project: Project,
    program: Program,
    findings: Sequence[Finding],
    look: Callable[[Mapping[str, bytes]], Sequence[Finding]],
    overlay: Mapping[str, bytes],
    runner: str | None = None,
) -> Recolored:
    """Make one change after the other, each on the texts that those before it have left.

    `look` finds what is to be found with the given files in place of those on disk; a change after which something new
    would be found is not made.
    """
    texts = dict(overlay)
    before = look(texts)
    awaited: list[Finding] = []
    refused: list[RecolorProposal] = []
    for proposal in proposals(program, findings):
        names = frozenset({proposal.function.name})
        workspace = read_workspace(project, partial(_subject, names), overlay=texts)
        way = _way(workspace, proposal, runner)
        changes: tuple[Change, ...] = ()
        lost: tuple[Finding, ...] = ()
        if way.plan is not None and not way.obstacle:
            changes = rewritten(project.root, way.plan.edits, texts)
        elif way.is_slot and runner is not None:
            changes, lost = _run_in_place(workspace, project, proposal, before, texts, runner)
        if not changes:
            refused.append(way)
            continue
        after = look({**texts, **{change.path: change.after for change in changes}})
        if way.plan is not None and not way.obstacle:
            changes, lost = awaiting_lost(way.plan, changes, after)
            after = look({**texts, **{change.path: change.after for change in changes}}) if lost else after
        if fresh := not_in(before, after):
            finding = fresh[0]
            refused.append(
                RecolorProposal(
                    proposal, None, f"with it, {finding.code} would be found at {finding.span.path}:{finding.span.line}"
                )
            )
            continue
        texts |= {change.path: change.after for change in changes}
        before = after
        awaited += lost
    read = {path: overlay.get(path) or (project.root / path).read_bytes() for path in texts}
    written = tuple(Change(path, read[path], text) for path, text in sorted(texts.items()) if text != read[path])
    return Recolored(written, tuple(awaited), tuple(refused))


def _subject(names: frozenset[str], _program: Program) -> Subject:
    return Subject(names, {})


def _way(workspace: RecolorWorkspace, proposal: Proposal, runner: str | None) -> RecolorProposal:
    """The plan for the function with all its callers; a loop is started where the program itself starts."""
    function = _same(workspace, proposal.function)
    if function is None:
        return RecolorProposal(proposal, None, "it cannot be found")
    answers: dict[str, Answer] = {}
    plan = _plan(workspace, proposal, function, answers, runner)
    for _ in range(_ROUNDS):
        more = {place: answer for place, answer in _starts(workspace, plan, runner) if place not in answers}
        if plan.unable or not more:
            break
        answers |= more
        plan = _plan(workspace, proposal, function, answers, runner)
    unknown = [site for site in plan.unknown if site.tree.view.kind in {"code", "notebook"}]
    if plan.unable:
        return RecolorProposal(proposal, plan, f"`{plan.unable[0].function.name}` {plan.unable[0].why}")
    if plan.problems:
        first = plan.problems[0]
        return RecolorProposal(proposal, plan, f"{first.path}:{first.line}: {first.why}")
    if unknown:
        return RecolorProposal(
            proposal, plan, f"{unknown[0].path}:{unknown[0].line}: it is unclear whose `{unknown[0].name}` it is"
        )
    return RecolorProposal(proposal, plan, "", tuple(sorted(answers)))


def _plan(
    workspace: RecolorWorkspace,
    proposal: Proposal,
    function: Function,
    answers: Mapping[str, Answer],
    runner: str | None,
) -> Plan:
    return plan_async(
        workspace,
        proposal.target,
        [function],
        "all",
        Boundary(runner=runner or usual_runner(workspace)),
        marking=marking_of(workspace),
        decisions=Decisions(answers),
    )


def _starts(workspace: RecolorWorkspace, plan: Plan, runner: str | None) -> Iterable[tuple[str, Answer]]:
    """Where a loop may be started: under `if __name__ == "__main__"`; with a runner, wherever a caller stays plain."""
    for problem in plan.problems:
        for line in problem.settled_by:
            place, _, answer = line.rpartition(": ")
            if answer != "boundary":
                continue
            tree = workspace.tree(problem.path) if place.endswith(TOP) else None
            if runner is not None or (tree is not None and is_start(tree, problem.line)):
                yield place, "boundary"


def _run_in_place(
    workspace: RecolorWorkspace,
    project: Project,
    proposal: Proposal,
    findings: Sequence[Finding],
    texts: Mapping[str, bytes],
    runner: str,
) -> tuple[tuple[Change, ...], tuple[Finding, ...]]:
    """`save()` as `bridge.run(save())`, in a function that cannot be async."""
    path, qualname = proposal.function.module.path, proposal.function.qualname
    lost = [
        finding
        for finding in findings
        if (finding.span.path, finding.symbol) == (path, qualname) and finding.code.startswith("TR1")
    ]
    tree = workspace.tree(path)
    if tree is None:
        return (), ()
    spans = {workspace.program.span(path, at(node)): node for node in tree.calls.values()}
    edits: list[Edit | None] = []
    repaired: list[Finding] = []
    for finding in lost:
        node = spans.get(finding.span)
        if node is not None:
            edits += [tree.view.edit(tree.start(node), tree.start(node), f"{runner}(")]
            edits += [tree.view.edit(tree.end(node), tree.end(node), ")")]
            repaired.append(finding._replace(fix=Fix(f"run it with `{runner}`", "likely", ())))
    if not repaired:
        return (), ()
    line = Boundary(runner=runner).import_line
    edits += import_added(tree, line, line.rpartition(" ")[2])
    return rewritten(project.root, [edit for edit in edits if edit is not None], texts), tuple(repaired)


def _same(workspace: RecolorWorkspace, function: Function) -> Function | None:
    """The function in the program of the workspace, which may have other texts."""
    path = function.module.path
    if path not in workspace.program.paths:
        return None
    module = workspace.program.module(path)
    numbers = range(1, len(module.facts.functions))
    return next(
        (module.function(number) for number in numbers if module.facts.functions[number].qualname == function.qualname),
        None,
    )
