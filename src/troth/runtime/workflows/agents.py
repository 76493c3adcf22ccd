"""Knows how an agent answers as a step of a workflow: in a conversation of its own, kept in the run's store.

The step's `prompt` is sent, the agent takes as many steps as it wants, and the last thing it said is the step's output.
The conversation has the step's key for its id: a step that is tried again, or goes on after a crash, goes on with the
same talk, and an answer that was already given is not asked for twice. A plain function is an agent too.
"""

import inspect
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from troth.errors import MisuseError
from troth.runtime.engine.current import current_step
from troth.runtime.workflows.contracts import Contract
from troth.runtime.workflows.functions import NotFound

if TYPE_CHECKING:
    from troth.runtime.conversations import Conversations

__all__ = ["answering", "code_from", "parsed"]

_TEXTS = ("string", "any")


def answering(agent: object, name: str, home: "Callable[[], Conversations] | None") -> Callable[..., object]:
    """The function that lets `agent` answer; a function itself. Raises `NotFound` for what is not an agent."""
    has_steps = any(hasattr(type(agent), method) for method in ("step", "astep"))
    if inspect.isroutine(agent) or (callable(agent) and not has_steps and not isinstance(agent, type)):
        return agent
    from troth.runtime.agents.decide import decide

    try:
        decide(agent)
    except MisuseError as refused:
        what, *advice = str(refused).splitlines()
        raise NotFound(f"the agent {name!r} cannot be used: {what}", advice[-1] if advice else "") from None
    if home is None:
        raise NotFound(f"the agent {name!r} needs a runtime to talk in", "Load the workflow with `Runtime.load`.")

    async def answer(prompt: str) -> str:
        conversation = home().open(agent, f"agent:{current_step().key}")
        said = conversation.messages()
        if not said:
            await conversation.asend(prompt)
        if not said or said[-1].role != "assistant" or said[-1].calls:
            await conversation.arun()
        return conversation.messages()[-1].text

    return answer


def code_from(agent: object) -> object:
    """The user's own code in an agent, whose change is a change of the step."""
    if inspect.isroutine(agent):
        return agent
    own = [getattr(type(agent), name, None) for name in ("step", "astep")]
    return next((method for method in own if method is not None), agent)


def parsed(reply: object, output: Contract | None) -> object:
    """A reply as its contract wants it: JSON where that is not a text. What is not JSON is left to the contract."""
    if output is None or output.type in _TEXTS or not isinstance(reply, str):
        return reply
    try:
        return json.loads(reply)
    except ValueError:
        return reply
