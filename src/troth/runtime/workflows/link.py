"""Knows how to join a workflow with the Python it calls, and refuses what would not work: no such function, arguments
that do not fit, a color nobody can call. Everything is looked at before anything runs.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from troth.bridge import color_of
from troth.color import Color
from troth.runtime.workflows.agents import turn_of
from troth.runtime.workflows.functions import NotFound, find_function
from troth.runtime.workflows.kinds import kind_of
from troth.runtime.workflows.problems import Problems, did_you_mean
from troth.runtime.workflows.sources import Source
from troth.runtime.workflows.spec import Step, Target, WorkflowSpec

__all__ = ["Callee", "LinkedWorkflow", "Registry", "accepted", "link"]


@dataclass(frozen=True, slots=True)
class Registry:
    """What a runtime was given: functions, tools and agents by name."""

    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    tools: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    agents: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Callee:
    """Something a step calls, with its color, decided here once."""

    target: Target
    call: Callable[..., object]
    color: Color
    takes: frozenset[str] | None
    """The names of its parameters; None where it takes any, or cannot say."""
    is_turn: bool = False
    """Whether it is an agent's method, which is given a `Turn`."""


@dataclass(frozen=True, slots=True)
class LinkedWorkflow:
    """A workflow that can run: all it calls was found and fits."""

    spec: WorkflowSpec
    callees: Mapping[tuple[str, str], Callee]

    def callee(self, target: Target) -> Callee:
        """What `target` names."""
        return self.callees[target.kind, target.name]


def link(spec: WorkflowSpec, registry: Registry, folder: Path, problems: Problems) -> LinkedWorkflow:
    """Find everything that `spec` calls; problems are noted, not raised."""
    callees: dict[tuple[str, str], Callee] = {}
    for step in _steps(spec):
        for target, inputs in kind_of(step).calls(step.body):
            callee = _callee(target, registry, folder, callees, problems)
            if callee is not None:
                _check_arguments(callee, set(inputs), target, f"step {step.id!r}", problems)
        if step.undo is not None:
            callee = _callee(step.undo.target, registry, folder, callees, problems)
            if callee is not None:
                _check_undo(callee, step, problems)
    return LinkedWorkflow(spec, callees)


def _steps(spec: WorkflowSpec) -> Iterator[Step]:
    for step in spec.all_steps():
        yield step
        inner = kind_of(step).inner(step.body)
        if inner is not None:
            yield from _steps(inner)


def _callee(
    target: Target,
    registry: Registry,
    folder: Path,
    known: dict[tuple[str, str], Callee],
    problems: Problems,
) -> Callee | None:
    name = (target.kind, target.name)
    if name not in known:
        try:
            known[name] = _find(target, registry, folder)
        except NotFound as missing:
            problems.add(target.mark, missing.what, missing.advice)
            return None
    return known[name]


def _find(target: Target, registry: Registry, folder: Path) -> Callee:
    if target.kind == "function":
        call = find_function(target.name, registry.functions, folder)
    elif target.kind == "tool":
        if target.name not in registry.tools:
            advice = did_you_mean(target.name, registry.tools, kind="tool")
            raise NotFound(f"this runtime has no tool {target.name!r}", advice)
        call = registry.tools[target.name]
    else:
        if target.name not in registry.agents:
            advice = did_you_mean(target.name, registry.agents, kind="agent")
            raise NotFound(f"this runtime has no agent {target.name!r}", advice)
        agent = registry.agents[target.name]
        call = turn_of(agent, target.name)
        if call is not agent:
            return Callee(target, call, _color(call, target), None, is_turn=True)
    return Callee(target, call, _color(call, target), _parameters(call, target))


def _color(call: Callable[..., object], target: Target) -> Color:
    """The color of what is called; what nobody can simply call and wait for is refused."""
    raw = inspect.unwrap(getattr(call, "func", call)) if not inspect.ismethod(call) else call.__func__
    if inspect.isgeneratorfunction(raw) or inspect.isasyncgenfunction(raw):
        what = f"`{target.name}` is a generator: calling it does none of its work"
        raise NotFound(what, "Return a list, or drain the generator in a function of its own.")
    color = color_of(call)
    if color is Color.UNKNOWN:
        what = f"it cannot be told whether `{target.name}` is sync or async"
        raise NotFound(what, "Wrap it in a plain `def` or an `async def`.")
    return color


def _parameters(call: Callable[..., object], target: Target) -> frozenset[str] | None:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (ValueError, TypeError):  # some functions written in C do not say
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    needed = [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY and one.default is one.empty]
    if needed:
        what = f"`{target.name}` takes `{needed[0]}` by position only, and steps give their inputs by name"
        raise NotFound(what, "Remove the `/` from its signature, or wrap it.")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(one.name for one in parameters if one.kind in by_name)


def _required(call: Callable[..., object]) -> set[str]:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        parameters = inspect.signature(call).parameters.values()
    except (ValueError, TypeError):
        return set()
    return {one.name for one in parameters if one.kind in by_name and one.default is one.empty}


def _check_arguments(callee: Callee, given: set[str], target: Target, who: str, problems: Problems) -> None:
    if callee.is_turn:
        return
    for name in sorted(given):
        if callee.takes is not None and name not in callee.takes:
            advice = did_you_mean(name, callee.takes, kind="parameter")
            problems.add(target.mark, f"{who} gives `{target.name}` the argument {name!r}, which it does not take", advice)
    for name in sorted(_required(callee.call) - given):
        problems.add(target.mark, f"{who} does not give `{target.name}` the argument {name!r}, which it needs")


def _check_undo(callee: Callee, step: Step, problems: Problems) -> None:
    assert step.undo is not None
    who = f"the undo of step {step.id!r}"
    if step.undo.inputs is not None:
        _check_arguments(callee, set(step.undo.inputs), callee.target, who, problems)
        return
    of_step = {name for _, inputs in kind_of(step).calls(step.body) for name in inputs} | {"result"}
    for name in sorted(_required(callee.call) - of_step):
        what = f"{who} needs {name!r}, which the step itself is not given"
        problems.add(callee.target.mark, what, f"Write `undo: {{function: …, inputs: {{{name}: …}}}}`.")


def accepted(callee: Callee, arguments: Mapping[str, Source] | Mapping[str, object]) -> dict[str, object]:
    """Those of `arguments` that the callee has parameters for; what an undo without inputs of its own is given."""
    return {name: value for name, value in arguments.items() if callee.takes is None or name in callee.takes}
