"""Judge a function before it is called: its color, and which arguments it takes.

Everything a saga or a workflow calls is judged here, when it is registered, so that a wrong color is found before any
effect and is never mistaken for a failure worth another try.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType

from troth.bridge import color_of
from troth.color import Color
from troth.errors import MisuseError

__all__ = ["CheckedCallable", "WrongColorError", "judge"]

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_ROUTINES = (FunctionType, BuiltinFunctionType)


class WrongColorError(MisuseError):
    """A callable that nobody can simply call and wait for. It was refused before anything ran."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}.\nNothing ran.\n{advice}")
        self.what = what
        self.advice = advice


@dataclass(frozen=True, slots=True)
class CheckedCallable:
    """A function with its color and the names of its parameters."""

    call: Callable[..., object]
    color: Color
    takes: frozenset[str] | None
    """None where it takes any name, or cannot say."""
    needs: frozenset[str]
    names: frozenset[str]
    """The parameters that its own signature names; `**kwargs` is none."""

    def accepted(self, offered: Mapping[str, object]) -> dict[str, object]:
        """Those of `offered` that it has parameters for."""
        return {name: value for name, value in offered.items() if self.takes is None or name in self.takes}

    def surplus(self, names: Iterable[str]) -> list[str]:
        """Names in `names` that it does not take."""
        return [] if self.takes is None else sorted(set(names) - self.takes)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Names that it needs and that are not in `names`."""
        return sorted(self.needs - set(names))


def judge(call: Callable[..., object], name: str) -> CheckedCallable:
    """`call` with its color and parameters. What has no color, like a bare mock, is refused; nothing is called."""
    color = color_of(call)
    function = _function(call)
    if type(function) is FunctionType and function.__code__.co_flags & _GENERATORS:
        advice = "Return a list, or consume the generator in a separate function."
        raise WrongColorError(f"{name} is a generator function: calling it does none of its work", advice)
    if color is Color.UNKNOWN:
        advice = "Wrap it in a plain `def` or an `async def`; give a mock a `spec`."
        raise WrongColorError(f"it is unclear whether {name} ({_shown(call)}) is sync or async", advice)
    return CheckedCallable(call, color, *_parameters(call, name))


def _shown(call: object) -> str:
    return f"a {type(call).__name__}"


def _function(call: object) -> object:
    """The function a call ends in: under partials, methods and objects with `__call__`."""
    for _ in range(100):  # a partial can be made to hold itself
        if isinstance(call, partial):
            call = call.func
        elif type(call) is MethodType:  # by `type`: a mock says that it is an instance of what it stands for
            call = call.__func__
        elif isinstance(call, type) or type(call) in _ROUTINES:
            break
        else:
            return next((vars(cls)["__call__"] for cls in type(call).__mro__ if "__call__" in vars(cls)), None)
    return call


def _parameters(call: Callable[..., object], name: str) -> tuple[frozenset[str] | None, frozenset[str], frozenset[str]]:
    """What `call` takes, needs and names."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (ValueError, TypeError):  # some functions written in C do not say
        return None, frozenset(), frozenset()
    by_name = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    needs = frozenset(parameter.name for parameter in by_name if parameter.default is parameter.empty)
    by_position = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty
    ]
    if by_position:
        problem = f"{name} takes `{by_position[0]}` by position only, but arguments are passed by name"
        raise WrongColorError(problem, "Remove the `/` from its signature, or wrap it.")
    names = frozenset(parameter.name for parameter in by_name)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return None if takes_any else names, needs, names
