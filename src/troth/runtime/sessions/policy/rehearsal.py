"""Tell which of the acts and writes that are already recorded a policy would not have allowed.

Nothing is written, and nothing is done.
"""

import json
from typing import Any, NamedTuple

from troth.runtime.sessions.policy.consent import arguments_of
from troth.runtime.sessions.policy.decision import Answer, PolicyRequest, answer_of, load_policy
from troth.runtime.sessions.policy.hooks import Hook
from troth.runtime.sessions.workspace import CHANGES
from troth.runtime.store import Store
from troth.runtime.store.rows.sessions import AuditRow

__all__ = ["Rehearsal", "rehearse"]

_KINDS = {"act.begun": "act", "step.begun": "step", "tool.begun": "tool"}
_CHANGES = {kind: action for action, kind in CHANGES.items()}
_PAGE = 1000


class RehearsedAct(NamedTuple):
    """One recorded act, and what the policy says of it."""

    entry: int
    request: PolicyRequest
    answer: Answer


class Rehearsal(NamedTuple):
    """How many acts were looked at, and those that would have been denied, or asked about."""

    total: int
    differing: list[RehearsedAct]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "count": self.total,
            "differing": [
                {
                    "entry": difference.entry,
                    **difference.request._asdict(),
                    "arguments": dict(difference.request.arguments),
                    "answer": difference.answer.word,
                    "reason": difference.answer.reason,
                }
                for difference in self.differing
            ],
        }


def rehearse(store: Store, target: object, session: str | None = None) -> Rehearsal:
    """Ask a policy about every act and every write that is recorded in this store, or in one of its sessions."""
    policy = load_policy(target)
    hook = Hook("policy", policy.call, 5.0)
    kinds = [*_KINDS, *_CHANGES]
    count, differing, after = 0, [], 0
    while True:
        rows = store.read_sessions(
            lambda rows, after=after: rows.audit(after=after, limit=_PAGE, session=session, kinds=kinds)  # type: ignore[misc]
        )
        for row in rows:
            request = _request(row)
            answer = answer_of(policy.call(request) if policy.is_table else hook.ask(request))
            count += 1
            if answer.word in ("deny", "ask"):
                differing.append(RehearsedAct(row.seq, request, answer))
        if len(rows) < _PAGE:
            return Rehearsal(count, differing)
        after = rows[-1].seq


def _request(row: AuditRow) -> PolicyRequest:
    """What a policy is asked about an entry."""
    data = json.loads(row.data)
    ring = data.get("ring", 3)
    if row.kind in _CHANGES:
        arguments = {name: value for name, value in data.items() if name not in ("ring", "policy")}
        return PolicyRequest(row.session, row.agent, _CHANGES[row.kind], "write", ring, arguments)
    return PolicyRequest(row.session, row.agent, data["step"], _KINDS[row.kind], ring, _arguments(data))


def _arguments(data: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an entry: a model's are an object, a step's are as they were recorded."""
    text = data["arguments"] or "{}"
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    if isinstance(values, dict):
        return values
    arguments: dict[str, Any] = arguments_of(text)
    return arguments
