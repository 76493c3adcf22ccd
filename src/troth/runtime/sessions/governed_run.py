"""Carry out acts, sagas and workflows inside a session: every step is judged in the commit that begins it."""

import inspect
import json
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any

from troth.color import Color
from troth.runtime.channels.binding import in_step_of
from troth.runtime.engine.commands import Command, Finish, Govern, Step, Wait
from troth.runtime.engine.current_step import current_step
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.retry import Retry
from troth.runtime.sagas.checked_callable import CheckedCallable
from troth.runtime.sagas.undo import undo_arguments, undo_step
from troth.runtime.sessions.action import Action
from troth.runtime.sessions.audit.trail import Head
from troth.runtime.sessions.governance import Governance
from troth.runtime.sessions.policy.consent import (
    arguments_of,
    consult,
    decide,
    digest_of_arguments,
    open_ask,
    refusal_by_policy,
)
from troth.runtime.sessions.policy.decision import PolicyRequest
from troth.runtime.sessions.policy.gate import GateRefusal
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.store import RunState, StepState, Store, Transaction
from troth.runtime.store.records import Place

__all__ = ["ANSWER", "REFUSED", "SessionGovernor", "UndoWindowPassedError", "act", "refusal_of"]

REFUSED = "session refused"
"""The type that a step's error has on record if the session refused it."""
ASKED = "session asks"
"""The type that it has if people are asked first."""
ANSWER = "session answer"
"""The signal by which an act hears what people have answered."""
Check = Callable[[str, Mapping[str, Any]], GateRefusal | None]
"""Looks at the arguments of an act in a session, before anything is written."""


class UndoWindowPassedError(Exception):
    """The time in which an act could be taken back is over, so its undo was not called."""


class SessionGovernor:
    """Asks the session before every step of one run, and writes the audit entries of all that the run does."""

    def __init__(
        self,
        governance: Governance,
        session: str,
        agent: str,
        kind: str,
        what: str,
        ring: Ring = Ring.STANDARD,
        check: Check | None = None,
    ) -> None:
        self._governance = governance
        self._session = session
        self._agent = agent
        self._kind = kind
        self._what = what
        self._ring = ring
        self._check = check
        self._head: Head | None = None

    def _doer(self, tx: Transaction, run_id: str) -> str:
        """For whom the run goes on: whoever began it, or the substitute it was handed to."""
        return tx.sessions.doer(run_id) or self._agent

    def consult(self, step: Step) -> object:
        """What is asked before the commit: whether the arguments are allowed, and a policy that is user code."""
        if step.is_undo:
            return None
        policy = self._governance.policy_now(self._session)
        if self._check is None and (policy is None or policy.is_table):
            return None  # there is nobody to ask before the commit
        arguments = arguments_of(step.recorded)
        refusal = None if self._check is None else self._check(self._session, arguments)
        if refusal is not None:
            return refusal
        return consult(self._governance, self._session, self._agent, step.name, self._word(step), arguments)

    def begins(
        self, tx: Transaction, place: Place, step: Step, opinion: object, now: float
    ) -> Mapping[str, Any] | None:
        """Judge the step. What takes something back is let through."""
        run_id = place.run_id
        is_new = tx.sessions.add_work(run_id, self._session, self._agent, self._kind, self._what, now)
        agent = self._agent if is_new else self._doer(tx, run_id)
        data: dict[str, Any] = {"run": run_id, "step": step.name, "at": str(place), "arguments": step.recorded}
        if not step.is_undo:
            subject = f"step {step.name!r}"
            ring = self._governance.judge(tx, self._session, agent, subject, self._ring, now)
            if isinstance(ring, GateRefusal):
                return _error(ring)
            if isinstance(opinion, GateRefusal):
                self._governance.refuse(tx, self._session, agent, subject, opinion, now)
                return _error(opinion)
            data["ring"] = ring
            error = self._ask_policy(tx, run_id, agent, ring, step, opinion, data, now)
            if error is not None:
                return error
        self._add(tx, agent, f"{self._word(step)}.begun", data, now)
        return None

    def _ask_policy(
        self,
        tx: Transaction,
        run_id: str,
        agent: str,
        ring: int,
        step: Step,
        opinion: object,
        data: dict[str, Any],
        now: float,
    ) -> Mapping[str, Any] | None:
        """Nothing if the policy allows it, or if people have. What it answers goes into `data`."""
        if self._governance.policy(tx.sessions, self._session) is None:
            return None
        request = PolicyRequest(self._session, agent, step.name, self._word(step), ring, arguments_of(step.recorded))
        consent = decide(self._governance, tx, request, opinion)
        assert consent is not None  # there is a policy
        data["policy"] = consent.to_json()
        word = consent.answer.word
        if word in ("allow", "log"):
            return None
        if word == "ask" and self._kind == "act":
            row = tx.sessions.ask(run_id)
            if row is None:
                row = open_ask(tx, run_id, request, step.recorded, consent, now)
                ask_data = {"ask": row.id, "digest": row.digest, "people": row.people, "expires_at": row.expires_at}
                self._add(tx, agent, "ask.opened", {**data, **ask_data}, now)
                return {"type": ASKED, "message": row.reason, "outcome": "refused", "expires": consent.answer.expires}
            is_same = row.digest == digest_of_arguments(step.name, step.recorded)
            if row.state == "yes" and is_same and now < row.expires_at:
                data["ask"] = {"id": row.id, "by": [who for who, *_ in json.loads(row.answers)]}
                return None
        subject = f"step {step.name!r}"
        refusal = refusal_by_policy(subject, request, consent)
        self._governance.refuse(tx, self._session, agent, subject, refusal, now, {"policy": consent.to_json()})
        return _error(refusal)

    def _word(self, step: Step) -> str:
        """An act is one step: what is told of the step tells of the act."""
        return "undo" if step.is_undo else "act" if self._kind == "act" else "step"

    def _add(self, tx: Transaction, agent: str, kind: str, data: Mapping[str, Any], now: float) -> None:
        trail = self._governance.trail
        if self._kind == "act":  # it does one thing after the other: what it wrote before is kept by now
            trail.note_kept(self._head)
        self._head = trail.add(tx, self._session, agent, kind, data, now)

    def placed(self, step: Step) -> Step:
        """What the step begins belongs to the session, unless it is bound to something else."""
        return step._replace(call=_within_session(self._session, step))

    def settled(self, tx: Transaction, place: Place, step: Step, state: StepState, now: float) -> None:
        """Write down how the step ended."""
        is_done = state is StepState.DONE
        if step.is_undo:
            tx.sessions.work_undone(place.run_id, step.name, is_done=is_done)
        data = {"run": place.run_id, "step": step.name, "at": str(place)}
        word = f"{self._word(step)}.{'done' if is_done else 'failed'}"
        self._add(tx, self._doer(tx, place.run_id), word, data, now)

    def appended(self, tx: Transaction, place: Place, stream: str, kind: str, payload: object, now: float) -> None:
        """Write down what a step, or the decision itself, has appended."""
        data = {"run": place.run_id, "at": str(place), "stream": stream, "kind": kind, "payload": payload}
        self._add(tx, self._doer(tx, place.run_id), "event", data, now)

    def finished(self, tx: Transaction, run_id: str, state: RunState, now: float) -> None:
        """Write down that the run is over. Of an act that was not cancelled, that is told already."""
        tx.sessions.work_over(run_id)
        if state is not RunState.COMPLETED and self._kind == "act":
            self._close_ask(tx, run_id, now)
        if self._kind != "act" or state is RunState.CANCELLED:
            data = {"run": run_id, "what": self._what, "state": state.value}
            self._add(tx, self._doer(tx, run_id), f"{self._kind}.over", data, now)
        self._governance.run_ended(run_id)

    def _close_ask(self, tx: Transaction, run_id: str, now: float) -> None:
        """Nobody has to answer any more."""
        row = tx.sessions.ask(run_id)
        if row is not None and row.state == "open":
            state = "expired" if now >= row.expires_at else "withdrawn"
            tx.sessions.put_ask(row._replace(state=state))
            self._add(tx, row.agent, f"ask.{state}", {"ask": row.id, "digest": row.digest}, now)


def _within_session(session: str, step: Step) -> Callable[..., Any]:
    """The step's call, of the same color, as part of the session."""
    call: Callable[..., Any] = step.call

    async def acall(*args: object, **kwargs: object) -> object:
        with in_step_of(session):
            return await call(*args, **kwargs)

    def scall(*args: object, **kwargs: object) -> object:
        with in_step_of(session):
            answer = call(*args, **kwargs)
        return _rest(session, answer) if inspect.iscoroutine(answer) else answer

    return acall if step.color is Color.ASYNC else scall


async def _rest(session: str, coroutine: Coroutine[Any, Any, object]) -> object:
    """What a sync call has left to be awaited."""
    with in_step_of(session):
        return await coroutine


def _error(refusal: GateRefusal) -> dict[str, Any]:
    return {"type": REFUSED, "message": refusal.message, "outcome": "refused", "rule": refusal.rule}


def act(
    governance: Governance, action: Action, session: str, agent: str, inputs: Mapping[str, Any], check: Check | None
) -> Generator[Command, Any, object]:
    """One act: the action's function as a step, after the yes of people where the policy asks for it."""
    yield Govern(SessionGovernor(governance, session, agent, "act", action.name, action.ring, check))
    step = Step(action.name, action.call.call, kwargs=inputs, timeout=action.timeout)
    try:
        return (yield from _perform(governance, action, step, inputs))
    except StepFailedError as error:
        if error.type != ASKED:
            raise
        refusal = error
    yield from _await_people(step, refusal)  # nothing has begun, so whatever ends this leaves nothing to take back
    return (yield from _perform(governance, action, step, inputs))


def _perform(
    governance: Governance, action: Action, step: Step, inputs: Mapping[str, Any]
) -> Generator[Command, Any, object]:
    """Have the step done. Where its outcome is not known, it is taken back."""
    try:
        answer = yield step
        if action.undo is not None and action.call.color is not Color.ASYNC:
            yield Finish(answer)  # a sync call cannot be cancelled: what reached it meanwhile arrives here
    except StepFailedError as error:
        if error.is_outcome_unknown:
            yield from _take_back(governance.store, action, inputs)
        raise
    except RunCancelledError as cancelled:
        if cancelled.has_begun:
            yield from _take_back(governance.store, action, inputs)
        raise
    return answer


def _await_people(step: Step, asked: StepFailedError) -> Generator[Command, Any, None]:
    """Wait for the yes of people; a no, or no answer in time, is a refusal."""
    try:
        reply = yield Wait(ANSWER, timeout=float(asked.error["expires"]))
    except WaitTimeoutError as late:
        message = f"{step.name!r} was refused: it was not approved in time ({asked.message}). Nothing was done."
        raise StepFailedError(step.name, late.step_place, _error(GateRefusal("ask", message))) from None
    if not reply["yes"]:
        message = f"{step.name!r} was refused by {reply['by']!r}: {reply['reason'] or 'no reason was given'}."
        raise StepFailedError(step.name, asked.step_place, _error(GateRefusal("ask", f"{message} Nothing was done.")))


def _take_back(store: Store, action: Action, inputs: Mapping[str, Any]) -> Generator[Command, Any, None]:
    if action.undo is None:
        return
    undo_inputs = undo_arguments(action.undo, inputs, None)
    ask = undo_step(f"undo {action.name}", action.undo, undo_inputs, retry=Retry(3, delay=0.1), timeout=action.timeout)
    if action.undo_window is not None:
        ask = ask._replace(call=_within(store, action.undo_window, action.undo, ask))
    while True:
        try:
            yield ask
        except RunCancelledError:
            continue  # it may have happened or not; an undo tolerates both
        except StepFailedError:
            return  # told as what is left
        return


def _within(store: Store, window: float, undo: CheckedCallable, ask: Step) -> Any:
    """The undo's call, with the time looked at first."""
    call = ask.call

    def check() -> None:
        row = store.read_sessions(lambda rows: rows.work(current_step().run_id))
        if row is not None and store.clock() > row.begun_at + window:
            raise UndoWindowPassedError(f"its undo window of {window:g} s has passed")

    if undo.color is Color.ASYNC:

        async def aundo(**arguments: object) -> object:
            check()
            return await call(**arguments)  # type: ignore[misc]  # ASYNC was the verdict when it was registered

        return aundo

    def sundo(**arguments: object) -> object:
        check()
        return call(**arguments)

    return sundo


def refusal_of(error: Mapping[str, Any] | None) -> GateRefusal | None:
    """The refusal that a run failed on, if it did."""
    if error is None or error.get("type") != REFUSED:
        return None
    return GateRefusal(str(error.get("rule")), str(error.get("message")))
