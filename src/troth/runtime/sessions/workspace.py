"""A session's tree of texts: below one root, kept in the store, each text with its owner."""

import json
import posixpath
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from troth.errors import MisuseError
from troth.runtime.sessions.checks import check_id
from troth.runtime.sessions.commit_points import WORKSPACE
from troth.runtime.sessions.errors import WorkspacePathError
from troth.runtime.sessions.governance import Governance
from troth.runtime.sessions.policy.consent import ask_now, judge_by_policy
from troth.runtime.sessions.policy.decision import PolicyRequest
from troth.runtime.sessions.policy.gate import GateRefusal
from troth.runtime.sessions.policy.ring import Ring
from troth.runtime.store import Transaction
from troth.runtime.store.rows.sessions import FileRow

__all__ = ["CHANGES", "Workspace", "resolve"]

CHANGES = {
    "workspace.write": "workspace.written",
    "workspace.delete": "workspace.deleted",
    "workspace.permit": "workspace.permitted",
    "workspace.snapshot": "workspace.snapshot",
    "workspace.restore": "workspace.restored",
}
"""What a policy is asked about, and the audit entry that tells of it."""


def resolve(root: str, path: object) -> str:
    """The path it really is, below `root`; `WorkspacePathError` if it leads out. A relative one starts at `root`."""
    if not isinstance(path, str) or not path or "\0" in path or "\\" in path:
        raise WorkspacePathError(
            f"{path!r} is not a path in a workspace. Nothing was done. Name a file below {root!r}."
        )
    real = posixpath.normpath(posixpath.join(root, path))
    if real.startswith("//"):
        real = real[1:]
    if real != root and not real.startswith(f"{root}/"):
        raise WorkspacePathError(f"{path!r} is {real!r}, which is not below {root!r}. Nothing was done.")
    return real


class Workspace:
    """The texts of a session as one member sees them. Every change is judged and audited in the commit that makes it.

    Whoever writes a text first owns it. Everybody may read it and every member of ring 2 or better may write it, until
    its owner or somebody of ring 1 says otherwise with `permit`. The session's policy is asked before every change, as
    `workspace.write`, `workspace.delete`, `workspace.permit`, `workspace.snapshot` and `workspace.restore`. A policy
    that is a function of yours is waited for, so on a loop call these with `await bridge.call(workspace.write, …)`.
    """

    def __init__(self, governance: Governance, session: str, agent: str) -> None:
        self._governance = governance
        self._session = session
        self._agent = agent
        self.root = f"/sessions/{session}"

    def allows(self, path: str) -> bool:
        """Whether the path is one of this workspace."""
        try:
            return resolve(self.root, path) != self.root
        except WorkspacePathError:
            return False

    def _resolve(self, path: str) -> str:
        try:
            real = resolve(self.root, path)
            if real == self.root:
                raise WorkspacePathError(f"{path!r} is the root of the workspace, which is not text. Nothing was done.")
        except WorkspacePathError as problem:
            refusal = GateRefusal("path", str(problem))
            self._governance.commit(
                WORKSPACE,
                lambda tx, now: self._governance.refuse(tx, self._session, self._agent, "a path", refusal, now),
            )
            raise
        return real

    def read(self, path: str) -> str | None:
        """A text, or nothing if there is none. Works as long as one is a member, also when the session is over."""
        real = self._resolve(path)

        def look(tx: Transaction, now: float) -> FileRow | GateRefusal | None:
            member = tx.sessions.member(self._session, self._agent)
            row = tx.sessions.file(self._session, real)
            refusal = None
            if member is None or member.state != "present":
                refusal = GateRefusal(
                    "membership", f"{self._agent!r} is not in session {self._session!r}. Nothing was read."
                )
            elif row is not None and not _may(row.readers, row.owner, self._agent):
                refusal = GateRefusal("permission", f"{self._agent!r} may not read {real!r}. Nothing was read.")
            if refusal is not None:
                self._governance.refuse(tx, self._session, self._agent, f"reading {real}", refusal, now)
                return refusal
            return row

        answer = self._governance.commit(WORKSPACE, look)
        if isinstance(answer, GateRefusal):
            raise answer.error()
        return None if answer is None else answer.text

    def write(self, path: str, text: str) -> str:
        """Write a text. The answer is the path it really has."""
        real = self._resolve(path)
        if not isinstance(text, str):
            raise MisuseError(f"A workspace holds text, and {text!r} is not text. Nothing was written.")

        def then(tx: Transaction, now: float) -> GateRefusal | None:
            row = tx.sessions.file(self._session, real)
            if row is not None and not _may(row.writers, row.owner, self._agent):
                return GateRefusal("permission", f"{self._agent!r} may not write {real!r}. Nothing was written.")
            owner, readers, writers = (
                (self._agent, None, None) if row is None else (row.owner, row.readers, row.writers)
            )
            tx.sessions.put_file(self._session, FileRow(real, text, owner, readers, writers, now))
            return None

        data = {"path": real, "characters": len(text)}
        self._perform(f"writing {real}", Ring.STANDARD, "write", data, then)
        return real

    def delete(self, path: str) -> bool:
        """Delete a text. Answers whether there was one."""
        real = self._resolve(path)

        def then(tx: Transaction, now: float) -> GateRefusal | bool:  # noqa: ARG001
            row = tx.sessions.file(self._session, real)
            if row is not None and not _may(row.writers, row.owner, self._agent):
                return GateRefusal("permission", f"{self._agent!r} may not delete {real!r}. Nothing was deleted.")
            tx.sessions.delete_file(self._session, real)
            return row is not None

        return bool(self._perform(f"deleting {real}", Ring.STANDARD, "delete", {"path": real}, then))

    def list(self, below: str = ".") -> "list[str]":
        """The paths of the texts below a folder."""
        folder = resolve(self.root, below)
        rows = self._governance.store.read_sessions(lambda rows: rows.files(self._session, f"{folder}/"))
        return [row.path for row in rows if _may(row.readers, row.owner, self._agent)]

    def permit(self, path: str, *, readers: Iterable[str] | None = None, writers: Iterable[str] | None = None) -> None:
        """Say who else may read and write a text; None is everybody. Its owner and ring 1 can."""
        real = self._resolve(path)
        lists = [
            None if who is None else json.dumps([check_id("An agent", agent) for agent in who])
            for who in (readers, writers)
        ]

        def then(tx: Transaction, now: float) -> GateRefusal | None:  # noqa: ARG001
            row = tx.sessions.file(self._session, real)
            if row is None:
                return GateRefusal("permission", f"There is no text {real!r}. Nothing was changed.")
            standing = tx.sessions.standing(self._session, self._agent)
            is_privileged = standing is not None and standing.ring <= Ring.PRIVILEGED
            if row.owner != self._agent and not is_privileged:
                return GateRefusal(
                    "permission",
                    f"{real!r} belongs to {row.owner!r}; only its owner or ring 1 can change its permissions.",
                )
            tx.sessions.put_file(self._session, row._replace(readers=lists[0], writers=lists[1]))
            return None

        data: dict[str, object] = {"path": real, "readers": lists[0], "writers": lists[1]}
        self._perform(f"the permissions of {real}", Ring.STANDARD, "permit", data, then)

    def snapshot(self, name: str | None = None) -> str:
        """Keep all texts as they are under a name, which is the answer."""
        name = check_id("The name of a snapshot", name or uuid.uuid4().hex)

        def then(tx: Transaction, now: float) -> GateRefusal | None:  # noqa: ARG001
            if tx.sessions.has_snapshot(self._session, name):
                return GateRefusal(
                    "snapshot", f"There is already a snapshot {name!r}. No snapshot was made; use another name."
                )
            if tx.sessions.take_snapshot(self._session, name) == 0:
                return GateRefusal("snapshot", "There is no text, so no snapshot was made.")
            return None

        self._perform("a snapshot", Ring.STANDARD, "snapshot", {"snapshot": name}, then)
        return name

    def restore(self, name: str) -> int:
        """Make all texts what they were. It changes what others own, so it needs ring 1. Answers how many there are."""
        check_id("The name of a snapshot", name)

        def then(tx: Transaction, now: float) -> GateRefusal | int:  # noqa: ARG001
            if not tx.sessions.has_snapshot(self._session, name):
                return GateRefusal("snapshot", f"There is no snapshot {name!r}. Nothing was changed.")
            return tx.sessions.restore_snapshot(self._session, name)

        return int(self._perform("a restore", Ring.PRIVILEGED, "restore", {"snapshot": name}, then))

    def _perform(
        self, what: str, ring: Ring, verb: str, data: dict[str, object], then: Callable[[Transaction, float], Any]
    ) -> Any:
        """Judge a change by ring, rate and policy, make it, and audit it, in one commit. The policy is told `data`."""
        governance, session, agent, action = self._governance, self._session, self._agent, f"workspace.{verb}"
        opinion = ask_now(governance, session, agent, action, "write", data)

        def ask(tx: Transaction, number: int, now: float) -> GateRefusal | Mapping[str, Any]:
            request = PolicyRequest(session, agent, action, "write", number, data)
            return judge_by_policy(governance, tx, what, request, opinion, now)

        kind = CHANGES[action]
        return governance.perform(WORKSPACE, session, agent, what, ring, kind, data, then, ask)


def _may(who: str | None, owner: str, agent: str) -> bool:
    return who is None or agent == owner or agent in json.loads(who)
