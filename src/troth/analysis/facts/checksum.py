"""Tell bytes that were kept on disk from bytes that were damaged there."""

import zlib

__all__ = ["DamagedError", "opened", "sealed"]

_LENGTH = 4


class DamagedError(Exception):
    """What was kept is not what was written; the run begins again without it, and nobody else sees this."""


def sealed(data: bytes) -> bytes:
    """The bytes with their checksum."""
    return data + zlib.crc32(data).to_bytes(_LENGTH, "little")


def opened(data: bytes) -> bytes:
    """The bytes without their checksum, which has to be right."""
    inside = memoryview(data)[:-_LENGTH]
    if len(data) < _LENGTH or zlib.crc32(inside).to_bytes(_LENGTH, "little") != bytes(data[-_LENGTH:]):
        raise DamagedError
    return inside  # type: ignore[return-value]  # read like bytes, but not copied
