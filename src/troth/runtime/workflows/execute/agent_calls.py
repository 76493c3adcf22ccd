"""How an agent answers as a step of a workflow: in a conversation of its own, kept in the run's store.

The step's `prompt` is sent, the agent takes as many steps as it wants, and the last thing it said is the step's output.
The step is done when the agent's run has finished and there is such an answer; whatever else becomes of the run is a
failure of the attempt. The conversation has the step's key for its id: a step that is tried again, or goes on after a
crash, goes on with the same talk, and an agent that has finished is not called again, unless its answer breaks the
contract of the step's output: then it is told so, and answers anew. A sync function is an agent too.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.engine.current_step import current_step
from troth.runtime.store import Event, Store
from troth.runtime.store.aread import aread
from troth.runtime.workflows.document.contracts import Contract
from troth.runtime.workflows.execute.failures import AgentNotFinishedError, BudgetExceededError
from troth.runtime.workflows.execute.usage import SPENDING, Spending, conversation_of, usage_of, used_in
from troth.runtime.workflows.link.function_lookup import NotFound

if TYPE_CHECKING:
    from troth.runtime.agents.model import Message, Usage
    from troth.runtime.conversations import Conversation, Conversations, End

__all__ = ["CONTRACT", "answering", "code_from", "parsed"]

_TEXTS = ("string", "any")
CONTRACT: ContextVar[Contract | None] = ContextVar("troth.answer_contract", default=None)
"""What the answer of the agent in the step at work has to be."""

_LOOK_AGAIN = 1.0  # seconds after which a run that was in the way may be gone without a word: its process was killed


def answering(agent: object, name: str, home: "Callable[[], Conversations] | None") -> Callable[..., object]:
    """The function that lets `agent` answer; a function itself. Raises `NotFound` for what is not an agent."""
    has_steps = any(hasattr(type(agent), method) for method in ("step", "astep"))
    if inspect.isroutine(agent) or (callable(agent) and not has_steps and not isinstance(agent, type)):
        return agent
    from troth.runtime.agents.method_color import decide

    try:
        decide(agent)
    except MisuseError as refused:
        reason, *advice = str(refused).splitlines()
        raise NotFound(f"the agent {name!r} cannot be used: {reason}", advice[-1] if advice else "") from None
    if home is None:
        raise NotFound(f"the agent {name!r} needs a runtime", "Load the workflow with `Runtime.load`.")

    async def answer(prompt: str) -> str:
        spending = SPENDING.get()
        key = current_step().key
        talks = await call(home)  # the first time, it writes down who runs conversations here
        watches = []
        if spending is not None:
            watches = [_Watch(spending, await aread(talks.store, lambda: usage_of(talks.store, key)))]
        conversation = await talks.aopen(agent, conversation_of(key), on_event=watches)
        for watch in watches:
            watch.conversation = conversation
        try:
            return await _answer(talks.store, conversation, name, prompt, spending)
        finally:
            conversation.stop_listening()  # the next attempt has a watch of its own

    return answer


async def _answer(store: Store, conversation: "Conversation", name: str, prompt: str, spending: Spending | None) -> str:
    talk = await conversation.amessages()
    if not talk:
        await conversation.asend(prompt)
    refusal = _refusal(_answer_in(talk)) if (await aread(store, conversation.look)).is_finished else None
    if refusal is not None:
        await conversation.asend(refusal)  # an earlier attempt ended with this answer
    if not (await aread(store, conversation.look)).is_finished or _answer_in(talk) is None:
        if spending is not None:
            spending.check(spending.meter)
        end = await _run(store, conversation)
        if end.outcome != "finished":
            if spending is not None:
                spending.check(spending.meter)  # the watch ended the talk before its next turn
            raise _not_finished(name, f"its run was {end.outcome} after {end.steps} step{'s'[: end.steps != 1]}")
        talk = await conversation.amessages()
    text = _answer_in(talk)
    if text is None:
        raise _not_finished(name, "its run ended without an answer")
    return text


async def _run(store: Store, conversation: "Conversation") -> "End":
    """Run it. An earlier attempt that was given up may still be at work, in a sync step: that is waited for first."""
    from troth.runtime.conversations import AlreadyRunning

    while True:
        cursor = (await aread(store, conversation.look)).cursor
        try:
            return await conversation.arun()
        except AlreadyRunning:
            async with aclosing(conversation.asubscribe(after=cursor, timeout=_LOOK_AGAIN)) as news:
                await anext(news, None)


def _answer_in(talk: "Sequence[Message]") -> str | None:
    """The last thing the agent said, unless that was nothing, or a wish to have tools called."""
    last = next((message for message in reversed(talk) if message.role == "assistant"), None)
    return last.text if last is not None and last.text.strip() and not last.calls else None


def _refusal(answer: str | None) -> str | None:
    """What an agent is told whose answer breaks the contract of the step's output; None if it does not."""
    contract = CONTRACT.get()
    if contract is None or answer is None:
        return None
    complaints = list(contract.complaints(parsed(answer, contract), "answer"))
    if not complaints:
        return None
    shape = "" if contract.type in _TEXTS else f" Answer with JSON of type {contract.type} and nothing else."
    return f"Your answer cannot be used: {'; '.join(complaints)}. Answer again.{shape}"


def _not_finished(name: str, why: str) -> AgentNotFinishedError:
    return AgentNotFinishedError(
        f"The agent {name!r} did not finish: {why}.\n"
        "What it wrote so far is recorded, but is not its answer. If it is called again, it continues from there."
    )


class _Watch:
    """Counts what an agent uses as it goes, and ends its run at the end of a turn when nothing is left for another."""

    def __init__(self, spending: Spending, used_before: "Usage") -> None:
        self._spending = spending
        self._used = used_before
        spending.count(used_before)
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
