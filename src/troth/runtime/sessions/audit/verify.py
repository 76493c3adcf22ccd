"""Verify an audit trail: that nothing in it was changed, and that nothing of it is missing."""

import hmac
from dataclasses import dataclass
from typing import Literal

from troth.runtime.sessions.audit.anchor import Anchor
from troth.runtime.sessions.audit.chain import FIRST, Signer, digest_of
from troth.runtime.sessions.audit.key import AuditKey
from troth.runtime.store import Store
from troth.runtime.store.rows.sessions import SessionRows

__all__ = ["AuditVerdict", "verify_trail"]

Word = Literal["valid", "consistent, head not anchored", "broken"]


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """What a verification found. `problem` says why it is not valid, `entry` at which number."""

    word: Word
    entries: int
    problem: str | None = None
    entry: int | None = None
    unknown_keys: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing was changed and nothing is missing."""
        return self.word == "valid"

    @property
    def is_broken(self) -> bool:
        """Whether something was changed or is missing."""
        return self.word == "broken"

    def __str__(self) -> str:
        return f"{self.word}: {self.entries} entries" + (f"; {self.problem}" if self.problem else "")


def verify_trail(store: Store, key: AuditKey | None, anchor: Anchor | None) -> AuditVerdict:
    """Read the whole trail once, in the order of its numbers. Memory stays flat.

    The anchor is read first: what is committed meanwhile makes the store ahead of it, which is valid.
    """
    anchored = None if anchor is None else anchor.get()
    return store.read_sessions(lambda rows: _verify(rows, key, anchored))


def _verify(rows: SessionRows, key: AuditKey | None, kept: tuple[int, str] | None) -> AuditVerdict:
    before, count = FIRST, 0
    signer = None if key is None else Signer(key.secret)
    unknown: dict[str, None] = {}
    for row in rows.walk_audit():
        count += 1
        if row.seq != count:
            return AuditVerdict("broken", count - 1, f"entry {count} is missing: entry {row.seq} follows", count)
        digest = digest_of(before, row.seq, row.at, row.session, row.agent, row.kind, row.data, row.key)
        if digest != row.digest:
            return AuditVerdict("broken", count, f"entry {count} is not what was written, or not where it was", count)
        if signer is not None and key is not None and row.key == key.id:
            if not hmac.compare_digest(signer.sign(digest), row.mac):
                return AuditVerdict("broken", count, f"entry {count} was not signed by the holder of the key", count)
        else:
            unknown[row.key] = None
        if kept is not None and row.seq == kept[0] and row.mac.hex() != kept[1]:
            return AuditVerdict("broken", count, f"entry {count} is not the one that was anchored", count)
        before = digest
    if kept is not None and count < kept[0]:
        return AuditVerdict(
            "broken", count, f"the trail ends at entry {count}, and entry {kept[0]} was anchored", count + 1
        )
    names = tuple(unknown)
    weak: Word = "consistent, head not anchored"
    if key is None:
        return AuditVerdict(weak, count, "there is no key to check the signatures with", None, names)
    if names:
        return AuditVerdict(
            weak, count, f"entries are signed with keys that are not available: {', '.join(names)}", None, names
        )
    if kept is None and count:
        return AuditVerdict(weak, count, "there is no anchor to compare the newest entry with")
    return AuditVerdict("valid", count)
