"""Ask a model from sync and from async code, whichever of the two it was written for."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from troth.bridge import call, color_of
from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.agents.model import Model, Reply, Request

__all__ = ["both_colors"]


def both_colors(model: object) -> tuple[Callable[[Request], Reply], Callable[[Request], Awaitable[Reply]]]:
    """How `model` is asked from sync code and from a loop; raises `MisuseError` for what is no model.

    A model with `reply` alone is asked in a worker thread where a loop asks; one with `areply` alone on a loop of the
    caller's thread where sync code does. Nothing of the model is run here.
    """
    reply, areply = _own(model, "reply"), _own(model, "areply")
    if reply is None and areply is None:
        raise MisuseError(
            f"{model!r} of type `{type(model).__name__}` is not a model: it has neither `reply` nor `areply`.\n"
            "The agent was not made.\nGive a `Model`, such as `OpenAIModel(…)` or one of your own."
        )
    if reply is not None and color_of(reply) is Color.ASYNC:
        raise MisuseError(
            f"`{type(model).__qualname__}.reply` is `async def`. It would make a coroutine, and the model "
            "would not be asked.\nThe agent was not made.\nName it `areply`; `reply` is its sync counterpart."
        )
    for name, method in (("reply", reply), ("areply", areply)):
        if method is not None and color_of(method) is Color.UNKNOWN:
            raise MisuseError(
                f"`{type(model).__qualname__}.{name}` is {method!r}, whose color cannot be determined.\n"
                "The agent was not made, because the model might never be asked.\nWrite it as a method."
            )
    return (
        partial(_ask_here, reply) if reply is not None else partial(bridge_run, areply),
        partial(call, areply if areply is not None else reply),
    )


def _own(model: object, name: str) -> Callable[[Request], Any] | None:
    """The model's own method; None where it has none, or only the empty one of the protocol."""
    method: Callable[[Request], Any] | None = getattr(model, name, None)
    if not callable(method) or getattr(type(model), name, None) is getattr(Model, name):
        return None
    return method


def _ask_here(reply: Callable[[Request], Any], request: Request) -> Any:
    answer = reply(request)
    return bridge_run(answer) if inspect.isawaitable(answer) else answer
