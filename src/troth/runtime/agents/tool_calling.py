"""Be an agent that asks a model and calls tools, until the model has nothing left to ask for."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troth import bridge
from troth.errors import MisuseError
from troth.runtime.agents.agent import Agent
from troth.runtime.agents.budget import Budget
from troth.runtime.agents.either_color import both_colors
from troth.runtime.agents.model import AsyncModel, Reply, Request, SyncModel
from troth.runtime.agents.turn import AskModel, CallTools, Say, turn
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.tools import Tool, tool
from troth.runtime.tools.call import PendingCall, ToolOutcome
from troth.runtime.tools.perform import aperform, perform, step_of

if TYPE_CHECKING:
    from troth.runtime.conversations import Conversation

__all__ = ["ToolCallingAgent"]


class ToolCallingAgent(Agent):
    """A model with tools and a budget.

    It works in both colors: `run` asks the model and calls sync tools on the caller's thread, `arun` does it all on the
    loop, with sync tools in worker threads. A model of one color alone is asked through the bridge by the other one.
    Functions among `tools` are made tools. Errors of a tool go to the model.
    """

    def __init__(
        self,
        model: SyncModel | AsyncModel,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        system: str | None = None,
        budget: Budget | None = None,
        workers: WorkerPool | None = None,
    ) -> None:
        self._model = model
        self._reply, self._areply = both_colors(model)
        self.system = system
        self.budget = budget or Budget()
        self.tools = {
            prepared.name: prepared
            for prepared in (function if isinstance(function, Tool) else tool(function) for function in tools)
        }
        if len(self.tools) != len(tools):
            raise MisuseError(
                "Two tools have the same name, so a model could not distinguish them.\n"
                f"The names are {', '.join(sorted(self.tools))}.\nRename one: `@tool(name='…')`."
            )
        self._workers = workers or WorkerPool(name="troth-tool")

    @property
    def model(self) -> SyncModel | AsyncModel:
        """The model it was made with."""
        return self._model

    def step(self, conversation: "Conversation") -> bool:
        """Take one turn on this thread."""
        decisions = self._begin(conversation)
        answer: Any = None
        while True:
            try:
                ask = decisions.send(answer)
            except StopIteration as end:
                return bool(end.value)
            match ask:
                case AskModel(messages):
                    answer = self._reply(self._request(conversation, messages))
                case Say(reply):
                    answer = conversation.say(reply.message, with_events=_spent(reply))
                case CallTools(calls):
                    if conversation.is_interrupted:
                        return True  # the run ends here, and the next one tells the model that they were interrupted
                    if again := _called_before(calls):
                        conversation.note_attempts(again)
                    settle, asettle = conversation.answer_call, conversation.aanswer_calls
                    if conversation.is_governed:
                        calls, refused = _sorted_out(calls, conversation.judge_calls(calls))
                        for call, outcome in refused:
                            settle(call, outcome, step_of(call))
                    if calls:
                        perform(calls, self.tools, self._workers, settle, asettle)

    async def astep(self, conversation: "Conversation") -> bool:
        """Take one turn on this loop."""
        decisions = self._begin(conversation)
        answer: Any = None
        while True:
            try:
                ask = decisions.send(answer)
            except StopIteration as end:
                return bool(end.value)
            match ask:
                case AskModel(messages):
                    answer = await self._areply(self._request(conversation, messages))
                case Say(reply):
                    answer = await conversation.asay(reply.message, with_events=_spent(reply))
                case CallTools(calls):
                    if conversation.is_interrupted:
                        return True
                    if again := _called_before(calls):
                        await conversation.anote_attempts(again)
                    if conversation.is_governed:
                        judged = await bridge.call(conversation.judge_calls, calls)
                        calls, refused = _sorted_out(calls, judged)
                        if refused:
                            await conversation.aanswer_calls(
                                [(call, outcome, step_of(call)) for call, outcome in refused]
                            )
                    if calls:
                        await aperform(calls, self.tools, self._workers, conversation.aanswer_calls)

    def _begin(self, conversation: "Conversation") -> Generator[AskModel | Say | CallTools, Any, bool]:
        history = conversation.history()
        self.budget.check(history.spent, conversation.now())
        return turn(self.system, history, conversation.id)

    def _request(self, conversation: "Conversation", messages: Any) -> Request:
        return Request(messages, tuple(self.tools.values()), conversation.token)


def _called_before(calls: Sequence[PendingCall]) -> list[PendingCall]:
    return [call for call in calls if call.attempt > 1 and not call.is_interrupted]


def _sorted_out(
    calls: Sequence[PendingCall], refusals: Mapping[int, str]
) -> tuple[list[PendingCall], list[tuple[PendingCall, ToolOutcome]]]:
    """The calls that are made, and what the model is told of the others."""
    allowed = [call for index, call in enumerate(calls) if index not in refusals]
    refused = [
        (calls[index], ToolOutcome(calls[index].id, calls[index].name, error=why)) for index, why in refusals.items()
    ]
    return allowed, refused


def _spent(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    usage = reply.usage
    row = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}
    return [("agent.usage", row)]
