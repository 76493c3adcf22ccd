"""Tell from the audit trail whether an earlier attempt at a request has done what it asks for."""

import json

from troth.bridge import call
from troth.runtime.sessions.hypervisor import Hypervisor
from troth.server.idempotency import Seed

__all__ = ["was_carried_out"]

_PAGE = 500  # entries of the trail that are read at once


async def was_carried_out(
    hypervisor: Hypervisor, session_id: str, agent: str, kind: str, seed: Seed, **data: object
) -> bool:
    """Whether the trail has an entry of this kind since the request first came, before a crash for one.

    A request that comes for the first time has no earlier attempt, and the trail is not read for it.
    """
    if not seed.is_repeated:
        return False

    def look() -> bool:
        after = 0
        while page := hypervisor.events(after=after, session=session_id, limit=_PAGE):
            for row in page:
                if (row.kind, row.agent) == (kind, agent) and row.at >= seed.since:
                    entry = json.loads(row.data)
                    if all(entry.get(name) == value for name, value in data.items()):
                        return True
            after = page[-1].seq
        return False

    return await call(look)
