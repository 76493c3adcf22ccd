"""What every store has to do, as checks that raise AssertionError.

    for check in checks("streams", "leases"):
        check.run(ground)

A `StoreGround` says how to open the store under test, here and in another process. The file and PostgreSQL pass every
part. Each check begins on an empty store.
"""

from troth.testing.store_conformance import (
    commits,
    history,
    leases,
    lists,
    news,
    promises,
    runs,
    server,
    sessions,
    signals,
    streams,
)
from troth.testing.store_conformance.check import Part, StoreCheck, StoreGround, found

__all__ = ["Part", "StoreCheck", "StoreGround", "checks"]

# Imported for their checks.
_PARTS = (commits, streams, runs, history, signals, leases, promises, sessions, server, news, lists)


def checks(*parts: Part) -> list[StoreCheck]:
    """The checks of these parts; all of them if none is named."""
    return [check for check in found() if not parts or check.part in parts]
