"""Commit what happens in sessions: judged, written and audited in one commit, and anchored before the call returns."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from troth.runtime.sessions.audit.trail import Head, Trail
from troth.runtime.sessions.commit_points import ACT_REFUSE
from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.errors import UnknownSessionError
from troth.runtime.sessions.policy.decision import LoadedPolicy, NamedPolicy, PolicyRequest, find_policy, load_policy
from troth.runtime.sessions.policy.gate import GateRefusal, judge
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.store import CommitPoint, Store, Transaction
from troth.runtime.store.json_codec import encode
from troth.runtime.store.rows.sessions import SessionRow, SessionRows

__all__ = ["Governance"]

T = TypeVar("T")


class Governance:
    """What the parts of a hypervisor share: a store, its audit trail, and the sessions' configurations."""

    def __init__(self, store: Store, trail: Trail) -> None:
        self.store = store
        self.trail = trail
        self._configs: dict[str, SessionConfig] = {}
        self._rings: dict[tuple[str, str], int] = {}
        self._named: dict[str, Callable[[PolicyRequest], object]] = {}
        self._policies: dict[str, LoadedPolicy | None] = {}
        self._heads: dict[str, Head | None] = {}  # the last audit entries of runs that somebody waits for

    def commit(self, point: CommitPoint, work: Callable[[Transaction, float], T]) -> T:
        """Commit `work(tx, now)`, and anchor what it wrote before this returns."""
        trail, store = self.trail, self.store
        if trail.is_strict:
            trail.check_strict()
        head = None

        def inside(tx: Transaction) -> T:
            nonlocal head
            trail.newest = None
            answer = work(tx, store.clock())
            head = trail.newest
            return answer

        answer = store.commit(point, inside)
        trail.anchor_entry(head)
        return answer

    @contextlib.contextmanager
    def anchoring(self, run_id: str) -> Iterator[None]:
        """Anchor what a run has written, before this returns. The run is carried out inside."""
        self._heads[run_id] = None
        is_over = False
        try:
            yield
            is_over = True
        finally:
            head = self._heads.pop(run_id)
            if is_over and head is not None:
                self.trail.anchor_entry(head)
            else:
                self.trail.anchor_newest()  # what is kept of it has to be read: it failed, or ended in another process

    def run_ended(self, run_id: str) -> None:
        """Remember, in the commit that ends a run, what its last entry is."""
        if run_id in self._heads:
            self._heads[run_id] = self.trail.newest

    def find(self, tx: Transaction, session_id: str) -> SessionRow:
        """The session, as this commit sees it."""
        row = tx.sessions.session(session_id)
        if row is None:
            raise unknown_session(session_id)
        return row

    def config(self, tx: Transaction, session_id: str) -> SessionConfig:
        """What a session allows. It never changes, so it is read once."""
        config = self._configs.get(session_id)
        if config is None:
            if len(self._configs) > 10_000:
                self._configs.clear()
                self._rings.clear()
                self._policies.clear()
            config = self._configs[session_id] = SessionConfig.from_json(self.find(tx, session_id).config)
        return config

    def judge(
        self, tx: Transaction, session: str, agent: str, what: str, needed: Ring, now: float
    ) -> GateRefusal | int:
        """Ask every rule; the member's ring if none says no. A refusal is an audit entry of this commit."""
        answer: GateRefusal | int
        if self.trail.is_strict and self.trail.is_failing:
            answer = GateRefusal("anchor", f"{what} was refused: the audit trail cannot be anchored.")
        else:
            answer = judge(tx, session, agent, what, needed, self.config(tx, session), self._rings, now)
        if isinstance(answer, GateRefusal):
            self.refuse(tx, session, agent, what, answer, now)
        return answer

    def policy(self, rows: SessionRows, session: str) -> LoadedPolicy | None:
        """The policy of a session, if it has one."""
        if session in self._policies:
            return self._policies[session]
        row = rows.session(session)
        policy: object = None if row is None else SessionConfig.from_json(row.config).policy
        if isinstance(policy, NamedPolicy):
            policy = self._named.get(policy.reference) or find_policy(policy.reference) or policy
        loaded = None if policy is None else load_policy(policy)
        if row is not None:
            self._policies[session] = loaded
        return loaded

    def config_now(self, session: str) -> SessionConfig | None:
        """What a session allows, asked for outside of a commit."""
        config = self._configs.get(session)
        if config is None:
            row = self.store.read_sessions(lambda rows: rows.session(session))
            if row is not None:
                config = self._configs[session] = SessionConfig.from_json(row.config)
        return config

    def policy_now(self, session: str) -> LoadedPolicy | None:
        """The policy of a session, asked for outside of a commit."""
        if session in self._policies:
            return self._policies[session]
        return self.store.read_sessions(lambda rows: self.policy(rows, session))

    def remember_policy(self, policy: Callable[[PolicyRequest], object]) -> None:
        """Have a policy found by its name."""
        self._named[load_policy(policy).reference] = policy

    def refuse(
        self,
        tx: Transaction,
        session: str,
        agent: str,
        what: str,
        refusal: GateRefusal,
        now: float,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down that something was refused."""
        data = {"what": what, "rule": refusal.rule, "why": refusal.message, **(more or {})}
        self.trail.add(tx, session, agent, "refused", data, now)

    def refuse_now(self, session: str, agent: str, what: str, refusal: GateRefusal) -> None:
        """Write down, in a commit of its own, that something was refused before it began; then raise it."""
        self.note_refusal(session, agent, what, refusal)
        raise refusal.error()

    def note_refusal(self, session: str, agent: str, what: str, refusal: GateRefusal) -> None:
        """Write down, in a commit of its own, that something was refused."""
        self.commit(ACT_REFUSE, lambda tx, now: self.refuse(tx, session, agent, what, refusal, now))

    def perform(
        self,
        point: CommitPoint,
        session: str,
        agent: str,
        what: str,
        needed: Ring,
        kind: str,
        data: Mapping[str, Any] | str,
        then: Callable[[Transaction, float], Any] | None = None,
        ask: Callable[[Transaction, int, float], GateRefusal | Mapping[str, Any]] | None = None,
    ) -> Any:
        """Judge, do and audit something in one commit. `then` does it, and may answer with a refusal of its own.

        `data` goes into the entry: a mapping, or what is JSON text already. `ask` asks the policy, with the ring: it
        writes down a refusal itself, or answers what else is to be told.
        """
        text = data if isinstance(data, str) else encode(data, f"audit entry {kind!r}")

        def work(tx: Transaction, now: float) -> Any:
            nonlocal text
            ring = self.judge(tx, session, agent, what, needed, now)
            if isinstance(ring, GateRefusal):
                return ring
            if ask is not None and not isinstance(data, str):
                verdict = ask(tx, ring, now)
                if isinstance(verdict, GateRefusal):
                    return verdict
                text = encode({**data, "ring": ring, **verdict}, f"audit entry {kind!r}")
            answer = None if then is None else then(tx, now)
            if isinstance(answer, GateRefusal):
                self.refuse(tx, session, agent, what, answer, now)
                return answer
            self.trail.add_text(tx, session, agent, kind, text, now)
            return answer

        answer = self.commit(point, work)
        if isinstance(answer, GateRefusal):
            raise answer.error()
        return answer


def unknown_session(session_id: object) -> UnknownSessionError:
    """The error of naming a session that there is not."""
    return UnknownSessionError(
        f"There is no session {session_id!r} in this store. Nothing was done.\n"
        "`hypervisor.sessions()` and `troth session list` list the sessions."
    )
