"""Write the audit trail: an entry in the commit of what it tells of, and its newest number to the anchor after it."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from troth.runtime.sessions.audit.anchor import Anchor
from troth.runtime.sessions.audit.chain import FIRST, Signer, digest_of
from troth.runtime.sessions.audit.key import AuditKey
from troth.runtime.sessions.commit_points import ANCHOR_EVENT
from troth.runtime.sessions.errors import AnchorFailedError
from troth.runtime.store import Store, Transaction
from troth.runtime.store.json_codec import encode

__all__ = ["Trail"]

Head = tuple[int, bytes, bytes]
"""Number, MAC and digest of an entry."""
log = logging.getLogger("troth.sessions")


class Trail:
    """The audit trail of one store."""

    def __init__(self, store: Store, key: AuditKey, anchor: Anchor, *, is_strict: bool) -> None:
        self.key = key
        self._signer = Signer(key.secret)
        self.anchor = anchor
        self.is_strict = is_strict
        self._store = store
        self._lock = threading.Lock()
        self._anchored = 0
        self._head: Head | None = None
        self._kept: Head | None = None
        self.newest: Head | None = None
        self.is_failing = False

    def add(self, tx: Transaction, session: str, agent: str, kind: str, data: Mapping[str, Any], now: float) -> Head:
        """Add an entry in this commit. The answer is to be anchored once the commit is kept."""
        return self.add_text(tx, session, agent, kind, encode(data, f"audit entry {kind!r}"), now)

    def add_text(self, tx: Transaction, session: str, agent: str, kind: str, text: str, now: float) -> Head:
        """`add` with data that is JSON text already."""
        key, now = self.key, float(now)
        # The newest entry is remembered, and read only if it may be another one: if the commit of what is remembered is
        # not known to be kept, or if the next number is taken, by another process.
        head = self._head
        before = (head[0], head[2]) if head is not None and head is self._kept else None
        while True:
            seq, digest = before or tx.sessions.audit_head() or (0, FIRST)
            seq += 1
            digest = digest_of(digest, seq, now, session, agent, kind, text, key.id)
            mac = self._signer.sign(digest)
            if tx.sessions.add_audit((seq, now, session, agent, kind, text, key.id, digest, mac)):
                self._head = self.newest = head = (seq, mac, digest)
                return head
            before = None

    def anchor_newest(self) -> None:
        """Have the newest entry of the store anchored, whoever wrote it."""
        self._anchor(self._store.read_sessions(lambda rows: rows.audit_anchor()))

    def anchor_entry(self, head: Head | None) -> None:
        """Have an entry anchored whose commit is kept."""
        if head is not None:
            self._kept = head
            self._anchor(head)

    def note_kept(self, head: Head | None) -> None:
        """The commit of this entry is known to be kept."""
        if head is not None and head is self._head:
            self._kept = head

    def _anchor(self, head: Sequence[Any] | None) -> None:
        """Put an entry to the anchor. A failure is an entry of its own, and is caught up later."""
        if head is None or head[0] <= self._anchored:
            return
        with self._lock:
            if head[0] <= self._anchored:
                return
            try:
                self.anchor.put(head[0], head[1].hex())
            except Exception as problem:  # noqa: BLE001  the user's own code, or their disk
                self._failed(problem)
                return
            self._anchored = head[0]
            if self.is_failing:
                self.is_failing = False
                self._note("anchor.works", {"entry": head[0]})

    def check_strict(self) -> None:
        """With `strict`, refuse to go on while the newest entry is not anchored; tries it once more."""
        if self.is_strict and self.is_failing:
            self.anchor_newest()
            if self.is_failing:
                raise AnchorFailedError(
                    "The newest entry of the audit trail could not be anchored, and with `strict=True` nothing "
                    "continues until it can be.\nNothing was done. What was done before is kept; see the event "
                    "`anchor.failed`."
                )

    def _failed(self, problem: Exception) -> None:
        if not self.is_failing:
            self.is_failing = True
            log.warning("The audit trail could not be anchored; trying again: %s", problem)
            self._note("anchor.failed", {"error": f"{type(problem).__name__}: {problem}"})

    def _note(self, kind: str, data: Mapping[str, Any]) -> None:
        self._store.commit(ANCHOR_EVENT, lambda tx: self.add(tx, "", "", kind, data, self._store.clock()))
