"""Govern sessions: who is in them, what they may do, what was done, and how one of them is stopped.

    hypervisor = Hypervisor("troth.db", actions=[Action("deploy", deploy, undo=roll_back)])
    session = hypervisor.create("ops")
    member = hypervisor.join(session, "agent-1", score=0.8)
    hypervisor.activate(session)
    member.act("deploy", version=3)
    hypervisor.kill(session, "agent-1", reason="it deploys too much")

Wholly sync: a call has done its work when it returns. Every rule is one short commit. What waits for user code (`kill`,
`terminate`, the hooks) is awaited on a loop with `await bridge.call(lambda: hypervisor.kill(…))`.
"""

import contextlib
import json
import logging
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.arguments import check_path
from troth.runtime.conversations import Conversation, Conversations
from troth.runtime.engine import RunFailedError
from troth.runtime.engine.commands import Command, Govern
from troth.runtime.engine.errors import RunMismatchError
from troth.runtime.engine.open import check_local_engine, local_engine
from troth.runtime.engine.port import LocalEngine
from troth.runtime.sagas.outcome import SagaFailedError, SagaOutcome, SagaState
from troth.runtime.sagas.saga import Saga
from troth.runtime.sessions.action import Action
from troth.runtime.sessions.audit.anchor import Anchor
from troth.runtime.sessions.audit.key import find_key
from troth.runtime.sessions.audit.trail import Trail
from troth.runtime.sessions.audit.verify import AuditVerdict, verify_trail
from troth.runtime.sessions.checks import check_id, check_number, check_text
from troth.runtime.sessions.commit_points import ACT, ANSWER_ASK, CREATE, END, JOIN, KILL, MEMBER, STATE, WORK
from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.conversing import ConversationGate
from troth.runtime.sessions.errors import (
    AuditBrokenError,
    CannotJoinError,
    HookFailedError,
    NotAMemberError,
    SessionNotEndedError,
    SessionStateError,
    UnknownActionError,
)
from troth.runtime.sessions.governance import Governance, unknown_session
from troth.runtime.sessions.governed_run import ANSWER, SessionGovernor, act, refusal_of
from troth.runtime.sessions.isolated import Elsewhere, IsolatedConversation, check_reference
from troth.runtime.sessions.kill import Kill, Stopper, kill_decision, request_end
from troth.runtime.sessions.member import Member, renamed
from troth.runtime.sessions.policy.allowlist import problem_of_command, problem_of_path
from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.sessions.policy.decision import PolicyRequest
from troth.runtime.sessions.policy.gate import GateRefusal, check_standing
from troth.runtime.sessions.policy.hooks import Hook
from troth.runtime.sessions.policy.ring import Ring, ring_of
from troth.runtime.sessions.session import MemberView, Session, view_of
from troth.runtime.sessions.state import SessionState, check_state
from troth.runtime.store import Store, Transaction, open_store
from troth.runtime.store.maintenance_thread import MaintenanceThread
from troth.runtime.store.open import is_store
from troth.runtime.store.rows.sessions import AskRow, AuditRow, KillRow, MemberRow, SessionRow, SessionRows
from troth.runtime.workflows.execute.failures import check_inputs
from troth.runtime.workflows.execute.run_ids import new_id
from troth.runtime.workflows.link.from_saga import outcome_of
from troth.runtime.workflows.link.linker import Registry
from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.registry import Runnable, WorkflowRegistry

__all__ = ["Hypervisor"]

log = logging.getLogger("troth.sessions")
_TICK = 0.25  # seconds between looks for sessions whose time is up: they end within one
_PATIENCE = 5.0  # seconds that a look which is under way gets to end when the hypervisor is closed
_ELEVATION: Mapping[Ring, float] = {Ring.ROOT: 0.95, Ring.PRIVILEGED: 0.85, Ring.STANDARD: 0.5}
"""The score that an elevation to each ring needs."""
_LONGEST_ELEVATION = 3600.0
_KILL = "session kill"


class Hypervisor:
    """Governs the sessions of one store: a path, or a store to share with others, which then stays open.

    `audit_key` signs the audit trail and is not in the store; without it `TROTH_AUDIT_KEY` is used, else a file of the
    user's. `anchor` keeps its newest entry elsewhere; with `strict` nothing goes on while it fails. `trust(agent)`
    answers a score, `verifier(session, agent)` whether the agent behaves, `history(agent, history)` whether its past is
    in order; each has `hook_timeout` seconds, and one that fails refuses the agent (`on_hook_failure="probation"`: puts
    it into the sandbox). `recover=False` leaves alone what other processes began.

    `runs` are sagas and workflows that go on after a restart, and `policies` those that sessions of an earlier process
    are to find again; `on_kill` is called, once, with the id of a kill. Several processes may govern one store.
    `engine` carries out what is done here: an embedded one on the same store, which then stays open; without it there
    is one for this hypervisor.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str],
        *,
        audit_key: bytes | str | None = None,
        anchor: Anchor | None = None,
        strict: bool = False,
        actions: Iterable[Action] = (),
        runs: Iterable[Runnable] = (),
        trust: Callable[[str], object] | None = None,
        verifier: Callable[[str, str], object] | None = None,
        history: Callable[[str, Any], object] | None = None,
        hook_timeout: float | None = None,
        on_hook_failure: Literal["refuse", "probation"] | None = None,
        on_kill: Sequence[Callable[[str], object]] = (),
        recover: bool = True,
        registry: Registry | None = None,
        policies: Iterable[Callable[[PolicyRequest], object]] = (),
        engine: LocalEngine | None = None,
    ) -> None:
        hooks = {"trust": trust, "verifier": verifier, "history": history}
        if not any(hooks.values()) and (hook_timeout is not None or on_hook_failure is not None):
            raise MisuseError("`hook_timeout` and `on_hook_failure` need a hook, and none was given. Give one.")
        if on_hook_failure not in (None, "refuse", "probation"):
            raise MisuseError(f"`on_hook_failure` is {on_hook_failure!r}; it can be 'refuse' or 'probation'.")
        limit = 5.0 if hook_timeout is None else check_number("`hook_timeout`", hook_timeout, 0.001, 3600)
        self._hooks = {name: Hook(name, call, limit) for name, call in hooks.items() if call is not None}
        self._is_lenient = on_hook_failure == "probation"
        self._callbacks = tuple(on_kill)
        for callback in self._callbacks:
            if bridge.color_of(callback) not in (Color.SYNC, Color.ASYNC):
                raise MisuseError(
                    f"`on_kill` has {callback!r}, whose color cannot be determined. It might never be called."
                )
        key = find_key(audit_key)
        assert key is not None  # it is made where there is none
        if not is_store(store):
            check_path("store", store)
        if engine is not None:
            check_local_engine(engine, store)
        self._owns_store = isinstance(store, str | os.PathLike)
        self.store: Store = open_store(store) if isinstance(store, str | os.PathLike) else store
        self._anchor = anchor or Anchor.of_store(self.store.path)
        self.governance = Governance(self.store, Trail(self.store, key, self._anchor, is_strict=strict))
        self._trail = self.governance.trail
        self._owns_engine = engine is None
        self.engine = local_engine(self.store, recover=recover) if engine is None else engine
        self._stopper = Stopper(self.governance, self.store, self.engine, self._interrupt)
        self._workflows = WorkflowRegistry(self.engine, self.store, registry or Registry({}, {}, {}, self._talks))
        self._actions: dict[str, Action] = {}
        self._talking: weakref.WeakValueDictionary[str, Conversation] = weakref.WeakValueDictionary()
        self._conversations: Conversations | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        for policy in policies:
            self.governance.remember_policy(policy)
        self.engine.register(self._decide_kill, _KILL)
        for action in actions:
            self.register(action)
        for run in runs:
            self._know(run)
        self.engine.open()
        self._keeper = MaintenanceThread("troth-sessions")
        self._is_ticking = False
        self._stop_ticking = self.store.chore(_TICK, self._tick_soon)

    # What is known here

    def register(self, action: Action) -> None:
        """Make an action known, so that members can have it performed and acts go on after a restart."""
        if not isinstance(action, Action):
            raise MisuseError(f"{action!r} is not an `Action`. Nothing was registered.")
        if action.name in self._actions:
            raise MisuseError(f"There is an action {action.name!r} already. Give this one another name.")

        check = partial(self._check_inputs, action) if action.command is not None or action.paths else None

        def decision(session: str, agent: str, inputs: dict[str, Any]) -> Generator[Command, Any, object]:
            return (yield from act(self.governance, action, session, agent, inputs, check))

        self._actions[action.name] = action
        self.engine.register(decision, f"session act {action.name}")

    def _check_inputs(self, action: Action, session_id: str, inputs: Mapping[str, Any]) -> GateRefusal | None:
        """Refuse a command or a path that the session does not allow."""
        config = self.governance.config_now(session_id)
        if config is None:
            return None  # the commit refuses it
        if action.command is not None and inputs.get(action.command) is not None:
            problem = problem_of_command(inputs[action.command], config.commands or ())
            if problem is not None:
                return GateRefusal("command", f"{action.name!r} was refused: {problem}. Nothing was started.")
        for name in action.paths:
            if inputs.get(name) is not None:
                problem = problem_of_path(inputs[name], config.paths or ())
                if problem is not None:
                    return GateRefusal("path", f"{action.name!r} was refused: {problem}. Nothing was done.")
        return None

    def _check_not_inert(self, config: SessionConfig) -> None:
        """Refuse limits that no action here would ask for."""
        actions = self._actions.values()
        if config.commands is not None and not any(action.command is not None for action in actions):
            raise MisuseError(
                "`commands` was given, but no registered action has a `command`, so it would never apply.\n"
                "Nothing was created. Mark the input of an action that is a command: `Action(…, command='line')`."
            )
        if config.paths is not None and not any(action.paths for action in actions):
            raise MisuseError(
                "`paths` was given, but no registered action has `paths`, so it would never apply.\n"
                "Nothing was created. Mark the inputs of an action that are paths: `Action(…, paths=['file'])`."
            )

    def _know(self, what: Runnable) -> tuple[str, Any]:
        """Make a saga or a workflow known, so that its runs in sessions go on after a restart."""
        name, workflow, is_new = self._workflows.take(what)
        if is_new:

            def decision(
                session: str,
                agent: str,
                run_id: str,
                inputs: dict[str, object],
                source: str,  # noqa: ARG001  it is part of the record
            ) -> Generator[Command, Any, object]:
                yield Govern(SessionGovernor(self.governance, session, agent, "run", workflow.spec.name))
                return (yield from self._workflows.deciding(workflow, run_id, inputs, {}))

            self.engine.register(decision, f"session {name}")
        return name, workflow

    def _talks(self) -> Conversations:
        with self._lock:
            if self._conversations is None:
                self._conversations = Conversations(self.store)
            return self._conversations

    # Sessions

    def create(self, creator: str, config: SessionConfig | None = None, *, session_id: str | None = None) -> Session:
        """Create a session. Nobody is in it yet."""
        check_id("The creator", creator)
        config = SessionConfig() if config is None else config
        if not isinstance(config, SessionConfig):
            raise MisuseError(f"`config` is {config!r}; it has to be a `SessionConfig`. Nothing was created.")
        self._check_not_inert(config)
        if config.policy is not None:
            self.governance.remember_policy(config.policy)
        new = check_id("The session's id", session_id if session_id is not None else uuid.uuid4().hex)

        def work(tx: Transaction, now: float) -> SessionRow:
            row = SessionRow(
                new, creator, SessionState.CREATED.value, config.to_json(), now, now + config.max_duration, None, None
            )
            if not tx.sessions.add_session(row):
                raise MisuseError(f"There is a session {new!r} already. Nothing was created; use another id.")
            self._trail.add(tx, new, creator, "session.created", {"config": json.loads(row.config)}, now)
            return row

        return view_of(self.governance.commit(CREATE, work), [], self.store.clock())

    @property
    def actions(self) -> Mapping[str, Action]:
        """The actions that are registered, by name."""
        return self._actions

    def get(self, session: Session | str) -> Session | None:
        """A session as it is now; nothing if there is none of that id."""
        session_id = _id(session)

        def look(rows: SessionRows) -> Session | None:
            row = rows.session(session_id)
            return None if row is None else view_of(row, rows.members(session_id), self.store.clock())

        return self.store.read_sessions(look)

    def sessions(
        self,
        state: SessionState | str | None = None,
        *,
        limit: int = 100,
        before: Session | None = None,
    ) -> list[Session]:
        """Sessions, newest first: those of one state, or all that are not archived. `before` goes on after a page."""
        states = (
            [_state(state)]
            if state is not None
            else [member for member in SessionState if member != SessionState.ARCHIVED]
        )
        check_number("`limit`", limit, 1, 100_000, whole=True)
        after = None if before is None else (before.created_at, before.id)

        def look(rows: SessionRows) -> list[Session]:
            page = rows.sessions(states=[member.value for member in states], before=after, limit=limit)
            return [view_of(row, rows.members(row.id), self.store.clock()) for row in page]

        return self.store.read_sessions(look)

    def count(self, state: SessionState | str | None = None) -> int:
        """How many sessions there are, of all or of one state."""
        state_value = None if state is None else _state(state).value
        return self.store.read_sessions(lambda rows: rows.count_sessions(state_value))

    def activate(self, session: Session | str) -> Session:
        """Let the members act. Somebody has to be there."""
        session_id = _id(session)

        def work(tx: Transaction, now: float) -> None:
            row = self._checked(tx, session_id, "activate", now)
            if tx.sessions.count_present(row.id) == 0:
                raise SessionStateError(
                    f"The session {session_id!r} was not activated: it has no member now. Let an agent `join` first."
                )
            tx.sessions.set_session_state(session_id, SessionState.ACTIVE.value)
            self._trail.add(tx, session_id, "", "session.activated", {}, now)

        self.governance.commit(STATE, work)
        return self._view(session_id)

    def _checked(self, tx: Transaction, session_id: str, operation: str, now: float) -> SessionRow:
        """The session, if the operation is done in its state and its time is not up."""
        row = self.governance.find(tx, session_id)
        check_state(session_id, operation, row.state)
        if operation not in ("terminate", "leave", "kill") and now >= row.ends_at:
            raise SessionStateError(
                f"The time of session {session_id!r} is over, so `{operation}` was refused. Nothing was changed."
            )
        return row

    def _view(self, session_id: str) -> Session:
        session = self.get(session_id)
        if session is None:
            raise unknown_session(session_id)
        return session

    # Members

    def join(
        self,
        session: Session | str,
        agent: str,
        *,
        score: float | None = None,
        actions: Collection[str] = (),
        history: Any = None,
        consensus: Collection[str] = (),
    ) -> Member:
        """Let an agent in. All of it happens in one commit, or nothing.

        `score` is what the caller trusts it with; where there is a trust source, the lower of the two counts.
        `consensus` names who vouches for it: members who are there, or the creator. `actions` are those it wants to
        have performed; each has to be registered.
        """
        session_id = _id(session)
        check_id("The agent", agent)
        for who in consensus:
            check_id("Who vouches", who)
        unknown = sorted(name for name in actions if name not in self._actions)
        if unknown:
            raise self._unknown_action(unknown[0])
        if score is not None:
            check_number("`score`", score, 0, 1)
        if score is None and "trust" not in self._hooks:
            raise MisuseError("`score` is missing, and there is no trust source to ask. No agent was admitted.")
        if history is not None and "history" not in self._hooks:
            raise MisuseError("`history` was given, but there is no hook `history` that reads it.")
        self._precheck_join(session_id, agent)
        effective, is_on_probation = self._trusted(session_id, agent, score, history)

        def work(tx: Transaction, now: float) -> None:
            row = self._checked(tx, session_id, "join", now)
            rows, config = tx.sessions, self.governance.config(tx, session_id)
            _check_joining(rows, session_id, agent, config)
            present = rows.present(session_id)
            strangers = sorted(set(consensus) - {*present, row.creator} | ({agent} & set(consensus)))
            if strangers:
                raise CannotJoinError(
                    f"{strangers[0]!r} cannot vouch for {agent!r}: only present members and the creator can.\n"
                    "Nothing was changed."
                )
            ring = ring_of(effective, config.min_score, consensus, {*present, row.creator})
            ring = Ring.SANDBOX if is_on_probation else ring
            rows.put_member(
                MemberRow(
                    session_id, agent, "present", int(ring), effective, json.dumps(sorted(consensus)),
                    json.dumps(sorted(actions)), None, now, None, None, None, None, now, 0.0, now,
                )
            )  # fmt: skip
            if row.state == SessionState.CREATED:
                rows.set_session_state(session_id, SessionState.HANDSHAKING.value)
            data = {
                "score": effective,
                "ring": int(ring),
                "consensus": sorted(consensus),
                "actions": sorted(actions),
                "on_probation": is_on_probation,
            }
            self._trail.add(tx, session_id, agent, "member.joined", data, now)

        self.governance.commit(JOIN, work)
        return Member(self, session_id, agent)

    def _precheck_join(self, session_id: str, agent: str) -> None:
        """Refuse early what would be refused in the end, so that no hook is asked for nothing."""

        def look(rows: SessionRows) -> None:
            row = rows.session(session_id)
            if row is None:
                raise unknown_session(session_id)
            check_state(session_id, "join", row.state)
            _check_joining(rows, session_id, agent, SessionConfig.from_json(row.config))

        self.store.read_sessions(look)

    def _trusted(self, session_id: str, agent: str, score: float | None, history: Any) -> tuple[float, bool]:
        """The score that counts, and whether a hook that failed puts the agent on probation."""
        effective = 1.0 if score is None else score
        try:
            if "trust" in self._hooks:
                effective = min(effective, self._score(agent))
            if "history" in self._hooks and not self._hooks["history"].ask(agent, history):
                raise CannotJoinError(f"The history of {agent!r} was rejected by the hook. Nothing was changed.")
            if "verifier" in self._hooks and not self._hooks["verifier"].ask(session_id, agent):
                raise CannotJoinError(f"{agent!r} was rejected by the verifier. Nothing was changed.")
        except HookFailedError as problem:
            if not self._is_lenient:
                raise CannotJoinError(f"{agent!r} was not admitted: {problem}\nNothing was changed.") from problem
            return (0.0 if score is None else score), True
        return effective, False

    def _score(self, agent: str) -> float:
        score = self._hooks["trust"].ask(agent)
        try:
            return check_number("The score from `trust`", score, 0, 1)
        except MisuseError as wrong:
            raise HookFailedError(str(wrong)) from wrong

    def member(self, session: Session | str, agent: str) -> Member:
        """Somebody who is, or was, in a session."""
        self.member_view(_id(session), agent)
        return Member(self, _id(session), agent)

    def member_view(self, session_id: str, agent: str) -> MemberView:
        """How a member stands now."""
        for member in self._view(session_id).members:
            if member.agent == agent:
                return member
        raise _not_a_member(session_id, agent)

    def leave(self, session: Session | str, agent: str) -> None:
        """Let an agent leave. It can join again."""
        session_id = _id(session)

        def work(tx: Transaction, now: float) -> None:
            self._checked(tx, session_id, "leave", now)
            member = tx.sessions.member(session_id, agent)
            if member is None or member.state not in ("present", "suspended"):
                raise _not_a_member(session_id, agent)
            tx.sessions.set_member_state(session_id, agent, "left", left_at=now)
            self._trail.add(tx, session_id, agent, "member.left", {}, now)

        self.governance.commit(MEMBER, work)

    def elevate(
        self, session: Session | str, agent: str, ring: Ring | int, *, attestation: str = "", seconds: float = 300
    ) -> Member:
        """Give a member a more privileged ring for a time. Rings 0 and 1 need an attestation: who answers for it."""
        session_id, target = _id(session), Ring(int(check_number("`ring`", ring, 0, 2, whole=True)))
        check_number("`seconds`", seconds, 0.001, _LONGEST_ELEVATION)
        if target <= Ring.PRIVILEGED:
            check_text("`attestation`", attestation)

        def work(tx: Transaction, now: float) -> GateRefusal | None:
            self._checked(tx, session_id, "elevate", now)
            member = tx.sessions.member(session_id, agent)
            if member is None or member.state != "present":
                raise _not_a_member(session_id, agent)
            why = None
            if member.elevated_until is not None and now < member.elevated_until:
                why = "it is already elevated"
            elif target >= member.ring:
                why = f"it is in ring {member.ring} already"
            elif member.score < _ELEVATION[target]:
                why = f"this needs a score of {_ELEVATION[target]:g}, and it has {member.score:g}"
            if why is not None:
                refusal = GateRefusal("elevation", f"{agent!r} was not elevated to ring {int(target)}: {why}.")
                self.governance.refuse(tx, session_id, agent, f"elevation to ring {int(target)}", refusal, now)
                return refusal
            tx.sessions.set_elevation(session_id, agent, int(target), now + seconds)
            data = {"ring": int(target), "until": now + seconds, "attestation": attestation}
            self._trail.add(tx, session_id, agent, "member.elevated", data, now)
            return None

        refusal = self.governance.commit(MEMBER, work)
        if refusal is not None:
            raise refusal.error()
        return Member(self, session_id, agent)

    @property
    def has_verifier(self) -> bool:
        """Whether somebody can be asked how members behave."""
        return "verifier" in self._hooks

    def verify(self, session: Session | str, agent: str) -> bool:
        """Ask the verifier whether a member behaves; the answer is audited."""
        session_id = _id(session)
        if "verifier" not in self._hooks:
            raise MisuseError("There is no verifier to ask: give `Hypervisor(…, verifier=…)`.")
        self.member_view(session_id, agent)
        behaves = bool(self._hooks["verifier"].ask(session_id, agent))
        data = {"behaves": behaves}
        self.governance.commit(
            MEMBER, lambda tx, now: self._trail.add(tx, session_id, agent, "member.verified", data, now)
        )
        return behaves

    def monitor(self, *, below: float = 0.5) -> list[tuple[str, MemberView]]:
        """Ask for scores anew, and name the members below a score, each with its session."""
        check_number("`below`", below, 0, 1)
        rows = self.store.read_sessions(lambda rows: rows.present_in_open_sessions())
        if "trust" in self._hooks:
            scores = {agent: self._score(agent) for agent in {row.agent for row in rows}}
            for row in rows:
                if scores[row.agent] != row.score:
                    self._rescore(row, scores[row.agent])
            rows = self.store.read_sessions(lambda rows: rows.present_in_open_sessions())
        return [(row.session, self.member_view(row.session, row.agent)) for row in rows if row.score < below]

    def _rescore(self, member: MemberRow, score: float) -> None:
        def work(tx: Transaction, now: float) -> None:
            session = self.governance.find(tx, member.session)
            config = self.governance.config(tx, member.session)
            everybody = {*tx.sessions.present(member.session), session.creator} - {member.agent}
            ring = ring_of(score, config.min_score, json.loads(member.vouched), everybody)
            tx.sessions.set_score(member.session, member.agent, score, int(ring))
            data = {"score": score, "ring": int(ring), "before": member.score}
            self._trail.add(tx, member.session, member.agent, "member.scored", data, now)

        self.governance.commit(MEMBER, work)

    def readmit(self, session: Session | str, agent: str, *, reason: str) -> None:
        """Lift a suspension, or let somebody who was killed join again."""
        session_id = _id(session)
        check_text("`reason`", reason)

        def work(tx: Transaction, now: float) -> None:
            self._checked(tx, session_id, "readmit", now)
            member = tx.sessions.member(session_id, agent)
            if member is None or member.state not in ("killed", "suspended"):
                raise MisuseError(f"{agent!r} is neither killed nor suspended in session {session_id!r}.")
            state = "present" if member.state == "suspended" else "left"
            tx.sessions.set_member_state(session_id, agent, state, left_at=None if state == "present" else now)
            tx.sessions.set_breach(session_id, agent, 0.0, now)
            data = {"reason": reason, "before": member.state}
            self._trail.add(tx, session_id, agent, "member.readmitted", data, now)

        self.governance.commit(MEMBER, work)

    # Acting

    def perform_act(
        self, session_id: str, agent: str, name: str, inputs: Mapping[str, Any], *, run_id: str | None = None
    ) -> Any:
        """Have an action performed for a member; see `Member.act`. With the id of an earlier act it is done once."""
        action = self._actions.get(name)
        if action is None:
            raise self._unknown_action(name)
        if action.call.takes is None or inputs.keys() ^ action.call.takes:  # else it takes and gets the same
            for wrong, why in ((action.call.surplus(inputs), "does not take"), (action.call.missing(inputs), "needs")):
                if wrong:
                    raise MisuseError(f"The action {name!r} {why} {wrong[0]!r}. Nothing was done.")
        if self._trail.is_strict:
            self._trail.check_strict()
        # Ids that grow: rows that are written one after the other then lie side by side in the file.
        run_id = run_id or f"act-{int(self.store.clock() * 1000):013}-{os.urandom(6).hex()}"
        with self.governance.anchoring(run_id):
            try:
                args = (session_id, agent, dict(inputs))
                return self.engine.run_short(ACT, f"session act {name}", *args, run_id=run_id)
            except RunFailedError as failed:
                refusal = refusal_of(failed.error)
                if refusal is not None:
                    raise refusal.error() from None
                raise

    def perform_run(
        self, session_id: str, agent: str, what: Runnable, inputs: Mapping[str, object] | None, run_id: str | None
    ) -> RunReport | SagaOutcome:
        """Run a saga or a workflow for a member; see `Member.run`."""
        name, workflow = self._know(what)
        values = check_inputs(workflow.spec.name, workflow.spec.inputs, {} if inputs is None else inputs)
        this_id = run_id or new_id(workflow.spec.name)
        self._check_standing(session_id, agent, f"the run of {workflow.spec.name!r}")
        args = (session_id, agent, this_id, values, workflow.linked.source)

        def tell(tx: Transaction) -> None:
            """It goes on for this member from its first moment on: also while it waits for what comes first."""
            tx.sessions.add_work(this_id, session_id, agent, "run", workflow.spec.name, self.store.clock())

        with self.governance.anchoring(this_id), contextlib.suppress(RunFailedError):  # the report tells
            begin = partial(self.engine.run, f"session {name}", *args, run_id=this_id, label=workflow.spec.name)
            try:
                begin(promise=tell)
            except RunMismatchError:  # there is one of this id: it is attached to, if it is the same
                begin()
        record = self.engine.find(this_id)
        assert record is not None
        report = self._workflows.build_report(renamed(record, name), self.engine.steps(this_id))
        if isinstance(what, Saga):
            outcome = outcome_of(what, report)
            if outcome.state is not SagaState.COMPLETED:
                raise SagaFailedError(outcome)
            return outcome
        return report

    def open_isolated(
        self, session_id: str, member: str, agent: object, conversation_id: str | None
    ) -> IsolatedConversation:
        """Open a conversation whose agent runs in a process of its own; see `Member.converse`."""
        reference = check_reference(agent)
        conversation = self.open_conversation(session_id, member, Elsewhere(), conversation_id)
        request = {
            "store": self.store.address,
            "session": session_id,
            "member": member,
            "conversation": conversation.id,
            "agent": reference,
            "key": self._trail.key.secret.decode("latin-1"),
        }
        return IsolatedConversation(self.store, conversation, request)

    def open_conversation(
        self, session_id: str, member: str, agent: object, conversation_id: str | None
    ) -> Conversation:
        """Open a conversation for a member; see `Member.converse`."""
        this_id = check_id("The conversation's id", conversation_id or uuid.uuid4().hex)

        def then(tx: Transaction, now: float) -> None:
            row = tx.sessions.work(this_id)
            if row is not None and (row.session, row.agent) != (session_id, member):
                raise MisuseError(f"The conversation {this_id!r} belongs to {row.agent!r} in {row.session!r}.")
            tx.sessions.add_work(this_id, session_id, member, "conversation", this_id, now)

        subject, data = "a conversation", {"conversation": this_id}
        self.governance.perform(WORK, session_id, member, subject, Ring.SANDBOX, "conversation.opened", data, then)
        gate = ConversationGate(self.governance, session_id, member, this_id, self._ring_of_tool)
        conversation = self._talks().open(agent, this_id, gate=gate)
        self._talking[this_id] = conversation
        return conversation

    def _ring_of_tool(self, name: str) -> Ring:
        """The ring that a tool needs: that of the action of its name, or the standard one."""
        action = self._actions.get(name)
        return Ring.STANDARD if action is None else action.ring

    def _check_standing(self, session_id: str, agent: str, what: str) -> None:
        row = self.store.read_sessions(lambda rows: rows.standing(session_id, agent))
        refusal = check_standing(row, session_id, agent, what, self.store.clock())
        if refusal is not None:
            self.governance.refuse_now(session_id, agent, what, refusal)

    def _unknown_action(self, name: str) -> UnknownActionError:
        names = ", ".join(map(repr, sorted(self._actions))) or "none"
        return UnknownActionError(
            f"There is no action {name!r} here; there are {names}. Nothing was done.\n"
            "Register it: `hypervisor.register(Action(…))`."
        )

    # Acts that wait for people

    def asks(self, session: Session | str | None = None) -> list[Ask]:
        """Acts that wait for the yes of a person, of all sessions or of one, the oldest first."""
        session_id = None if session is None else _id(session)
        return [Ask.of(row) for row in self.store.read_sessions(lambda rows: rows.open_asks(session_id))]

    def answer(self, ask: Ask | str, *, by: str, yes: bool, reason: str = "", digest: str | None = None) -> Ask:
        """Answer an act that waits. A no ends it; it goes on when as many people as the policy asks for have said yes.

        The yes is for what was asked and nothing else. `digest` makes sure that it is what you have seen: that of an
        `Ask` you were given is taken. An agent cannot answer for itself, and nobody twice.
        """
        ask_id, seen_digest = (ask.id, ask.digest) if isinstance(ask, Ask) else (ask, digest)
        check_id("Who answers", by)
        if not isinstance(yes, bool):
            raise MisuseError(f"`yes` is {yes!r}; it has to be True or False. Nothing was answered.")

        def work(tx: Transaction, now: float) -> AskRow:
            row = tx.sessions.ask(ask_id)
            if row is None:
                raise MisuseError(
                    f"There is no act {ask_id!r} that waits for an answer. `hypervisor.asks()` lists those that do."
                )
            answers = json.loads(row.answers)
            why = _no_answer(row, by, seen_digest, [who for who, *_ in answers], now)
            if why is not None:
                raise MisuseError(f"{row.what!r} of {row.agent!r} was not answered: {why}.")
            answers.append([by, yes, reason, now])
            state = "no" if not yes else "yes" if len(answers) >= row.people else "open"
            row = row._replace(state=state, answers=json.dumps(answers))
            tx.sessions.put_ask(row)
            if state != "open":
                reply = json.dumps({"yes": yes, "by": by, "reason": reason})
                tx.send_signal(row.id, ANSWER, reply, now, key=ANSWER)
            data = {"ask": row.id, "digest": row.digest, "by": by, "yes": yes, "reason": reason, "state": state}
            self._trail.add(tx, row.session, row.agent, "ask.answered", data, now)
            return row

        return Ask.of(self.governance.commit(ANSWER_ASK, work))

    # Killing

    def kill(
        self,
        session: Session | str,
        agent: str,
        *,
        reason: str,
        substitute: str | None = None,
        timeout: float = 5,
    ) -> Kill:
        """Kill an agent. Its membership is revoked in the first commit: nothing of its lands after that.

        Then what it has going on is stopped and undone, or handed to `substitute`, a member who is there. A second
        kill answers the same; if something was left, it tries again. The answer is what the store tells.
        """
        session_id = _id(session)
        check_text("`reason`", reason)
        check_number("`timeout`", timeout, 0, 3600)

        def work(tx: Transaction, now: float) -> KillRow:
            rows = tx.sessions
            self._checked(tx, session_id, "kill", now)
            member = rows.member(session_id, agent)
            if member is None:
                raise _not_a_member(session_id, agent)
            earlier = rows.kill_of(session_id, agent)
            if member.state == "killed" and earlier is not None:
                if earlier.answer is not None and json.loads(earlier.answer)["left"]:
                    rows.retry_kill(earlier.id, earlier.tries)
                    again = earlier.tries + 1
                    tx.add_run(f"{earlier.id}-{again}", _KILL, json.dumps([earlier.id, timeout, again]), now)
                    return earlier._replace(tries=again, answer=None)
                return earlier
            if substitute is not None and (substitute == agent or substitute not in rows.present(session_id)):
                raise NotAMemberError(f"{substitute!r} cannot take over: it is not in session {session_id!r}.")
            row = KillRow(f"kill-{uuid.uuid4().hex}", session_id, agent, reason, substitute, now, 1, None)
            rows.set_member_state(session_id, agent, "killed", left_at=now)
            for work_row in rows.open_work(session_id, agent):
                is_handed = substitute is not None and work_row.kind not in ("conversation", "job")
                rows.work_killed(work_row.id, row.id, substitute if is_handed else None)
                if not is_handed:
                    request_end(tx, work_row, now)
            rows.add_kill(row)
            text = json.dumps([row.id, timeout, 1])
            tx.add_run(f"{row.id}-1", _KILL, text, now)
            data = {"kill": row.id, "reason": reason, "substitute": substitute}
            self._trail.add(tx, session_id, agent, "member.killed", data, now)
            return row

        row = self.governance.commit(KILL, work)
        if row.answer is None:
            self.engine.run(_KILL, row.id, self._patience(row, timeout), row.tries, run_id=f"{row.id}-{row.tries}")
            self._trail.anchor_newest()
        answered = self.store.read_sessions(lambda rows: rows.kill(row.id))
        assert answered is not None
        return Kill.of(answered)

    def _patience(self, row: KillRow, timeout: float) -> float:
        """The time that was given when this try was written down: those who come later wait for that one."""
        run = self.engine.find(f"{row.id}-{row.tries}")
        return timeout if run is None else float(run.args[1])

    def _decide_kill(self, kill_id: str, timeout: float, tries: int) -> Generator[Command, Any, None]:
        return (yield from kill_decision(self._stopper, self.governance, self._callbacks, kill_id, timeout, tries))

    def _interrupt(self, conversation_id: str) -> None:
        conversation = self._talking.get(conversation_id)
        if conversation is not None:
            conversation.interrupt()

    # Ending

    def terminate(self, session: Session | str, *, reason: str = "it was terminated", timeout: float = 5) -> Session:
        """End a session: nobody acts any more, what is open is cancelled and undone, and the audit trail is verified.

        `AuditBrokenError` if the trail does not hold; `SessionNotEndedError` if something resists. The session then
        stays terminating, and can be terminated again.
        """
        session_id = _id(session)
        check_text("`reason`", reason)
        check_number("`timeout`", timeout, 0, 3600)
        self._begin_end(session_id, reason)
        verdict = self.verify_audit()
        if verdict.is_broken:
            raise AuditBrokenError(
                f"The session {session_id!r} is terminating, and its audit trail is not valid: {verdict.problem}.\n"
                "No member can act in it. Run `troth audit verify`.",
                verdict,
            )
        unstopped = self._stopper.stop(self.store.read_sessions(lambda rows: rows.open_work(session_id)), timeout)
        if unstopped or not self._archive(session_id):
            self._note_left(session_id, unstopped)
            raise SessionNotEndedError(
                f"The session {session_id!r} stays terminating: {'; '.join(unstopped) or 'there is activity in it'}.\n"
                "No member can act in it. `terminate` tries again.",
                unstopped,
            )
        return self._view(session_id)

    def _begin_end(self, session_id: str, reason: str) -> None:
        def work(tx: Transaction, now: float) -> None:
            row = self._checked(tx, session_id, "terminate", now)
            if row.state == SessionState.TERMINATING:
                return
            ending = json.dumps({"reason": reason})
            tx.sessions.set_session_state(session_id, SessionState.TERMINATING.value, ending=ending)
            for work_row in tx.sessions.open_work(session_id):
                request_end(tx, work_row, now)
            self._trail.add(tx, session_id, "", "session.terminating", {"reason": reason}, now)

        self.governance.commit(END, work)

    def _archive(self, session_id: str) -> bool:
        """Archive a session that is terminating, unless there is activity in it. Answers whether it is archived."""

        def work(tx: Transaction, now: float) -> bool:
            row = self.governance.find(tx, session_id)
            if row.state != SessionState.TERMINATING:
                return row.state == SessionState.ARCHIVED
            if tx.sessions.open_work(session_id):
                return False
            tx.sessions.set_session_state(session_id, SessionState.ARCHIVED.value, ended_at=now)
            self._trail.add(tx, session_id, "", "session.archived", {}, now)
            return True

        return self.governance.commit(END, work)

    def _note_left(self, session_id: str, left: Sequence[str]) -> None:
        def work(tx: Transaction, now: float) -> None:
            row = self.governance.find(tx, session_id)
            ending = {**json.loads(row.ending or "{}"), "left": list(left)}
            tx.sessions.set_session_state(session_id, row.state, ending=json.dumps(ending))
            self._trail.add(tx, session_id, "", "session.resists", {"left": list(left)}, now)

        self.governance.commit(END, work)

    def _tick_soon(self) -> None:
        """Look around on a thread of our own: an anchor is user code, and one that hangs is not to stop the store's."""
        if not self._is_ticking:
            self._is_ticking = True
            self._keeper.soon(self._tick_once)

    def _tick_once(self) -> None:
        try:
            self._tick()
        except MisuseError as closed:
            log.debug("The store was closed in the middle of a look: %s", closed)
        finally:
            self._is_ticking = False

    def _tick(self) -> None:
        """End sessions whose time is up, archive those in which nothing goes on any more, and catch up the anchor."""
        if self._is_closed:
            return
        now = self.store.clock()
        due, ending = self.store.read_sessions(
            lambda rows: (
                rows.sessions_due(now),
                rows.sessions(states=[SessionState.TERMINATING.value], before=None, limit=100),
            )
        )
        for session_id in due:
            self._begin_end(session_id, "its time is over")
        for row in ending:
            open_work = self.store.read_sessions(lambda rows, row=row: rows.open_work(row.id))  # type: ignore[misc]
            stoppable = [work_row for work_row in open_work if work_row.kind in ("conversation", "job")]
            self._stopper.stop(stoppable, 0.0)
            if len(stoppable) == len(open_work):
                self._archive(row.id)
        if self._trail.is_failing:
            self._trail.anchor_newest()

    # The audit trail

    def events(self, *, after: int = 0, session: Session | str | None = None, limit: int = 1000) -> list[AuditRow]:
        """Entries of the audit trail that follow number `after`: everything that happened, in order."""
        session_id = None if session is None else _id(session)
        return self.store.read_sessions(lambda rows: rows.audit(after=after, limit=limit, session=session_id))

    def verify_audit(self) -> AuditVerdict:
        """Verify the whole audit trail with the key and the anchor."""
        return verify_trail(self.store, self._trail.key, self._anchor)

    # The end

    def close(self) -> None:
        """Let go of everything. Sessions go on: they are in the store. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stop_ticking()
        self._keeper.close(_PATIENCE)
        if self._conversations is not None:
            self._conversations.close()
        if self._owns_engine:
            self.engine.close()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _id(session: Session | str) -> str:
    return session.id if isinstance(session, Session) else check_id("The session's id", session)


def _state(word: SessionState | str) -> SessionState:
    try:
        return SessionState(word)
    except ValueError:
        names = ", ".join(state.value for state in SessionState)
        raise MisuseError(f"A session cannot be in the state {word!r}. The states are: {names}.") from None


def _check_joining(rows: SessionRows, session_id: str, agent: str, config: SessionConfig) -> None:
    """Refuse somebody who is in, was killed, or finds no place."""
    member = rows.member(session_id, agent)
    if member is not None and member.state in ("present", "suspended"):
        raise CannotJoinError(f"{agent!r} is in session {session_id!r} already. Nothing was changed.")
    if member is not None and member.state == "killed":
        raise CannotJoinError(
            f"{agent!r} was killed in session {session_id!r}. Nothing was changed. `readmit` lets it join again."
        )
    if rows.count_present(session_id) >= config.max_members:
        raise CannotJoinError(
            f"The session {session_id!r} is full: {config.max_members} are in it. {agent!r} was not admitted."
        )


def _no_answer(row: AskRow, by: str, seen: str | None, answered: Sequence[str], now: float) -> str | None:
    """Why somebody cannot answer; nothing if they can."""
    if row.state != "open":
        return f"it no longer waits: its state is {row.state!r}"
    if now >= row.expires_at:
        return "its time is over"
    if seen is not None and seen != row.digest:
        return f"what waits is {row.digest}, and not {seen}"
    if by == row.agent:
        return "an agent cannot approve its own act"
    return f"{by!r} has answered already" if by in answered else None


def _not_a_member(session_id: str, agent: object) -> NotAMemberError:
    return NotAMemberError(f"{agent!r} is not in session {session_id!r}. Nothing was done.")
