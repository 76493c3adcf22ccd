"""Make, check and revoke keys. Of a key only a digest is kept; the key itself is shown once.

A key is `troth_ID_SECRET`. The id finds the row, the digest of the secret is compared in constant time. The secret has
256 random bits, so that a plain SHA-256 is enough: there is nothing to guess a key from.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.store import Store, commit_point
from troth.runtime.store.rows.server import KeyRow, ServerRows
from troth.server.access.scopes import Caller, Scope

__all__ = ["PAGE_KEY", "Keys", "NewKey", "scopes_of"]

KEY_CREATE = commit_point("server.key.create", "a new key, before it is shown")
KEY_REVOKE = commit_point("server.key.revoke", "that a key is revoked")

PAGE_KEY = "page:"
"""How the name of a key begins that a sign-in at the pages has made; the id of the key that was shown there follows."""

_KEY = re.compile(r"troth_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,99}")
_FRESH = 1.0  # seconds for which a key is believed to be as it was: so long a revoked one may still be used
_MANY = 10_000  # keys that are remembered


class NewKey(NamedTuple):
    """A key that was just made. `secret` is what a client sends; it cannot be shown again."""

    secret: str
    row: KeyRow


def scopes_of(words: Iterable[str]) -> frozenset[Scope]:
    """The scopes that these words name."""
    scopes = set()
    for word in words:
        try:
            scopes.add(Scope(word.strip()))
        except ValueError:
            names = ", ".join(Scope)
            raise MisuseError(f"There is no scope {word!r}. Nothing was done. There are: {names}.") from None
    if not scopes:
        raise MisuseError("A key needs at least one scope. Nothing was done.")
    return frozenset(scopes)


class Keys:
    """The keys of one store. From any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[float, KeyRow | None]] = {}

    def create(
        self, owner: str, scopes: Iterable[str | Scope], *, name: str = "", lifetime: float | None = None
    ) -> NewKey:
        """Make a key for `owner`; it ends after `lifetime` seconds, if that is given."""
        if not _OWNER.fullmatch(owner):
            raise MisuseError(
                f"{owner!r} cannot be the owner of a key. Nothing was done.\n"
                "Give a name of letters, digits and `. _ @ : -` that begins with a letter or a digit."
            )
        if lifetime is not None and not 0 < lifetime < float("inf"):
            raise MisuseError(
                f"A key cannot be valid for {lifetime!r} seconds. Nothing was done. Give a number above 0."
            )
        words = " ".join(sorted(scopes_of(scopes)))
        key_id, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), self._store.clock()
        ends = None if lifetime is None else now + lifetime
        row = KeyRow(key_id, owner, name, _digest(secret), words, now, ends, None)
        self._store.commit(KEY_CREATE, lambda tx: tx.server.add_key(row))
        return NewKey(f"troth_{key_id}_{secret}", row)

    def list(self) -> list[KeyRow]:
        """All keys, revoked ones included, the oldest first."""
        return self._store.read_server(lambda rows: rows.keys())

    def revoke(self, key_id: str) -> bool:
        """Let a key open nothing any more. Answers whether that is news."""
        if self._store.read_server(lambda rows: rows.key(key_id)) is None:
            raise MisuseError(
                f"There is no key {key_id!r} in this store. Nothing was done. `troth keys list` shows all."
            )
        self._known.pop(key_id, None)
        now = self._store.clock()
        return self._store.commit(KEY_REVOKE, lambda tx: tx.server.revoke_key(key_id, now))

    def has_any(self) -> bool:
        """Whether there is a key that opens something."""
        now = self._store.clock()
        return any(_opens(row, now) for row in self.list() if not row.name.startswith(PAGE_KEY))

    async def acheck(self, secret: str) -> Caller | None:
        """Who shows this key; nothing if it opens nothing, or opens pages alone."""
        row = await self._row(secret)
        return None if row is None or row.name.startswith(PAGE_KEY) else _caller(row)

    async def acheck_page(self, secret: str) -> Caller | None:
        """Who shows the key of a sign-in at the pages; nothing once that is over, or the key that it was made with."""
        row = await self._row(secret)
        if row is None or not row.name.startswith(PAGE_KEY):
            return None
        origin = row.name.removeprefix(PAGE_KEY)
        if origin != "link":
            parent = await self._look_up(origin)
            if parent is None or not _opens(parent, self._store.clock()):
                return None
        return _caller(row)

    def closed_of(self, key_ids: Iterable[str]) -> Sequence[str]:
        """Those of the keys that open nothing any more. Blocks; nothing that is remembered is believed."""

        def look(rows: ServerRows) -> Sequence[str]:
            return [key_id for key_id in key_ids if not _opens_still(rows, key_id, self._store.clock())]

        return self._store.read_server(look)

    async def _row(self, secret: str) -> KeyRow | None:
        """The key of which this is the secret, if it opens anything."""
        match = _KEY.fullmatch(secret)
        if match is None:
            return None
        key_id, presented = match.groups()
        row = await self._look_up(key_id)
        # The digest is made and compared in any case, so that the time tells nothing of whether the id exists.
        is_right = hmac.compare_digest(_digest(presented), "0" * 64 if row is None else row.digest)
        return row if row is not None and is_right and _opens(row, self._store.clock()) else None

    async def _look_up(self, key_id: str) -> KeyRow | None:
        at, row = self._known.get(key_id, (0.0, None))
        if time.monotonic() - at > _FRESH:
            row = await call(self._store.read_server, lambda rows: rows.key(key_id))
            if len(self._known) >= _MANY:
                self._known.clear()
            if row is not None:  # somebody who guesses ids fills no memory
                self._known[key_id] = time.monotonic(), row
        return row


def _opens_still(rows: ServerRows, key_id: str, now: float) -> bool:
    row = rows.key(key_id)
    if row is None or not _opens(row, now):
        return False
    origin = row.name.removeprefix(PAGE_KEY) if row.name.startswith(PAGE_KEY) else "link"
    return origin == "link" or _opens_still(rows, origin, now)


def _caller(row: KeyRow) -> Caller:
    return Caller(row.owner, scopes_of(row.scopes.split()), row.id)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _opens(row: KeyRow, now: float) -> bool:
    return row.revoked_at is None and (row.expires_at is None or now < row.expires_at)
