"""Read and write the rows of governed sessions where other workers do so at the same time.

In a commit, whoever looks at a session locks it first: its members, its work and its texts then stay as they were read
until that commit. Reads outside of a commit lock nothing. The audit trail needs no lock: an entry's number is unique,
and whoever finds it taken follows the entry that took it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.dialect import Execute, translating
from troth.runtime.store.rows.sessions import (
    AskRow,
    FileRow,
    KillRow,
    MemberRow,
    SessionRow,
    SessionRows,
    StandingRow,
    WorkRow,
)

__all__ = ["PostgresSessionRows"]

_PUT_MEMBER = statements.upsert(statements.PUT_MEMBER, MemberRow._fields)
_PUT_FILE = statements.upsert(statements.PUT_FILE, ("session", *FileRow._fields))
_PUT_ASK = statements.upsert(statements.PUT_ASK, AskRow._fields)
_SESSION = ", ".join(SessionRow._fields)


class PostgresSessionRows(SessionRows):
    """The rows of sessions, seen through one connection. `locks` is for a commit."""

    __slots__ = ("_locked", "_locks", "_native")

    def __init__(self, execute: Execute, changed: Callable[[], object] = lambda: None, *, locks: bool = False) -> None:
        super().__init__(translating(execute), changed)
        self._native = execute
        self._locks = locks
        self._locked: set[str] = set()

    def forget_locks(self) -> None:
        """What was locked since a savepoint is locked no more."""
        self._locked.clear()

    def _lock(self, session_id: str) -> None:
        if self._locks and session_id not in self._locked:
            self._native(statements.LOCK_SESSION, (session_id,))
            self._locked.add(session_id)

    # Reads that a commit relies on

    def session(self, session_id: str) -> SessionRow | None:
        """One session."""
        self._lock(session_id)
        return super().session(session_id)

    def member(self, session_id: str, agent: str) -> MemberRow | None:
        """One agent in a session, present or not."""
        self._lock(session_id)
        return super().member(session_id, agent)

    def members(self, session_id: str) -> list[MemberRow]:
        """Everybody who is or was in a session."""
        self._lock(session_id)
        return super().members(session_id)

    def present(self, session_id: str) -> list[str]:
        """Who is in the session now."""
        self._lock(session_id)
        return super().present(session_id)

    def count_present(self, session_id: str) -> int:
        """How many are in the session now."""
        self._lock(session_id)
        return super().count_present(session_id)

    def standing(self, session_id: str, agent: str) -> StandingRow | None:
        """What an act of this agent is judged on; nothing if there is no such session."""
        self._lock(session_id)
        return super().standing(session_id, agent)

    def open_work(self, session_id: str, agent: str | None = None) -> list[WorkRow]:
        """What goes on in a session, of all or of one agent."""
        self._lock(session_id)
        return super().open_work(session_id, agent)

    def add_work(self, work_id: str, session_id: str, agent: str, kind: str, what: str, now: float) -> bool:
        """Write down that something goes on for a member. Answers whether it is new."""
        self._lock(session_id)
        return super().add_work(work_id, session_id, agent, kind, what, now)

    def file(self, session_id: str, path: str) -> FileRow | None:
        """One text of a session."""
        self._lock(session_id)
        return super().file(session_id, path)

    def files(self, session_id: str, below: str) -> list[FileRow]:
        """The texts of a session whose paths begin with `below`, which ends with a slash."""
        self._lock(session_id)
        return super().files(session_id, below)

    def restore_snapshot(self, session_id: str, name: str) -> int:
        """Make the texts of a session what they were. Answers how many there are."""
        self._lock(session_id)
        return super().restore_snapshot(session_id, name)

    def work(self, work_id: str) -> WorkRow | None:
        """One run or conversation of a session."""
        self._lock_row(statements.LOCK_WORK, work_id)
        return super().work(work_id)

    def work_undone(self, work_id: str, step: str, *, is_done: bool) -> None:
        """Write down that one of its steps was undone, or could not be."""
        self._lock_row(statements.LOCK_WORK, work_id)
        super().work_undone(work_id, step, is_done=is_done)

    def ask(self, ask_id: str) -> AskRow | None:
        """One act that waits, or has waited, for people."""
        self._lock_row(statements.LOCK_ASK, ask_id)
        return super().ask(ask_id)

    def kill(self, kill_id: str) -> KillRow | None:
        """One kill."""
        self._lock_row(statements.LOCK_KILL, kill_id)
        return super().kill(kill_id)

    def _lock_row(self, statement: str, row_id: str) -> None:
        if self._locks:
            self._native(statement, (row_id,))

    # Statements that this database writes otherwise

    def sessions(
        self, *, states: Sequence[str] | None, before: tuple[float, str] | None, limit: int
    ) -> list[SessionRow]:
        """Sessions, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
        pages: list[SessionRow] = []
        bound = "" if before is None else " AND (created_at, id) < (%s, %s)"
        for state in states if states is not None else [None]:  # one look into the index for each state
            where, values = ("true", ()) if state is None else ("state = %s", (state,))
            statement = statements.SESSIONS.format(columns=_SESSION, where=f"{where}{bound}")
            rows = self._native(statement, (*values, *(before or ()), limit)).fetchall()
            pages += [SessionRow(*row) for row in rows]
        return sorted(pages, key=lambda row: (row.created_at, row.id), reverse=True)[:limit]

    def put_member(self, row: MemberRow) -> None:
        """Write down a member, new or come again."""
        self._changed()
        self._native(_PUT_MEMBER, row)

    def use_token(self, session_id: str, agent: str, ring: int, per_second: float, at_once: float, now: float) -> bool:
        """Use up one act of a member's rate, if nothing is to be said about it. Answers whether that is so."""
        self._lock(session_id)
        values = {
            "most": at_once,
            "rate": per_second,
            "now": now,
            "session": session_id,
            "agent": agent,
            "ring": ring,
        }
        return bool(self._native(statements.USE_TOKEN, values).rowcount == 1)

    def put_file(self, session_id: str, row: FileRow) -> None:
        """Write a text."""
        self._native(_PUT_FILE, (session_id, *row))

    def put_ask(self, row: AskRow) -> None:
        """Write down that an act waits for people, or what they answered."""
        self._changed()
        self._native(_PUT_ASK, row)

    def add_audit(self, row: Sequence[Any]) -> bool:
        """Add an entry: the fields of an `AuditRow`. Answers no if there is one of that number already."""
        return bool(self._native(statements.ADD_AUDIT, row).rowcount == 1)
