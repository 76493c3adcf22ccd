"""Read and write the rows of governed sessions: members, their work, their texts, kills, the audit trail.

The statements of one open transaction, or of one reading connection: nothing here begins or commits. What the values
mean is decided in `troth.runtime.sessions`.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = [
    "AskRow",
    "AuditRow",
    "FileRow",
    "KillRow",
    "MemberRow",
    "SessionRow",
    "SessionRows",
    "StandingRow",
    "WorkRow",
]

_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor


class SessionRow(NamedTuple):
    """One session. `config` and `ending` are JSON text."""

    id: str
    creator: str
    state: str
    config: str
    created_at: float
    ends_at: float
    ended_at: float | None
    ending: str | None


class MemberRow(NamedTuple):
    """One agent in one session, present or not."""

    session: str
    agent: str
    state: str
    ring: int
    score: float
    vouched: str
    actions: str
    history: str | None
    joined_at: float
    left_at: float | None
    elevated: int | None
    elevated_until: float | None
    tokens: float | None
    tokens_at: float
    breach: float
    breach_at: float


class StandingRow(NamedTuple):
    """What an act is judged on: the session's state and the member's, read in one statement."""

    session_state: str
    ends_at: float
    state: str | None
    ring: int
    score: float
    elevated: int | None
    elevated_until: float | None
    tokens: float | None
    tokens_at: float
    breach: float
    breach_at: float


class WorkRow(NamedTuple):
    """A run or a conversation that goes on in a session, or went on there."""

    id: str
    session: str
    agent: str
    kind: str
    what: str
    begun_at: float
    is_over: int
    kill: str | None
    handed_to: str | None
    undone: str
    process: str | None


class FileRow(NamedTuple):
    """One text of a workspace. `readers` and `writers` are JSON lists, or nothing where everybody may."""

    path: str
    text: str
    owner: str
    readers: str | None
    writers: str | None
    written_at: float


class AskRow(NamedTuple):
    """An act that waits for people. Its id is that of its run; `answers` is a JSON list of `[who, yes, reason, at]`."""

    id: str
    session: str
    agent: str
    what: str
    arguments: str
    digest: str
    policy: str
    reason: str
    people: int
    asked_at: float
    expires_at: float
    state: str
    answers: str


class KillRow(NamedTuple):
    """One kill. `answer` is JSON text once it is known."""

    id: str
    session: str
    agent: str
    reason: str
    substitute: str | None
    at: float
    tries: int
    answer: str | None


class AuditRow(NamedTuple):
    """One entry of the audit trail."""

    seq: int
    at: float
    session: str
    agent: str
    kind: str
    data: str
    key: str
    digest: bytes
    mac: bytes


_SESSION = ", ".join(SessionRow._fields)
_MEMBER = ", ".join(MemberRow._fields)
_WORK = ", ".join(WorkRow._fields)
_FILE = ", ".join(FileRow._fields)
_KILL = ", ".join(KillRow._fields)
_ASK = ", ".join(AskRow._fields)
_AUDIT = ", ".join(AuditRow._fields)
_PRESENT = "state IN ('present', 'suspended')"


class SessionRows:
    """The rows of sessions, seen through one connection."""

    __slots__ = ("_changed", "_execute")

    def __init__(self, execute: Callable[..., sqlite3.Cursor], changed: Callable[[], object] = lambda: None) -> None:
        self._execute = execute
        self._changed = changed  # called when something has come into another state

    # Sessions

    def add_session(self, row: SessionRow) -> bool:
        """Write down a new session. Answers whether its id is new."""
        self._changed()
        cursor = self._execute(
            f"INSERT INTO sessions ({_SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",  # noqa: S608
            row,
        )
        return cursor.rowcount == 1

    def session(self, session_id: str) -> SessionRow | None:
        """One session."""
        row = self._execute(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (session_id,)).fetchone()  # noqa: S608
        return None if row is None else SessionRow(*row)

    def sessions(
        self, *, states: Sequence[str] | None, before: tuple[float, str] | None, limit: int
    ) -> list[SessionRow]:
        """Sessions, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
        pages: list[SessionRow] = []
        bound = "" if before is None else " AND (created_at, id) < (?, ?)"
        for state in states if states is not None else [None]:  # one look into the index for each state
            where, values = ("1", ()) if state is None else ("state = ?", (state,))
            rows = self._execute(
                f"SELECT {_SESSION} FROM sessions WHERE {where}{bound} ORDER BY created_at DESC, id DESC LIMIT ?",  # noqa: S608
                (*values, *(before or ()), limit),
            ).fetchall()
            pages += [SessionRow(*row) for row in rows]
        return sorted(pages, key=lambda row: (row.created_at, row.id), reverse=True)[:limit]

    def count_sessions(self, state: str | None) -> int:
        """How many sessions there are, of all or of one state."""
        where, values = ("", ()) if state is None else (" WHERE state = ?", (state,))
        (count,) = self._execute(f"SELECT count(*) FROM sessions{where}", values).fetchone()  # noqa: S608
        return int(count)

    def sessions_due(self, now: float) -> list[str]:
        """Sessions whose time is up."""
        rows = self._execute(
            "SELECT id FROM sessions WHERE state IN ('created', 'handshaking', 'active') AND ends_at <= ?", (now,)
        ).fetchall()
        return [row[0] for row in rows]

    def set_session_state(
        self, session_id: str, state: str, *, ended_at: float | None = None, ending: str | None = None
    ) -> None:
        """Write down where a session stands; `ended_at` and `ending` stay as they are unless given."""
        self._changed()
        self._execute(
            "UPDATE sessions SET state = ?, ended_at = coalesce(?, ended_at), ending = coalesce(?, ending) "
            "WHERE id = ?",
            (state, ended_at, ending, session_id),
        )

    # Members

    def member(self, session_id: str, agent: str) -> MemberRow | None:
        """One agent in a session, present or not."""
        row = self._execute(
            f"SELECT {_MEMBER} FROM members WHERE session = ? AND agent = ?",  # noqa: S608
            (session_id, agent),
        ).fetchone()
        return None if row is None else MemberRow(*row)

    def members(self, session_id: str) -> list[MemberRow]:
        """Everybody who is or was in a session."""
        rows = self._execute(
            f"SELECT {_MEMBER} FROM members WHERE session = ? ORDER BY joined_at, agent",  # noqa: S608
            (session_id,),
        ).fetchall()
        return [MemberRow(*row) for row in rows]

    def present(self, session_id: str) -> list[str]:
        """Who is in the session now."""
        rows = self._execute(f"SELECT agent FROM members WHERE session = ? AND {_PRESENT}", (session_id,)).fetchall()  # noqa: S608
        return [row[0] for row in rows]

    def count_present(self, session_id: str) -> int:
        """How many are in the session now."""
        (count,) = self._execute(
            f"SELECT count(*) FROM members WHERE session = ? AND {_PRESENT}",  # noqa: S608
            (session_id,),
        ).fetchone()
        return int(count)

    def present_in_open_sessions(self) -> list[MemberRow]:
        """Who is present in a session that is not over."""
        columns = ", ".join(f"m.{name}" for name in MemberRow._fields)
        rows = self._execute(
            f"SELECT {columns} FROM sessions s JOIN members m ON m.session = s.id "  # noqa: S608
            "WHERE s.state IN ('created', 'handshaking', 'active') AND m.state IN ('present', 'suspended')"
        ).fetchall()
        return [MemberRow(*row) for row in rows]

    def put_member(self, row: MemberRow) -> None:
        """Write down a member, new or come again."""
        self._changed()
        self._execute(
            f"INSERT OR REPLACE INTO members ({_MEMBER}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
            row,
        )

    def set_member_state(self, session_id: str, agent: str, state: str, *, left_at: float | None = None) -> None:
        """Write down that a member is present, suspended, has left or was killed."""
        self._changed()
        self._execute(
            "UPDATE members SET state = ?, left_at = ? WHERE session = ? AND agent = ?",
            (state, left_at, session_id, agent),
        )

    def set_elevation(self, session_id: str, agent: str, ring: int, until: float) -> None:
        """Write down that a member has a more privileged ring until a moment."""
        self._execute(
            "UPDATE members SET elevated = ?, elevated_until = ? WHERE session = ? AND agent = ?",
            (ring, until, session_id, agent),
        )

    def set_score(self, session_id: str, agent: str, score: float, ring: int) -> None:
        """Write down a member's new score, and the ring that follows from it."""
        self._execute(
            "UPDATE members SET score = ?, ring = ? WHERE session = ? AND agent = ?", (score, ring, session_id, agent)
        )

    def set_tokens(self, session_id: str, agent: str, tokens: float, now: float) -> None:
        """Write down what is left of a member's rate."""
        self._execute(
            "UPDATE members SET tokens = ?, tokens_at = ? WHERE session = ? AND agent = ?",
            (tokens, now, session_id, agent),
        )

    def use_token(self, session_id: str, agent: str, ring: int, per_second: float, at_once: float, now: float) -> bool:
        """Use up one act of a member's rate, if nothing is to be said about it. Answers whether that is so.

        In one statement for what is nearly always the case: the session goes on, and the agent is present in it, in
        this ring and not elevated, with something left of its rate. Otherwise nothing is changed.
        """
        cursor = self._execute(
            "UPDATE members SET tokens = min(?1, coalesce(tokens, ?1) + max(0.0, ?3 - tokens_at) * ?2) - 1.0, "
            "tokens_at = ?3 WHERE session = ?4 AND agent = ?5 AND state = 'present' AND ring = ?6 AND elevated IS NULL "
            "AND min(?1, coalesce(tokens, ?1) + max(0.0, ?3 - tokens_at) * ?2) >= 1.0 "
            "AND EXISTS (SELECT 1 FROM sessions WHERE id = ?4 AND state = 'active' AND ends_at > ?3)",
            (at_once, per_second, now, session_id, agent, ring),
        )
        return cursor.rowcount == 1

    def set_breach(self, session_id: str, agent: str, breach: float, now: float) -> None:
        """Write down how far a member has gone beyond its ring lately."""
        self._execute(
            "UPDATE members SET breach = ?, breach_at = ? WHERE session = ? AND agent = ?",
            (breach, now, session_id, agent),
        )

    def standing(self, session_id: str, agent: str) -> StandingRow | None:
        """What an act of this agent is judged on; nothing if there is no such session."""
        row = self._execute(
            "SELECT s.state, s.ends_at, m.state, m.ring, m.score, m.elevated, m.elevated_until, m.tokens, m.tokens_at, "
            "m.breach, m.breach_at FROM sessions s LEFT JOIN members m ON m.session = s.id AND m.agent = ? "
            "WHERE s.id = ?",
            (agent, session_id),
        ).fetchone()
        return None if row is None else _make(StandingRow, row)

    # What goes on

    def add_work(self, work_id: str, session_id: str, agent: str, kind: str, what: str, now: float) -> bool:
        """Write down that something goes on for a member. Answers whether it is new."""
        cursor = self._execute(
            "INSERT INTO session_work (id, session, agent, kind, what, begun_at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO NOTHING",
            (work_id, session_id, agent, kind, what, now),
        )
        return cursor.rowcount == 1

    def work(self, work_id: str) -> WorkRow | None:
        """One run or conversation of a session."""
        row = self._execute(f"SELECT {_WORK} FROM session_work WHERE id = ?", (work_id,)).fetchone()  # noqa: S608
        return None if row is None else WorkRow(*row)

    def doer(self, work_id: str) -> str | None:
        """For which agent a run goes on."""
        row = self._execute("SELECT agent FROM session_work WHERE id = ?", (work_id,)).fetchone()
        return None if row is None else row[0]

    def open_work(self, session_id: str, agent: str | None = None) -> list[WorkRow]:
        """What goes on in a session, of all or of one agent."""
        where, values = ("", ()) if agent is None else (" AND agent = ?", (agent,))
        rows = self._execute(
            f"SELECT {_WORK} FROM session_work WHERE session = ? AND is_over = 0{where} ORDER BY begun_at, id",  # noqa: S608
            (session_id, *values),
        ).fetchall()
        return [WorkRow(*row) for row in rows]

    def work_of_kill(self, kill_id: str) -> list[WorkRow]:
        """What a kill found going on."""
        rows = self._execute(
            f"SELECT {_WORK} FROM session_work WHERE kill = ? ORDER BY begun_at, id",  # noqa: S608
            (kill_id,),
        ).fetchall()
        return [WorkRow(*row) for row in rows]

    def work_over(self, work_id: str) -> None:
        """Write down that it goes on no more."""
        self._execute("UPDATE session_work SET is_over = 1 WHERE id = ?", (work_id,))

    def work_again(self, work_id: str) -> None:
        """Write down that it goes on anew."""
        self._execute("UPDATE session_work SET is_over = 0 WHERE id = ?", (work_id,))

    def work_killed(self, work_id: str, kill_id: str, handed_to: str | None) -> None:
        """Write down that a kill reached it, and who goes on with it if somebody does."""
        self._execute(
            "UPDATE session_work SET kill = ?, handed_to = ?, agent = coalesce(?, agent) WHERE id = ?",
            (kill_id, handed_to, handed_to, work_id),
        )

    def work_undone(self, work_id: str, step: str, *, is_done: bool) -> None:
        """Write down that one of its steps was undone, or could not be."""
        row = self._execute("SELECT undone FROM session_work WHERE id = ?", (work_id,)).fetchone()
        if row is not None:
            undone = json.dumps([*json.loads(row[0]), [step, is_done]])
            self._execute("UPDATE session_work SET undone = ? WHERE id = ?", (undone, work_id))

    def set_process(self, work_id: str, process: str) -> None:
        """Write down which process has it."""
        self._execute("UPDATE session_work SET process = ? WHERE id = ?", (process, work_id))

    # Texts

    def file(self, session_id: str, path: str) -> FileRow | None:
        """One text of a session."""
        row = self._execute(
            f"SELECT {_FILE} FROM workspace WHERE session = ? AND path = ?",  # noqa: S608
            (session_id, path),
        ).fetchone()
        return None if row is None else FileRow(*row)

    def files(self, session_id: str, below: str) -> list[FileRow]:
        """The texts of a session whose paths begin with `below`, which ends with a slash."""
        rows = self._execute(
            f"SELECT {_FILE} FROM workspace WHERE session = ? AND substr(path, 1, ?) = ? ORDER BY path",  # noqa: S608
            (session_id, len(below), below),
        ).fetchall()
        return [FileRow(*row) for row in rows]

    def put_file(self, session_id: str, row: FileRow) -> None:
        """Write a text."""
        self._execute(
            f"INSERT OR REPLACE INTO workspace (session, {_FILE}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (session_id, *row),
        )

    def delete_file(self, session_id: str, path: str) -> None:
        """Delete a text."""
        self._execute("DELETE FROM workspace WHERE session = ? AND path = ?", (session_id, path))

    def take_snapshot(self, session_id: str, name: str) -> int:
        """Copy every text of a session under a name. Answers how many there were."""
        return self._execute(
            f"INSERT INTO workspace_snapshots (session, snapshot, {_FILE}) SELECT session, ?, {_FILE} FROM workspace "  # noqa: S608
            "WHERE session = ?",
            (name, session_id),
        ).rowcount

    def has_snapshot(self, session_id: str, name: str) -> bool:
        """Whether anything was copied under that name."""
        row = self._execute(
            "SELECT 1 FROM workspace_snapshots WHERE session = ? AND snapshot = ? LIMIT 1", (session_id, name)
        ).fetchone()
        return row is not None

    def restore_snapshot(self, session_id: str, name: str) -> int:
        """Make the texts of a session what they were. Answers how many there are."""
        self._execute("DELETE FROM workspace WHERE session = ?", (session_id,))
        return self._execute(
            f"INSERT INTO workspace (session, {_FILE}) SELECT session, {_FILE} FROM workspace_snapshots "  # noqa: S608
            "WHERE session = ? AND snapshot = ?",
            (session_id, name),
        ).rowcount

    # Kills

    def add_kill(self, row: KillRow) -> None:
        """Write down a kill."""
        self._changed()
        self._execute(f"INSERT INTO kills ({_KILL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608

    def kill(self, kill_id: str) -> KillRow | None:
        """One kill."""
        row = self._execute(f"SELECT {_KILL} FROM kills WHERE id = ?", (kill_id,)).fetchone()  # noqa: S608
        return None if row is None else KillRow(*row)

    def kill_of(self, session_id: str, agent: str) -> KillRow | None:
        """The last kill of an agent in a session."""
        row = self._execute(
            f"SELECT {_KILL} FROM kills WHERE session = ? AND agent = ? ORDER BY at DESC, id DESC LIMIT 1",  # noqa: S608
            (session_id, agent),
        ).fetchone()
        return None if row is None else KillRow(*row)

    def kills(self, session_id: str) -> list[KillRow]:
        """The kills of a session."""
        rows = self._execute(f"SELECT {_KILL} FROM kills WHERE session = ? ORDER BY at", (session_id,)).fetchall()  # noqa: S608
        return [KillRow(*row) for row in rows]

    def answer_kill(self, kill_id: str, answer: str) -> None:
        """Write down what came of a kill."""
        self._changed()
        self._execute("UPDATE kills SET answer = ? WHERE id = ?", (answer, kill_id))

    def retry_kill(self, kill_id: str, tries: int) -> bool:
        """Try once more what resisted. Answers no if somebody else does already."""
        cursor = self._execute(
            "UPDATE kills SET tries = tries + 1, answer = NULL WHERE id = ? AND tries = ? AND answer IS NOT NULL",
            (kill_id, tries),
        )
        return cursor.rowcount == 1

    # Acts that wait for people

    def put_ask(self, row: AskRow) -> None:
        """Write down that an act waits for people, or what they answered."""
        self._changed()
        self._execute(f"INSERT OR REPLACE INTO asks ({_ASK}) VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def ask(self, ask_id: str) -> AskRow | None:
        """One act that waits, or has waited, for people."""
        row = self._execute(f"SELECT {_ASK} FROM asks WHERE id = ?", (ask_id,)).fetchone()  # noqa: S608
        return None if row is None else AskRow(*row)

    def open_asks(self, session_id: str | None) -> list[AskRow]:
        """What waits for people, of all sessions or of one, the oldest first."""
        where, values = ("", ()) if session_id is None else (" AND session = ?", (session_id,))
        rows = self._execute(
            f"SELECT {_ASK} FROM asks WHERE state = 'open'{where} ORDER BY asked_at, id",  # noqa: S608
            values,
        ).fetchall()
        return [AskRow(*row) for row in rows]

    # The audit trail

    def audit_head(self) -> tuple[int, bytes] | None:
        """Number and digest of the newest entry, from which the next one follows."""
        row = self._execute("SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        return row if row is None else (row[0], row[1])

    def audit_anchor(self) -> tuple[int, bytes] | None:
        """Number and MAC of the newest entry."""
        row = self._execute("SELECT seq, mac FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        return row if row is None else (row[0], row[1])

    def add_audit(self, row: Sequence[Any]) -> bool:
        """Add an entry: the fields of an `AuditRow`. Answers no if there is one of that number already."""
        return self._execute("INSERT OR IGNORE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row).rowcount == 1

    def audit(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        session: str | None = None,
        kinds: Iterable[str] = (),
    ) -> list[AuditRow]:
        """Entries that follow number `after`, in order."""
        where = "seq > ?"
        values: list[Any] = [after]
        if session is not None:
            where += " AND session = ?"
            values.append(session)
        wanted_kinds = list(kinds)
        if wanted_kinds:
            where += f" AND kind IN ({', '.join('?' * len(wanted_kinds))})"
            values += wanted_kinds
        rows = self._execute(f"SELECT {_AUDIT} FROM audit WHERE {where} ORDER BY seq LIMIT ?", (*values, limit))  # noqa: S608
        return [_make(AuditRow, row) for row in rows.fetchall()]

    def newest_audit(self, session: str, limit: int) -> list[AuditRow]:
        """The last entries of a session, in order."""
        rows = self._execute(
            f"SELECT {_AUDIT} FROM audit WHERE session = ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
            (session, limit),
        ).fetchall()
        return [_make(AuditRow, row) for row in reversed(rows)]

    def audit_entry(self, seq: int) -> AuditRow | None:
        """One entry."""
        row = self._execute(f"SELECT {_AUDIT} FROM audit WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
        return None if row is None else AuditRow(*row)

    def walk_audit(self) -> Iterator[AuditRow]:
        """Every entry in the order of its number, read as it is asked for."""
        cursor = self._execute(f"SELECT {_AUDIT} FROM audit ORDER BY seq")  # noqa: S608
        return (_make(AuditRow, row) for row in cursor)
