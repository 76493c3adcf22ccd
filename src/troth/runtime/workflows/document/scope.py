"""What each step of a workflow can see, and checks every path against it before anything runs.

A step sees the workflow's inputs, the steps before it in its own block, and what the steps around that block see. What
lies inside another block is seen through that block's output only: on a way not taken it never ran.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from troth.runtime.workflows.document.contracts import Contract
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.paths import Path
from troth.runtime.workflows.document.problems import Problems, did_you_mean, nearest
from troth.runtime.workflows.document.sources import FromPath
from troth.runtime.workflows.kinds import blocks_of, kind_of, paths_in
from troth.runtime.workflows.spec import Block, StepSpec, WorkflowSpec

__all__ = ["RUN_FIELDS", "check_paths"]

RUN_FIELDS = Contract(type="object", fields={"id": Contract(type="string"), "workflow": Contract(type="string")})
_ROOTS = ("inputs", "steps", "run")
_PATHS = "A path begins with `inputs.`, `steps.` or `run.`; a literal string is written `{value: …}`."


@dataclass(frozen=True, slots=True)
class _Scope:
    """What can be seen from one place."""

    inputs: Mapping[str, Contract]
    steps: Mapping[str, StepSpec]
    names: tuple[str, ...] = ()

    def with_steps(self, steps: Mapping[str, StepSpec]) -> "_Scope":
        """What can be seen where `steps` can be seen too; those put into them later included."""
        return replace(self, steps=ChainMap(steps, self.steps))  # type: ignore[arg-type]  # only read through


@dataclass(slots=True)
class _Check:
    spec: WorkflowSpec
    problems: Problems
    broken: set[str]
    holders: dict[str, str]
    """For every step: the id of the step it lies in, empty at the top."""
    order: dict[str, int]

    def block(self, block: Block, scope: _Scope, where: str) -> None:
        visible: dict[str, StepSpec] = {}
        inner = replace(scope, names=(*scope.names, *block.names)).with_steps(visible)
        self._check_names(block, scope)
        if block.ordered:
            for step in block.steps:
                self._refuse_after(step)
                self.step(step, inner)
                visible[step.id] = step
        else:
            self.members(block.steps, inner, where)
            visible.update((step.id, step) for step in block.steps)
        for condition in block.then:
            self.paths(condition.paths(), inner, None)

    def _check_names(self, block: Block, scope: _Scope) -> None:
        for name in block.names:
            if name in _ROOTS or (name in scope.names and name not in ("round", "index")):
                mark = block.steps[0].mark if block.steps else self.spec.mark
                self.problems.add(mark, f"`{name}` is already a name here; give the item another name")

    def _refuse_after(self, step: StepSpec) -> None:
        if step.after:
            advice = "Steps of an ordered block always run one after the other."
            self.problems.add(step.mark, f"`after` of {step.id!r} is valid only in a parallel block", advice)

    def members(self, steps: Sequence[StepSpec], scope: _Scope, where: str) -> None:
        by_id = {step.id: step for step in steps}
        for step in steps:
            for name in step.after:
                if name not in by_id and name not in self.broken:
                    advice = did_you_mean(name, [member for member in by_id if member != step.id], kind="member")
                    self.problems.add(step.mark, f"{step.id!r} comes after {name!r}, which is not in {where}", advice)
        cycle = find_cycle({step.id: [name for name in step.after if name in by_id] for step in steps})
        if cycle:
            self.problems.add(by_id[cycle[0]].mark, f"a cycle: {' → '.join(cycle)}; none of these steps could start")
            return
        for step in steps:
            before = {name: by_id[name] for name in _ancestors(step.id, by_id)}
            self.step(step, scope.with_steps(before), siblings=by_id)

    def step(self, step: StepSpec, scope: _Scope, siblings: Mapping[str, StepSpec] | None = None) -> None:
        kind = kind_of(step)
        self.paths(kind.reads(step.body), scope, step, siblings)
        self.list_of(step, scope)
        if step.undo is not None and step.undo.inputs is not None:
            undoing = replace(scope.with_steps({step.id: step}), names=(*scope.names, "result"))
            self.paths(paths_in(step.undo.inputs), undoing, None)
        inner = kind.inner(step.body)
        if inner is not None:
            self.inner_inputs(step, inner)
        for block in blocks_of(step):
            self.block(block, scope, f"{step.id!r}")

    def list_of(self, step: StepSpec, scope: _Scope) -> None:
        """What an `each` goes through is a list, as far as contracts tell."""
        source = getattr(step.body, "each", None)
        if not isinstance(source, FromPath) or len(source.path.parts) == 0:
            return
        name, *inner_parts = source.path.parts
        contract: Contract | str | None = None
        if source.path.root == "inputs":
            contract = scope.inputs.get(str(name))
        elif source.path.root == "steps" and str(name) in scope.steps:
            contract = scope.steps[str(name)].output
        for part in inner_parts:
            contract = contract.below(part) if isinstance(contract, Contract) else None
        if isinstance(contract, Contract) and contract.type not in ("list", "any"):
            self.problems.add(source.mark, f"`each` needs a list, but `{source.path}` is of type {contract.type}")

    def inner_inputs(self, step: StepSpec, inner: WorkflowSpec) -> None:
        passed: Mapping[str, object] = getattr(step.body, "inputs", {})
        for name in passed:
            if name not in inner.inputs:
                advice = did_you_mean(name, inner.inputs, kind="input")
                self.problems.add(step.mark, f"the workflow {inner.name!r} has no input {name!r}", advice)
        for name, contract in inner.inputs.items():
            if contract.required and name not in passed:
                self.problems.add(
                    step.mark, f"{step.id!r} gives the workflow {inner.name!r} no {name!r}, which it needs"
                )

    def paths(
        self,
        paths: Iterator[tuple[Path, SourceMark]],
        scope: _Scope,
        reader: StepSpec | None,
        siblings: Mapping[str, StepSpec] | None = None,
    ) -> None:
        for path, mark in paths:
            complaint = self._complaint(path, scope, reader, siblings or {})
            if complaint is not None:
                self.problems.add(mark, *complaint)

    def _complaint(
        self, path: Path, scope: _Scope, reader: StepSpec | None, siblings: Mapping[str, StepSpec]
    ) -> tuple[str, str] | None:
        roots = (*_ROOTS, *scope.names)
        if path.root not in roots:
            near = nearest(path.root, roots)
            advice = f"Did you mean `{replace(path, root=near)}`?" if near else _PATHS
            return f"there is no `{path}`", advice
        if path.root == "run":
            return _as_complaint(path, RUN_FIELDS.follow(path, path.parts))
        if path.root not in ("inputs", "steps"):
            return None
        if not path.parts:
            return f"`{path}` is not a value; add a name, as in `{path}.name`", ""
        name = path.parts[0]
        if path.root == "inputs":
            contract = scope.inputs.get(str(name))
            if contract is None:
                return f"the workflow has no input {name!r}", did_you_mean(str(name), scope.inputs, kind="input")
            return _as_complaint(path, contract.follow(path, path.parts[1:]))
        step = scope.steps.get(str(name))
        if step is not None:
            return _as_complaint(path, (step.output or Contract()).follow(path, path.parts[1:]))
        return self._unseen(str(name), scope, reader, siblings)

    def _unseen(
        self, name: str, scope: _Scope, reader: StepSpec | None, siblings: Mapping[str, StepSpec]
    ) -> tuple[str, str] | None:
        if name in self.broken or "?" in self.broken:
            return None  # that step has a problem of its own
        if reader is not None and name == reader.id:
            return f"a cycle: the step {name!r} reads its own output", ""
        if reader is not None and name in siblings:
            return (
                f"{reader.id!r} reads {name!r}, which runs at the same time",
                f"Write `after: [{name}]` on {reader.id!r}.",
            )
        if name not in self.order:
            return f"there is no step {name!r}", did_you_mean(name, scope.steps, kind="earlier step")
        holder = self.holders[name]
        if reader is not None and self.order[name] > self.order[reader.id] and not self._is_inside(reader.id, name):
            return f"the step {name!r} runs after this one", "Move it up, or read an earlier step."
        if reader is not None and self._is_inside(reader.id, name):
            return f"a cycle: the step {name!r} contains the one that reads it", ""
        advice = f"Read `steps.{holder}`, the output of the block." if holder else ""
        return f"the step {name!r} is inside {holder!r}, where it may not have run", advice

    def _is_inside(self, inner: str, outer: str) -> bool:
        while inner:
            inner = self.holders.get(inner, "")
            if inner == outer:
                return True
        return False


def _as_complaint(path: Path, reason: str | None) -> tuple[str, str] | None:
    return None if reason is None else (f"`{path}` does not exist", reason)


def check_paths(spec: WorkflowSpec, problems: Problems, broken: set[str]) -> None:
    """Note every path of `spec` that leads nowhere, every id used twice, and every cycle."""
    check = _Check(spec, problems, broken, {}, {})
    _index(spec.steps, "", check)
    top = _Scope(spec.inputs, {})
    check.block(Block("workflow", spec.steps), top, "the workflow")
    if spec.output is not None:
        check.paths(paths_in(spec.output), top.with_steps({step.id: step for step in spec.steps}), None)


def _index(steps: Sequence[StepSpec], holder: str, check: _Check) -> None:
    for step in steps:
        if step.id in check.order:
            first = next(earlier for earlier in check.spec.all_steps() if earlier.id == step.id)
            message = f"the id {step.id!r} is used twice; the first is on line {first.mark.line}"
            check.problems.add(step.mark, message, "Ids are unique in the whole workflow, including its blocks.")
        check.order.setdefault(step.id, len(check.order))
        check.holders.setdefault(step.id, holder)
        for block in blocks_of(step):
            _index(block.steps, step.id, check)


def _ancestors(name: str, members: Mapping[str, StepSpec]) -> list[str]:
    """Everything that `name` comes after, directly or not."""
    ancestors: list[str] = []
    waiting = list(members[name].after)
    while waiting:
        ancestor = waiting.pop()
        if ancestor in members and ancestor not in ancestors:
            ancestors.append(ancestor)
            waiting.extend(members[ancestor].after)
    return ancestors


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """One cycle among these edges, its first name again at the end; None where there is none."""
    finished: set[str] = set()
    for start in edges:
        trail: list[str] = []
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            name, at = stack.pop()
            del trail[len(stack) :]
            if at == 0:
                if name in trail:
                    return [*trail[trail.index(name) :], name]
                if name in finished:
                    continue
            trail.append(name)
            if at < len(edges[name]):
                stack.append((name, at + 1))
                stack.append((edges[name][at], 0))
            else:
                finished.add(name)
                trail.pop()
    return None
