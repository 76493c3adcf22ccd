"""What an agent in a session can do: note, act, run, converse, and use the workspace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from troth.errors import MisuseError
from troth.runtime.conversations import Conversation
from troth.runtime.sessions.commit_points import RECORD
from troth.runtime.sessions.isolated import IsolatedConversation
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.sessions.session import MemberView
from troth.runtime.sessions.workspace import Workspace
from troth.runtime.store.json_codec import keep

if TYPE_CHECKING:
    from troth.runtime.sagas.outcome import SagaOutcome
    from troth.runtime.sagas.saga import Saga
    from troth.runtime.sessions.hypervisor import Hypervisor
    from troth.runtime.workflows.record.report import RunReport
    from troth.runtime.workflows.registry import Runnable

__all__ = ["Member"]


class Member:
    """One agent in one session. Wholly sync: what a method does is done when it returns."""

    def __init__(self, hypervisor: "Hypervisor", session: str, agent: str) -> None:
        self._hypervisor = hypervisor
        self.session = session
        self.agent = agent
        self.workspace = Workspace(hypervisor.governance, session, agent)

    def __repr__(self) -> str:
        return f"Member({self.agent!r} in {self.session!r})"

    @property
    def info(self) -> MemberView:
        """How it stands now."""
        return self._hypervisor.member_view(self.session, self.agent)

    @property
    def ring(self) -> Ring:
        """The ring it has now."""
        return self.info.ring

    def record(self, what: str, data: Mapping[str, Any] | None = None) -> None:
        """Add a note to the audit trail."""
        entry, _ = keep({"what": what, "data": {} if data is None else dict(data)}, "note")
        self._hypervisor.governance.perform(
            RECORD, self.session, self.agent, f"the note {what!r}", Ring.SANDBOX, "note", entry
        )

    def act(self, name: str, /, **inputs: Any) -> Any:
        """Have a registered action performed, durably, and return what it returned. `RefusedError` if a rule says no.

        It is judged in the commit that begins it. If the process dies meanwhile, it goes on with the next one that
        registers the action.
        """
        return self._hypervisor.perform_act(self.session, self.agent, name, inputs)

    def run(
        self, what: "Runnable | Saga", inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> "RunReport | SagaOutcome":
        """Run a saga or a workflow inside of the session; each of its steps is judged in the commit that begins it.

        A step that is refused fails and is not tried again, and what was done before it is undone.
        """
        return self._hypervisor.perform_run(self.session, self.agent, what, inputs, run_id)

    @overload
    def converse(self, agent: object, conversation_id: str | None = None, *, isolate: None = None) -> Conversation: ...

    @overload
    def converse(
        self, agent: str, conversation_id: str | None = None, *, isolate: Literal["process"]
    ) -> IsolatedConversation: ...

    def converse(
        self, agent: object, conversation_id: str | None = None, *, isolate: Literal["process"] | None = None
    ) -> Conversation | IsolatedConversation:
        """Open a conversation inside of the session: nothing is said in it once the membership has ended.

        A thread cannot be killed. `isolate="process"` runs the agent in a process on the same store, which can: the
        agent is then named as `package.module:name`, an agent or a function that makes one.
        """
        if isolate not in (None, "process"):
            raise MisuseError(f"`isolate` is {isolate!r}; it can be None or 'process'. Nothing was opened.")
        if isolate == "process":
            return self._hypervisor.open_isolated(self.session, self.agent, agent, conversation_id)
        return self._hypervisor.open_conversation(self.session, self.agent, agent, conversation_id)

    def leave(self) -> None:
        """Leave the session. It can be joined again."""
        self._hypervisor.leave(self.session, self.agent)


def renamed(run: Any, decision: str) -> Any:
    """The record of a run inside of a session, as one of the workflow that it carries out."""
    return replace(run, decision=decision, args=run.args[2:])
