"""Find the key of the audit trail. It is never in the store: whoever can write the store must not be able to sign."""

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from troth.errors import MisuseError

__all__ = ["VARIABLE", "AuditKey", "find_key", "state_folder"]

VARIABLE = "TROTH_AUDIT_KEY"
_LEAST = 16  # bytes of a key that somebody gives


@dataclass(frozen=True, slots=True)
class AuditKey:
    """A key and the id under which entries name it."""

    secret: bytes
    id: str

    def __repr__(self) -> str:
        return f"AuditKey(id={self.id!r})"


def state_folder() -> Path:
    """Where this user's programs keep what is neither configuration nor cache."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "troth"


def find_key(secret: bytes | str | None = None, *, make: bool = True) -> AuditKey | None:
    """The key that was given, else of the environment, else of the user's key file, which is made if `make` says so."""
    chosen = secret if secret is not None else os.environ.get(VARIABLE)
    if chosen is not None:
        raw = chosen.encode() if isinstance(chosen, str) else bytes(chosen)
        if len(raw) < _LEAST:
            raise MisuseError(
                f"The audit key has {len(raw)} bytes, which can be guessed. Nothing was opened.\n"
                f"Give at least {_LEAST} bytes: `python -c 'import secrets; print(secrets.token_hex(32))'` prints some."
            )
        return _key(raw)
    path = state_folder() / "audit.key"
    if not path.exists():
        if not make:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return find_key()  # another process was quicker
        with os.fdopen(file, "w", encoding="ascii") as out:
            out.write(secrets.token_hex(32))
    if path.stat().st_mode & 0o077:
        raise MisuseError(
            f"The audit key {str(path)!r} can be read by others, so it proves nothing. Nothing was opened.\n"
            f"If no other user has read it, `chmod 600 {path}` is enough; otherwise delete it to get a new one."
        )
    text = path.read_text("ascii")
    return _key(text.encode()) if text else find_key_again(path)


def find_key_again(path: Path) -> AuditKey:
    """The key of a file that another process is just writing."""
    import time

    for _ in range(200):
        text = path.read_text("ascii")
        if text:
            return _key(text.encode())
        time.sleep(0.01)
    raise MisuseError(f"The audit key {str(path)!r} is empty. Delete it to get a new one.")


def _key(raw: bytes) -> AuditKey:
    return AuditKey(raw, hashlib.sha256(b"troth audit key\0" + raw).hexdigest()[:16])
