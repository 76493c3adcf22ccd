"""Let an agent answer a prompt as the work of a promise: one durable step, in a conversation of its own."""

from collections.abc import Callable, Generator, MutableMapping
from typing import Any

from troth.errors import MisuseError
from troth.runtime.conversations import Conversations
from troth.runtime.engine import Command, Engine, Step
from troth.runtime.promises.promises import PreparedWork
from troth.runtime.store import RunRecord
from troth.runtime.workflows.document.problems import did_you_mean
from troth.runtime.workflows.execute.agent_calls import answering
from troth.runtime.workflows.link.function_lookup import NotFound

__all__ = ["AgentWork"]

_DECISION = "promise:agent"


class AgentWork:
    """Runs in which an agent answers. After a restart the agent is found by its name among the runtime's `agents`."""

    def __init__(
        self, engine: Engine, agents: MutableMapping[str, object], conversations: Callable[[], Conversations]
    ) -> None:
        self._agents = agents
        self._conversations = conversations
        engine.register(self._decide, _DECISION)

    def prepare(self, agent: object, prompt: str, run_id: str) -> PreparedWork:
        """Check the agent, and name the run in which it answers."""
        text: object = prompt
        if not isinstance(text, str):
            raise MisuseError(f"`prompt` is {text!r}; it has to be a string. Nothing was started.")
        name = self._name_of(agent)
        self._function(name)
        return PreparedWork(_DECISION, (name, prompt), run_id, name, name)

    def can_take(self, run: RunRecord) -> bool:
        """Whether a run can go on here: it is none in which an agent answers, or one of an agent that is known here."""
        return run.decision != _DECISION or (bool(run.args) and run.args[0] in self._agents)

    def _name_of(self, agent: object) -> str:
        if isinstance(agent, str):
            return agent
        for name, registered in self._agents.items():
            if registered is agent:
                return name
        kind: Any = agent if callable(agent) and hasattr(agent, "__qualname__") else type(agent)
        name = f"{getattr(kind, '__module__', None) or 'builtins'}.{kind.__qualname__}"
        if name in self._agents:
            raise MisuseError(
                f"There is another agent {name!r} already, so the two could not be distinguished after a restart.\n"
                "Nothing was started. Give both to the runtime by name: `Runtime(agents={'name': agent})`."
            )
        self._agents[name] = agent
        return name

    def _function(self, name: str) -> Callable[..., object]:
        if name not in self._agents:
            advice = did_you_mean(name, list(self._agents), kind="agent")
            raise MisuseError(f"This runtime has no agent {name!r}. {advice}\nNothing was started.")
        try:
            return answering(self._agents[name], name, self._conversations)
        except NotFound as refused:
            raise MisuseError(f"{refused}\nNothing was started.") from None

    def _decide(self, agent: str, prompt: str) -> Generator[Command, Any, object]:
        return (yield Step("answer", self._function(agent), prompt))
