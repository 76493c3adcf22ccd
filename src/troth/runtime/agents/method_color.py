"""Find which of an agent's two methods is its own, decided before anything runs.

`type(agent).astep is not Base.astep` is the test others use. It never calls the `step` of a subclass of an agent that
has both, takes a wrapped copy of the shim for native async, and ignores what is set on the instance. Here the place
where each method was written is looked up, and the more derived of the two wins.
"""

import inspect
from dataclasses import dataclass
from types import MethodType

from troth.bridge import Override, color_of, overrides
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.agents.agent import Agent

__all__ = ["StepMethod", "decide"]

_NOWHERE = 1_000_000  # farther up than any class
_INSTANCE = -1  # nearer than the class itself
_DEEPEST = 20  # proxies of proxies


@dataclass(frozen=True, slots=True)
class StepMethod:
    """How an agent is driven: through `step` (SYNC), through `astep` (ASYNC), or as the caller is (EITHER)."""

    color: Color
    because: str


def decide(agent: object) -> StepMethod:
    """Say which method drives `agent`, or refuse it with `MisuseError`. Nothing of the agent is run."""
    name = type(agent).__qualname__ if not isinstance(agent, type) else agent.__qualname__
    if isinstance(agent, type):
        raise MisuseError(f"`{name}` is a class, not an agent.\nNothing was started.\nMake one: `{name}(…)`.")
    step, astep = _own(agent, "step"), _own(agent, "astep")
    if step == astep == _NOWHERE:
        raise MisuseError(
            f"`{name}` has neither a `step` nor an `astep` of its own.\n"
            "It was not accepted, because it could do nothing.\n"
            "Write `def step(self, conversation)` for sync code or `async def astep(self, conversation)` for async "
            "code."
        )
    if step != _NOWHERE:
        _check(agent, "step", Color.SYNC, name)
    if astep != _NOWHERE:
        _check(agent, "astep", Color.ASYNC, name)
    if step < astep:
        return StepMethod(Color.SYNC, _reason("step", "astep", step, astep, agent))
    if astep < step:
        return StepMethod(Color.ASYNC, _reason("astep", "step", astep, step, agent))
    return StepMethod(Color.EITHER, f"`step` and `astep` are both written in {_place(agent, step)}")


def _own(agent: object, name: str) -> int:
    """How near to the agent its own version of a method was written; `_NOWHERE` where it has none."""
    verdict = overrides(agent, name, Agent)
    if verdict is Override.INHERITED:
        return _NOWHERE
    level = _level(agent, name, 0)
    if verdict is Override.UNKNOWN and level is not None:
        raise MisuseError(
            f"`{type(agent).__qualname__}.{name}` is a {type(_static(agent, name)).__name__}; the effect of calling it "
            "cannot be determined.\nThe agent was not accepted, because its step might never run.\n"
            f"Write `{name}` as a method, or wrap the agent in a class that does."
        )
    return _NOWHERE if level is None else level


def _static(agent: object, name: str) -> object:
    return inspect.getattr_static(agent, name, None)


def _level(agent: object, name: str, depth: int) -> int | None:
    if name in getattr(agent, "__dict__", {}):
        return _INSTANCE
    for level, cls in enumerate(type(agent).__mro__):
        if cls is Agent:
            return None
        if name in vars(cls) and not _is_copy_of_base(vars(cls)[name], name):
            return level
    method = getattr(agent, name, None)  # a proxy hands out the method of another object
    if isinstance(method, MethodType) and method.__self__ is not agent and depth < _DEEPEST:
        return _level(method.__self__, name, depth + 1)
    return None if method is None else 0


def _is_copy_of_base(attribute: object, name: str) -> bool:
    """A wrapped copy of the base's method, or the method itself under its own name: not a version of its own."""
    probe = type("_Probe", (Agent,), {name: attribute})
    return overrides(probe, name, Agent) is Override.INHERITED


def _check(agent: object, name: str, color: Color, cls: str) -> None:
    method = getattr(agent, name)
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise MisuseError(
            f"`{cls}.{name}` is a generator function: calling it does none of its work.\n"
            "The agent was not accepted, so nothing has happened.\n"
            "Do the work without `yield`; send parts of an answer with `conversation.token(…)`."
        )
    _check_parameters(method, f"{cls}.{name}")
    actual = color_of(method)
    if actual is color:
        return
    if name == "astep" and actual is Color.SYNC and _wraps_async(method):
        return  # a sync decorator around an `async def`: what it returns is awaited all the same
    right_name, signature = ("astep", "def step") if name == "step" else ("step", "async def astep")
    if color is Color.SYNC and actual is Color.ASYNC:
        problem = f"`{cls}.step` is `async def`. It would make a coroutine at each step, and nothing would run"
    elif color is Color.ASYNC and actual is Color.SYNC:
        problem = f"`{cls}.astep` is a plain `def`. Its body would run, and then fail because there is nothing to await"
    else:
        problem = f"`{cls}.{name}` is {method!r}, whose color cannot be determined"
    raise MisuseError(
        f"{problem}.\nThe agent was not accepted, so nothing has happened.\n"
        f"Name it `{right_name}`, or write it as `{signature}(self, conversation)`."
    )


def _check_parameters(method: object, name: str) -> None:
    """Refuse a method that could not be called with a conversation; what does not tell is taken as it is."""
    try:
        signature = inspect.signature(method)  # type: ignore[arg-type]  # whatever is no callable is refused by it
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError as problem:
        raise MisuseError(
            f"`{name}` cannot be called with a conversation: {problem}.\n"
            "The agent was not accepted, because every step would fail.\nWrite it as `(self, conversation)`."
        ) from None


def _wraps_async(method: object) -> bool:
    inner = inspect.unwrap(method) if callable(method) else method
    return inner is not method and color_of(inner) is Color.ASYNC


def _place(agent: object, level: int) -> str:
    if level == _INSTANCE:
        return "the instance"
    return f"`{type(agent).__mro__[level].__qualname__}`"


def _reason(winner: str, loser: str, at: int, behind: int, agent: object) -> str:
    preferred = f"`{winner}` is written in {_place(agent, at)}"
    if behind == _NOWHERE:
        return f"{preferred}, and there is no `{loser}` of its own"
    return f"{preferred}, which is more derived than {_place(agent, behind)}, where `{loser}` is"
