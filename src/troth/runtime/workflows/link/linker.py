"""Join a workflow with the Python it calls.

What would not work is refused: no such function, arguments that do not fit, a color nobody can call. Everything is
looked at before anything runs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troth.runtime.sagas.checked_callable import CheckedCallable, WrongColorError, judge
from troth.runtime.tools.tool import Tool
from troth.runtime.workflows.document.problems import Problems, did_you_mean, nearest
from troth.runtime.workflows.execute.agent_calls import answering, code_from
from troth.runtime.workflows.kinds import kind_of
from troth.runtime.workflows.link.fingerprint import fingerprint
from troth.runtime.workflows.link.function_lookup import NotFound, find_part
from troth.runtime.workflows.spec import CallTarget, StepSpec, TargetKind, WorkflowSpec

if TYPE_CHECKING:
    from troth.runtime.conversations import Conversations

__all__ = ["Callee", "LinkedWorkflow", "Registry", "link"]


@dataclass(frozen=True, slots=True)
class Registry:
    """What a runtime was given: functions, tools and agents by name."""

    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    tools: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    agents: Mapping[str, object] = field(default_factory=dict)
    conversations: "Callable[[], Conversations] | None" = None
    """Where agents talk."""

    def parts(self, kind: TargetKind) -> Mapping[str, object]:
        """What was given of one kind."""
        return {"function": self.functions, "tool": self.tools, "agent": self.agents}[kind]

    def with_more(self, parts: Mapping[str, Mapping[str, Any]]) -> "Registry":
        """The same with more functions, tools and agents, by kind; those win over what has the same name here."""
        return Registry(
            {**self.functions, **parts["function"]},
            {**self.tools, **parts["tool"]},
            {**self.agents, **parts["agent"]},
            self.conversations,
        )


@dataclass(frozen=True, slots=True)
class Callee:
    """Something a step calls, with its color, decided here once."""

    target: CallTarget
    action: CheckedCallable
    code: str | None
    """The fingerprint of the user's own code in it."""
    is_agent: bool = False


@dataclass(frozen=True, slots=True)
class LinkedWorkflow:
    """A workflow that can run: all it calls was found and fits."""

    spec: WorkflowSpec
    callees: Mapping[tuple[str, str, str], Callee]
    source: str = ""
    """The file it was read from; empty for one built in Python."""

    def callee(self, target: CallTarget) -> Callee:
        """What `target` names."""
        return self.callees[_key(target)]

    def code(self, target: CallTarget) -> str | None:
        """The fingerprint of what `target` names, as it is now."""
        callee = self.callees.get(_key(target))
        return callee.code if callee is not None else None


def _key(target: CallTarget) -> tuple[str, str, str]:
    """Two workflows in two folders may each have a `steps.py`."""
    return target.kind, target.name, target.where


def link(spec: WorkflowSpec, registry: Registry, folder: Path, problems: Problems) -> LinkedWorkflow:
    """Find everything that `spec` calls; problems are noted, not raised."""
    callees: dict[tuple[str, str, str], Callee] = {}
    for step in _steps(spec):
        for target, inputs in kind_of(step).calls(step.body):
            callee = _callee(target, registry, folder, callees, problems)
            if callee is not None and step.is_whole:
                _check_arguments(callee, set(inputs), target, f"step {step.id!r}", problems)
        if step.undo is not None:
            callee = _callee(step.undo.target, registry, folder, callees, problems)
            if callee is not None and step.is_whole:
                _check_undo(callee, step, problems)
    return LinkedWorkflow(spec, callees)


def _steps(spec: WorkflowSpec) -> Iterator[StepSpec]:
    for step in spec.all_steps():
        yield step
        inner = kind_of(step).inner(step.body)
        if inner is not None:
            yield from _steps(inner)


def _callee(
    target: CallTarget,
    registry: Registry,
    folder: Path,
    callees: dict[tuple[str, str, str], Callee],
    problems: Problems,
) -> Callee | None:
    name = _key(target)
    if name not in callees:
        try:
            callees[name] = _find(target, registry, folder)
        except (NotFound, WrongColorError) as refused:
            problems.add(target.mark, refused.what, refused.advice)
            return None
    return callees[name]


def _find(target: CallTarget, registry: Registry, folder: Path) -> Callee:
    part = find_part(target.kind, target.name, registry.parts(target.kind), folder / target.where)
    if target.kind == "agent":
        call = answering(part, target.name, registry.conversations)
        return Callee(target, judge(call, f"`{target.name}`"), fingerprint(code_from(part)), is_agent=True)
    call = part.function if isinstance(part, Tool) else part
    return Callee(target, judge(call, f"`{target.name}`"), fingerprint(call))


def _check_arguments(callee: Callee, arguments: set[str], target: CallTarget, who: str, problems: Problems) -> None:
    meant: set[str | None] = set()
    for name in callee.action.surplus(arguments):
        meant.add(nearest(name, callee.action.takes or ()))
        advice = did_you_mean(name, callee.action.takes or (), kind="parameter")
        problems.add(target.mark, f"{who} gives `{target.name}` the argument {name!r}, which it does not take", advice)
    for name in set(callee.action.missing(arguments)) - meant:
        problems.add(target.mark, f"{who} does not give `{target.name}` the argument {name!r}, which it needs")


def _check_undo(callee: Callee, step: StepSpec, problems: Problems) -> None:
    assert step.undo is not None
    who = f"the undo of step {step.id!r}"
    if step.undo.inputs is not None:
        _check_arguments(callee, set(step.undo.inputs), callee.target, who, problems)
        return
    of_step = {name for _, inputs in kind_of(step).calls(step.body) for name in inputs} | {"result"}
    for name in callee.action.missing(of_step):
        message = f"{who} needs {name!r}, which is not an input of the step"
        problems.add(callee.target.mark, message, f"Write `undo: {{function: …, inputs: {{{name}: …}}}}`.")
