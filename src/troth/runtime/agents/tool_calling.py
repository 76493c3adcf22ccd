"""Knows how to be an agent that asks a model and calls tools, until the model has nothing left to ask for."""

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from troth.bridge import color_of
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.agents.agent import Agent
from troth.runtime.agents.budget import Budget, Spent
from troth.runtime.agents.model import Model, Reply, Request, Usage
from troth.runtime.agents.turn import AskModel, CallTools, Say, turn
from troth.runtime.engine.workers import Workers
from troth.runtime.tools import Tool, tool
from troth.runtime.tools.perform import aperform, perform

if TYPE_CHECKING:
    from troth.runtime.conversations import Conversation

__all__ = ["ToolCallingAgent"]


class ToolCallingAgent(Agent):
    """A model with tools and a budget.

    It works in both colors: `run` asks the model and calls sync tools on the caller's thread, `arun` does it all on the
    loop, with sync tools in worker threads. Functions among `tools` are made tools. Errors of a tool go to the model.
    """

    def __init__(
        self,
        model: Model,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        system: str | None = None,
        budget: Budget | None = None,
        workers: Workers | None = None,
    ) -> None:
        _check_model(model)
        self.model = model
        self.system = system
        self.budget = budget or Budget()
        self.tools = {one.name: one for one in (given if isinstance(given, Tool) else tool(given) for given in tools)}
        if len(self.tools) != len(tools):
            raise MisuseError(
                "Two tools have one name, so that a model could not tell them apart.\n"
                f"The names are {', '.join(sorted(self.tools))}.\nName one anew: `@tool(name='…')`."
            )
        self._workers = workers or Workers(name="troth-tool")

    def step(self, conversation: "Conversation") -> bool:
        """Take one turn on this thread."""
        decisions = self._begin(conversation)
        answer: Any = None
        while True:
            try:
                ask = decisions.send(answer)
            except StopIteration as done:
                return bool(done.value)
            match ask:
                case AskModel(messages):
                    answer = self.model.reply(self._request(conversation, messages))
                case CallTools(calls):
                    answer = perform(calls, self.tools, self._workers)
                case Say(message, reply):
                    answer = conversation.say(message, with_events=_spent(reply))

    async def astep(self, conversation: "Conversation") -> bool:
        """Take one turn on this loop."""
        decisions = self._begin(conversation)
        answer: Any = None
        while True:
            try:
                ask = decisions.send(answer)
            except StopIteration as done:
                return bool(done.value)
            match ask:
                case AskModel(messages):
                    answer = await self.model.areply(self._request(conversation, messages))
                case CallTools(calls):
                    answer = await aperform(calls, self.tools, self._workers)
                case Say(message, reply):
                    answer = await conversation.asay(message, with_events=_spent(reply))

    def _begin(self, conversation: "Conversation") -> Generator[AskModel | Say | CallTools, Any, bool]:
        talk, spent = [], Spent()
        for event in conversation.events():
            if event.kind == "message":
                talk.append(event.payload)
            elif event.kind == "agent.usage":
                row = event.payload
                usage = spent.usage + Usage(row["input_tokens"], row["output_tokens"], row["cost"])
                spent = Spent(spent.turns + 1, usage, spent.since or event.at)
        self.budget.check(spent, conversation.now())
        from troth.runtime.agents.model import Message

        return turn(self.system, [Message.from_json(row) for row in talk])

    def _request(self, conversation: "Conversation", messages: Any) -> Request:
        return Request(messages, tuple(self.tools.values()), conversation.token)


def _check_model(model: object) -> None:
    if not callable(getattr(model, "reply", None)) and not callable(getattr(model, "areply", None)):
        raise MisuseError(
            f"{model!r} of type `{type(model).__name__}` is no model: it has neither `reply` nor `areply`.\n"
            "The agent was not made.\nGive a `Model`, as `OpenAIModel(…)` or one of your own."
        )
    if color_of(getattr(model, "reply", None)) is Color.ASYNC:
        raise MisuseError(
            f"`{type(model).__qualname__}.reply` is `async def`. It would make a coroutine, and ask nobody.\n"
            "The agent was not made.\nName it `areply`; `reply` is the same in plain code."
        )


def _spent(reply: Reply | None) -> list[tuple[str, dict[str, Any]]]:
    if reply is None:
        return []
    usage = reply.usage
    row = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}
    return [("agent.usage", row)]
