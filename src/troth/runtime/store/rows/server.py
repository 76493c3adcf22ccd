"""Read and write the rows of a server: keys, what belongs to whom, turns that are not over, requests and their answers.

The statements of one open transaction, or of one reading connection: nothing here begins or commits. What the values
mean is decided in `troth.server`.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from troth.runtime.store.identity import Owner, is_alive

__all__ = ["Belonging", "KeyRow", "RequestRow", "ServerRows", "TurnRow"]


class KeyRow(NamedTuple):
    """One key. Of the key itself only the digest is kept; `scopes` are words with spaces between them."""

    id: str
    owner: str
    name: str
    digest: str
    scopes: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None


class Belonging(NamedTuple):
    """What was begun by whom. `about` is JSON text."""

    kind: str
    id: str
    owner: str
    about: str
    created_at: float

    @property
    def details(self) -> dict[str, Any]:
        """What is known about it."""
        details: dict[str, Any] = json.loads(self.about)
        return details


class TurnRow(NamedTuple):
    """A turn of a conversation that was accepted and is not known to be over."""

    conversation: str
    agent: str
    begun_at: float


class RequestRow(NamedTuple):
    """A request that may be repeated. `base` is what its ids are made of, `answer` JSON text once it is answered."""

    owner: str
    key: str
    fingerprint: str
    base: str
    holder: str | None
    answer: str | None
    created_at: float
    finished_at: float | None


_KEY = "id, owner, name, digest, scopes, created_at, expires_at, revoked_at"
_BELONGING = "kind, id, owner, about, created_at"
_REQUEST = "owner, key, fingerprint, base, holder, answer, created_at, finished_at"


class ServerRows:
    """The statements about what a server keeps."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[..., Any]) -> None:
        self._execute = execute

    # Keys

    def add_key(self, key: KeyRow) -> None:
        """Write down a new key."""
        self._execute(f"INSERT INTO api_keys ({_KEY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", key)  # noqa: S608

    def key(self, key_id: str) -> KeyRow | None:
        """One key, revoked or not."""
        row = self._execute(f"SELECT {_KEY} FROM api_keys WHERE id = ?", (key_id,)).fetchone()  # noqa: S608
        return None if row is None else KeyRow(*row)

    def keys(self) -> list[KeyRow]:
        """All keys, the oldest first."""
        rows = self._execute(f"SELECT {_KEY} FROM api_keys ORDER BY created_at, id").fetchall()  # noqa: S608
        return [KeyRow(*row) for row in rows]

    def revoke_key(self, key_id: str, now: float) -> bool:
        """Revoke a key. Answers whether that is news."""
        cursor = self._execute("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, key_id))
        return bool(cursor.rowcount == 1)

    # What belongs to whom

    def claim(self, kind: str, thing: str, owner: str, now: float, about: object = None) -> str:
        """Write down who began something, unless somebody has; answers whose it is."""
        text = json.dumps({} if about is None else about)
        cursor = self._execute(
            f"INSERT INTO belongings ({_BELONGING}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608
            (kind, thing, owner, text, now),
        )
        if cursor.rowcount == 1:
            return owner
        (whose,) = self._execute("SELECT owner FROM belongings WHERE kind = ? AND id = ?", (kind, thing)).fetchone()
        return str(whose)

    def belonging(self, kind: str, thing: str) -> Belonging | None:
        """Who began something; nothing if no server knows of it."""
        row = self._execute(
            f"SELECT {_BELONGING} FROM belongings WHERE kind = ? AND id = ?",  # noqa: S608
            (kind, thing),
        ).fetchone()
        return None if row is None else Belonging(*row)

    def belongings(
        self, kind: str, *, owner: str | None = None, before: tuple[float, str] | None = None, limit: int = 100
    ) -> list[Belonging]:
        """What was begun, the newest first; of one owner, if one is named. `before` is where the last page ended."""
        where, values = ["kind = ?"], [kind]
        if owner is not None:
            where.append("owner = ?")
            values.append(owner)
        parameters: list[Any] = [*values]
        if before is not None:
            where.append("(created_at, id) < (?, ?)")
            parameters += before
        rows = self._execute(
            f"SELECT {_BELONGING} FROM belongings WHERE {' AND '.join(where)} "  # noqa: S608
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (*parameters, limit),
        ).fetchall()
        return [Belonging(*row) for row in rows]

    def begun_before(self, kind: str, moment: float, after: tuple[float, str], limit: int) -> list[Belonging]:
        """What was begun before a moment, the oldest first; `after` is where the last page ended."""
        rows = self._execute(
            f"SELECT {_BELONGING} FROM belongings WHERE kind = ? AND created_at < ? AND (created_at, id) > (?, ?) "  # noqa: S608
            "ORDER BY created_at, id LIMIT ?",
            (kind, moment, *after, limit),
        ).fetchall()
        return [Belonging(*row) for row in rows]

    # Turns

    def begin_turn(self, conversation: str, agent: str, now: float) -> None:
        """Write down that a turn is to be carried out, before anybody is told so."""
        self._execute(
            "INSERT INTO turns (conversation, agent, begun_at) VALUES (?, ?, ?) "
            "ON CONFLICT (conversation) DO UPDATE SET agent = excluded.agent, begun_at = excluded.begun_at",
            (conversation, agent, now),
        )

    def end_turn(self, conversation: str, begun_at: float) -> None:
        """Write down that a turn is over, unless another one has begun since."""
        self._execute("DELETE FROM turns WHERE conversation = ? AND begun_at = ?", (conversation, begun_at))

    def open_turns(self) -> list[TurnRow]:
        """The turns that are not known to be over, the oldest first."""
        rows = self._execute("SELECT conversation, agent, begun_at FROM turns ORDER BY begun_at").fetchall()
        return [TurnRow(*row) for row in rows]

    def under_way(self, owner: str) -> int:
        """How many runs and turns of an owner are at work, as far as is known."""
        runs, turns = self._execute(
            "SELECT (SELECT count(*) FROM runs INDEXED BY runs_by_state JOIN belongings "
            "ON kind = 'run' AND belongings.id = runs.id WHERE runs.state = 'running' AND owner = ?), "
            "(SELECT count(*) FROM turns JOIN belongings ON kind = 'conversation' AND id = conversation "
            "WHERE owner = ?)",
            (owner, owner),
        ).fetchone()
        return int(runs) + int(turns)

    def over_unnoticed(self, owner: str) -> int:
        """Of `under_way`, how many turns are over by their conversation, which nobody has written down yet."""
        (turns,) = self._execute(
            "SELECT count(*) FROM turns JOIN belongings ON kind = 'conversation' AND belongings.id = conversation "
            "JOIN conversations ON conversations.id = conversation WHERE owner = ? AND run IS NULL "
            "AND changed_at >= begun_at AND conversations.state NOT IN ('idle', 'running', 'interrupted')",
            (owner,),
        ).fetchone()
        return int(turns)

    # Requests

    def request(self, owner: str, key: str) -> RequestRow | None:
        """A request that came with this key."""
        row = self._execute(
            f"SELECT {_REQUEST} FROM requests WHERE owner = ? AND key = ?",  # noqa: S608
            (owner, key),
        ).fetchone()
        return None if row is None else RequestRow(*row)

    def put_request(self, request: RequestRow) -> None:
        """Write down a request, or what became of it."""
        self._execute(f"INSERT OR REPLACE INTO requests ({_REQUEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", request)  # noqa: S608

    def answer_request(self, owner: str, key: str, base: str, answer: str | None, now: float) -> bool:
        """Write down the answer of a request; without one, that nobody works on it any more."""
        cursor = self._execute(
            "UPDATE requests SET answer = ?, finished_at = ?, holder = NULL WHERE owner = ? AND key = ? AND base = ?",
            (answer, None if answer is None else now, owner, key, base),
        )
        return bool(cursor.rowcount == 1)

    def forget_request(self, owner: str, key: str, base: str) -> None:
        """A request that came to nothing: its key may be used again."""
        self._execute("DELETE FROM requests WHERE owner = ? AND key = ? AND base = ?", (owner, key, base))

    def has_requests(self, before: float) -> bool:
        """Whether there is a request that came before a moment."""
        return self._execute("SELECT 1 FROM requests WHERE created_at < ? LIMIT 1", (before,)).fetchone() is not None

    def forget_requests(self, before: float, limit: int) -> int:
        """Forget requests that came before a moment, so many at most. Answers how many."""
        cursor = self._execute(
            "DELETE FROM requests WHERE (owner, key) IN "
            "(SELECT owner, key FROM requests WHERE created_at < ? ORDER BY created_at LIMIT ?)",
            (before, limit),
        )
        return int(cursor.rowcount)

    def is_alive(self, owner_id: str, now: float) -> bool:
        """Whether the process lives that an owner's id names."""
        row = self._execute(
            "SELECT id, machine, pid, pid_started, beat_at FROM owners WHERE id = ?", (owner_id,)
        ).fetchone()
        return row is not None and is_alive(Owner(*row), now)

    def runs_by_state(self) -> dict[str, int]:
        """How many runs of workflows are in each state, by the word that their end has."""
        rows = self._execute(
            "SELECT coalesce(ending, state), count(*) FROM runs "
            "WHERE substr(decision, 1, instr(decision, ':')) = 'workflow:' AND instr(decision, ':') > 0 GROUP BY 1"
        ).fetchall()
        return dict(rows)

    def count(self, kinds: Iterable[str]) -> dict[str, int]:
        """How many things of each kind were begun."""
        return {
            kind: self._execute("SELECT count(*) FROM belongings WHERE kind = ?", (kind,)).fetchone()[0]
            for kind in kinds
        }
