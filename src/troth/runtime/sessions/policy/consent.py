"""Ask a session's policy about one act, and have it wait for people where the policy says so."""

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from troth.runtime.engine.commands import Step
from troth.runtime.engine.invoke.outcome import StepOutcome
from troth.runtime.sessions.errors import HookFailedError
from troth.runtime.sessions.governance import Governance
from troth.runtime.sessions.policy.decision import Answer, LoadedPolicy, PolicyRequest, answer_of
from troth.runtime.sessions.policy.gate import GateRefusal, current_ring
from troth.runtime.sessions.policy.hooks import Hook
from troth.runtime.store import Transaction
from troth.runtime.store.rows.sessions import AskRow

__all__ = [
    "Ask",
    "Consent",
    "arguments_of",
    "ask_now",
    "consult",
    "decide",
    "digest_of_arguments",
    "judge_by_policy",
    "open_ask",
    "refusal_by_policy",
]

_LIMIT = 5.0  # seconds in which a policy has to answer


class Consent(NamedTuple):
    """What a policy has answered, and which policy it was."""

    answer: Answer
    policy: str

    def to_json(self) -> dict[str, str]:
        """For the audit entry."""
        return {"digest": self.policy, "answer": self.answer.word, "reason": self.answer.reason}


class Ask(NamedTuple):
    """An act that waits for people: `open`, `yes`, `no`, `expired` or `withdrawn`. A yes is bound to `digest`."""

    id: str
    session: str
    agent: str
    what: str
    arguments: Any
    digest: str
    policy: str
    reason: str
    people: int
    asked_at: float
    expires_at: float
    state: str
    answers: tuple[tuple[str, bool, str], ...]

    @classmethod
    def of(cls, row: AskRow) -> "Ask":
        """The ask of a row."""
        answers = tuple((who, yes, reason) for who, yes, reason, _ in json.loads(row.answers))
        values = {**row._asdict(), "arguments": arguments_of(row.arguments), "answers": answers}
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return self._asdict()


def arguments_of(recorded: str) -> Any:
    """The arguments of a step by name, as far as they have names; from its record."""
    values = json.loads(recorded)
    if isinstance(values, list) and len(values) == 2 and isinstance(values[0], list) and isinstance(values[1], dict):
        return {**({"args": values[0]} if values[0] else {}), **values[1]}
    return {"args": values} if values else {}


def digest_of_arguments(action: str, recorded: str) -> str:
    """What a yes is bound to."""
    return hashlib.sha256(f"{len(action)}|{action}{recorded}".encode("utf-8", "surrogatepass")).hexdigest()


def consult(
    governance: Governance, session: str, agent: str, action: str, kind: str, arguments: Mapping[str, Any]
) -> Step | None:
    """How a policy that is user code is to be asked, before the commit; nothing if there is nobody to ask so."""
    policy = governance.policy_now(session)
    if policy is None or policy.is_table:
        return None
    row = governance.store.read_sessions(lambda rows: rows.standing(session, agent))
    if row is None or row.state is None:
        return None  # the commit refuses it
    ring = int(current_ring(row, governance.store.clock()))
    request = PolicyRequest(session, agent, action, kind, ring, arguments)
    return Step("policy", partial(policy.call, request), timeout=_LIMIT)


def ask_now(
    governance: Governance, session: str, agent: str, action: str, kind: str, arguments: Mapping[str, Any]
) -> object:
    """What a policy that is user code says, asked here and before the commit; nothing if there is nobody to ask so."""
    step = consult(governance, session, agent, action, kind, arguments)
    if step is None:
        return None
    try:
        return StepOutcome("done", Hook("policy", step.call, _LIMIT).ask())
    except HookFailedError as failed:
        return StepOutcome("failed", error=failed)


def decide(
    governance: Governance,
    tx: Transaction,
    request: PolicyRequest,
    opinion: object,
) -> Consent | None:
    """What the policy answers, in the commit that begins the act. Nothing if there is no policy."""
    policy = governance.policy(tx.sessions, request.session)
    if policy is None:
        return None
    if policy.is_table:
        return Consent(answer_of(policy.call(request)), policy.digest)
    return Consent(_answer(policy, opinion), policy.digest)


def _answer(policy: LoadedPolicy, opinion: object) -> Answer:
    """What came of asking user code. Nothing but an answer allows anything."""
    if not isinstance(opinion, StepOutcome):
        return Answer("deny", "the policy was not asked")
    if opinion.ended != "done":
        problem = opinion.error
        problem_text = "" if problem is None else f": {type(problem).__name__}: {problem}"
        return Answer("deny", f"the policy {policy.reference!r} failed{problem_text}")
    try:
        return answer_of(opinion.value)
    except Exception as wrong:  # noqa: BLE001  whatever it is, it is no answer
        return Answer("deny", str(wrong))


def judge_by_policy(
    governance: Governance, tx: Transaction, what: str, request: PolicyRequest, opinion: object, now: float
) -> GateRefusal | dict[str, Any]:
    """What cannot wait for people: a refusal, which is an audit entry of this commit, or what to tell in the entry."""
    consent = decide(governance, tx, request, opinion)
    if consent is None:
        return {}
    data = {"policy": consent.to_json()}
    if consent.answer.word in ("allow", "log"):
        return data
    refusal = refusal_by_policy(what, request, consent)
    governance.refuse(tx, request.session, request.agent, what, refusal, now, data)
    return refusal


def open_ask(
    tx: Transaction, run_id: str, request: PolicyRequest, recorded: str, consent: Consent, now: float
) -> AskRow:
    """Write down that an act waits for people."""
    answer = consent.answer
    row = AskRow(
        run_id,
        request.session,
        request.agent,
        request.action,
        recorded,
        digest_of_arguments(request.action, recorded),
        consent.policy,
        answer.reason,
        answer.people,
        now,
        now + answer.expires,
        "open",
        "[]",
    )
    tx.sessions.put_ask(row)
    return row


def refusal_by_policy(what: str, request: PolicyRequest, consent: Consent) -> GateRefusal:
    """A refusal that tells the policy's reason."""
    reason = consent.answer.reason or "it gave no reason"
    about = f"{what} of {request.agent!r} in session {request.session!r} was refused by the policy"
    if consent.answer.word == "ask":
        return GateRefusal(
            "policy",
            f"{about}: it needs the approval of a person ({reason}), and only an act can wait for that. Nothing "
            "was done.\n"
            "Register it as an `Action`, and perform it with `member.act`.",
        )
    return GateRefusal("policy", f"{about}: {reason}. Nothing was done.")
