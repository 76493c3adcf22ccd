"""Knows how an agent takes one turn as a step of a workflow, whichever color it has.

An agent is an object with `step(turn)` or `async astep(turn)`, or both; of both, the one defined in the more derived
class is called, so a subclass that overrides only `step` has its `step` called. A plain function is an agent too.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from troth.bridge import color_of
from troth.color import Color
from troth.runtime.workflows.functions import NotFound

__all__ = ["Turn", "turn_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent is asked in a step: the step's inputs, by name."""

    inputs: Mapping[str, object]

    def __getitem__(self, name: str) -> object:
        return self.inputs[name]


def turn_of(agent: object, name: str) -> Callable[..., object]:
    """The method of `agent` that takes a turn; a function itself. Raises `NotFound` for what is not an agent."""
    if inspect.isroutine(agent):
        return agent
    methods = {method: getattr(agent, method) for method in ("step", "astep") if callable(getattr(agent, method, None))}
    if not methods:
        if callable(agent) and not isinstance(agent, type):
            return agent
        raise NotFound(
            f"the agent {name!r} has neither `step` nor `astep`", "Give it one of them, or register a function."
        )
    colors = {method: color_of(found) for method, found in methods.items()}
    if colors.get("step") is Color.ASYNC:
        raise NotFound(f"the agent {name!r} has an `async def step`", "Call it `astep`, or make `step` a plain `def`.")
    if "astep" in colors and colors["astep"] is Color.SYNC:
        raise NotFound(f"the agent {name!r} has a plain `def astep`", "Call it `step`, or make `astep` an `async def`.")
    chosen = min(methods, key=lambda method: (_depth(agent, method), method != "astep"))
    turn: Callable[..., object] = methods[chosen]
    return turn


def _depth(agent: object, method: str) -> int:
    """How far up the classes of `agent` the method is defined; 0 on the instance itself."""
    if method in getattr(agent, "__dict__", {}):
        return 0
    for depth, cls in enumerate(type(agent).__mro__, 1):
        if method in vars(cls):
            return depth
    return len(type(agent).__mro__) + 1
