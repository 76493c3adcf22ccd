"""Knows how an agent answers as a step of a workflow: in a conversation of its own, kept in the run's store.

The step's `prompt` is sent, the agent takes as many steps as it wants, and the last thing it said is the step's output.
The conversation has the step's key for its id: a step that is tried again, or goes on after a crash, goes on with the
same talk, and an answer that was already given is not asked for twice. A plain function is an agent too.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from troth.errors import MisuseError
from troth.runtime.engine.current import current_step
from troth.runtime.store import Event
from troth.runtime.workflows.contracts import Contract
from troth.runtime.workflows.failures import BudgetExceededError
from troth.runtime.workflows.functions import NotFound
from troth.runtime.workflows.usage import SPENDING, Spending, conversation_of, usage_of, used_in

if TYPE_CHECKING:
    from troth.runtime.agents.model import Message
    from troth.runtime.conversations import Conversation, Conversations

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
        spending = SPENDING.get()
        key = current_step().key
        talks = home()
        heard = [] if spending is None else [_Watch(talks, key, spending)]
        conversation = talks.open(agent, conversation_of(key), on_event=heard)
        for watch in heard:
            watch.conversation = conversation
        said = conversation.messages()
        if not said:
            await conversation.asend(prompt)
        if not _is_answered(said):
            if spending is not None:
                spending.check(spending.meter)
            await conversation.arun()
            said = conversation.messages()
            if spending is not None and not _is_answered(said):
                spending.check(spending.meter)  # the watch ended the talk before its next turn
        return said[-1].text

    return answer


def _is_answered(said: "Sequence[Message]") -> bool:
    return bool(said) and said[-1].role == "assistant" and not said[-1].calls


class _Watch:
    """Counts what an agent uses as it goes, and ends its run at the end of a turn when nothing is left for another."""

    def __init__(self, talks: "Conversations", key: str, spending: Spending) -> None:
        self._spending = spending
        self._used = usage_of(talks.store, key)  # of attempts before this one
        spending.count(self._used)
        self.conversation: Conversation | None = None

    def __call__(self, event: Event) -> None:
        self._used += used_in(event)
        self._spending.count(self._used)
        try:
            self._spending.check(self._spending.meter)
        except BudgetExceededError:
            if event.kind == "agent.usage" and self.conversation is not None:
                self.conversation.pause()


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
