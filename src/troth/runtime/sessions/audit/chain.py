"""Chain entries: each digest covers its entry and all before, each MAC signs a digest.

The digest can be checked by anybody, so an edit that was not chained anew is seen without the key. The MAC cannot be
made without the key, so one that was chained anew is seen with it.
"""

import hashlib

__all__ = ["FIRST", "Signer", "digest_of"]

_NEW = hashlib.sha256()
_BLOCK = 64  # bytes that SHA-256 works on at a time
FIRST = bytes(32)
"""What the first entry follows."""


def digest_of(before: bytes, seq: int, at: float, session: str, agent: str, kind: str, data: str, key: str) -> bytes:
    """The digest of one entry. The lengths keep one field from being read as a part of the next."""
    text = f"{seq}|{at!r}|{key}|{len(session)}|{len(agent)}|{len(kind)}|{session}{agent}{kind}{data}"
    return _sha256(before + text.encode("utf-8", "surrogatepass"))


def _sha256(data: bytes) -> bytes:
    digest = _NEW.copy()  # to make a new one costs more than to hash a short text
    digest.update(data)
    return digest.digest()


class Signer:
    """Signs digests with one key: HMAC with SHA-256, with the work on the key done once."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = (_sha256(secret) if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def sign(self, digest: bytes) -> bytes:
        """The MAC of a digest."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(digest)
        outer.update(inner.digest())
        return outer.digest()
