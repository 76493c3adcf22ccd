"""Hold a conversation inside a session: nothing is said and no run begins unless its agent is a member."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from troth.runtime.conversations import log
from troth.runtime.sessions.commit_points import TOOL
from troth.runtime.sessions.governance import Governance
from troth.runtime.sessions.policy.consent import ask_now, judge_by_policy
from troth.runtime.sessions.policy.decision import PolicyRequest
from troth.runtime.sessions.policy.gate import GateRefusal, check_standing
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.store import Transaction
from troth.runtime.tools.call import PendingCall

__all__ = ["ConversationGate"]

_UNGOVERNED = frozenset({log.ASKED, log.CALLBACK_FAILED})
"""Entries that stop a run, or tell of an accident: they are written in any case."""


class ConversationGate:
    """The gate of one conversation of one member."""

    def __init__(
        self,
        governance: Governance,
        session: str,
        agent: str,
        conversation_id: str,
        ring_of: Callable[[str], Ring],
    ) -> None:
        self._governance = governance
        self._ring_of = ring_of
        self._refusal: GateRefusal | None = None
        self.session = session
        self._agent = agent
        self._id = conversation_id

    def before(self, kinds: Sequence[str]) -> None:
        """Refuse, with an audit entry, what would be refused inside."""
        if _UNGOVERNED.issuperset(kinds):
            return
        store = self._governance.store
        row = store.read_sessions(lambda rows: rows.standing(self.session, self._agent))
        refusal = check_standing(row, self.session, self._agent, "a message", store.clock())
        if refusal is not None:
            self._governance.refuse_now(self.session, self._agent, "a message", refusal)

    def inside(self, tx: Transaction, entries: Sequence[tuple[str, Mapping[str, Any]]], now: float) -> None:
        """Refuse what comes after the membership has ended; audit the rest."""
        governed = [kind for kind, _ in entries if kind not in _UNGOVERNED]
        if not governed:
            return
        row = tx.sessions.standing(self.session, self._agent)
        refusal = check_standing(row, self.session, self._agent, "a message", now)
        if refusal is not None:  # it has ended since `before` looked
            self._refusal = refusal
            raise refusal.error()
        for kind, payload in entries:
            if kind == log.STARTED:
                tx.sessions.work_again(self._id)
            if kind != log.TOKENS:  # the message that they make up is
                data = {"conversation": self._id, "kind": kind, "payload": dict(payload)}
                self._governance.trail.add(tx, self.session, self._agent, "conversation", data, now)

    def after_refusal(self) -> None:
        """Audit what `inside` refused: the commit in which it did was taken back."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            self._governance.note_refusal(self.session, self._agent, "a message", refusal)

    def judge_calls(self, calls: Sequence[PendingCall]) -> Mapping[int, str]:
        """Judge calls of tools in one commit: ring, rate and policy. A tool needs the ring of the action of its name.

        Which tool has no action of its name needs the standard ring. What was refused is told to the model.
        """
        arguments = [_arguments(call.arguments) for call in calls]
        opinions = [
            ask_now(self._governance, self.session, self._agent, call.name, "tool", values)
            for call, values in zip(calls, arguments, strict=True)
        ]

        def work(tx: Transaction, now: float) -> dict[int, str]:
            refused = {}
            for index, (call, values, opinion) in enumerate(zip(calls, arguments, opinions, strict=True)):
                if call.is_interrupted:
                    continue  # it is not called any more
                refusal = self._judge(tx, call, values, opinion, now)
                if refusal is not None:
                    refused[index] = f"refused: {refusal.message}"
            return refused

        return self._governance.commit(TOOL, work)

    def _judge(
        self, tx: Transaction, call: PendingCall, arguments: Mapping[str, Any], opinion: object, now: float
    ) -> GateRefusal | None:
        governance, subject = self._governance, f"the tool {call.name!r}"
        ring = governance.judge(tx, self.session, self._agent, subject, self._ring_of(call.name), now)
        if isinstance(ring, GateRefusal):
            return ring
        data: dict[str, Any] = {"conversation": self._id, "step": call.name, "at": str(call.place), "ring": ring}
        data["arguments"] = call.arguments
        request = PolicyRequest(self.session, self._agent, call.name, "tool", ring, arguments)
        answer = judge_by_policy(governance, tx, subject, request, opinion, now)
        if isinstance(answer, GateRefusal):
            return answer
        governance.trail.add(tx, self.session, self._agent, "tool.begun", {**data, **answer}, now)
        return None


def _arguments(text: str) -> Mapping[str, Any]:
    """The arguments that a model gave, if they can be read; a policy is not told what is no JSON."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
