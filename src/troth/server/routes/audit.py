"""Read the audit trail of sessions, and have it verified."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from troth.bridge import call
from troth.server.access.scopes import CallerDep, Scope, check_scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.routes.sessions import seen_session

__all__ = ["router"]

router = APIRouter(tags=["audit"], route_class=DirectRoute)


class AuditEntry(BaseModel):
    """One entry of the trail. `digest` and `mac` are in hexadecimal."""

    seq: int
    at: float
    session: str
    agent: str
    kind: str
    data: Any
    digest: str
    mac: str


class AuditPage(BaseModel):
    """Entries, the oldest first."""

    data: list[AuditEntry]


class TrailVerdict(BaseModel):
    """What a verification of the whole trail found."""

    verdict: Literal["valid", "consistent, head not anchored", "broken"]
    entries: int
    problem: str | None
    entry: int | None


@router.get("/audit", **needs(Scope.READ))
async def read_audit(
    context: ContextDep,
    caller: CallerDep,
    session: Annotated[str | None, Query(max_length=200, description="the session; all of them need `admin`")] = None,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditPage:
    """What happened in a session, in order; in all of them for an admin."""
    if session is None:
        check_scope(caller, Scope.ADMIN)
        hypervisor = await call(lambda: context.runtime.hypervisor)
    else:
        hypervisor, _ = await seen_session(context, caller, session)
    rows = await call(lambda: hypervisor.events(after=after, session=session, limit=limit))
    return AuditPage(
        data=[
            AuditEntry(
                seq=row.seq,
                at=row.at,
                session=row.session,
                agent=row.agent,
                kind=row.kind,
                data=json.loads(row.data),
                digest=row.digest.hex(),
                mac=row.mac.hex(),
            )
            for row in rows
        ]
    )


@router.get("/audit/verify", **needs(Scope.ADMIN))
async def verify_audit(context: ContextDep) -> TrailVerdict:
    """Verify the whole trail with the server's key and anchor."""
    hypervisor = await call(lambda: context.runtime.hypervisor)
    verdict = await call(hypervisor.verify_audit)
    return TrailVerdict(verdict=verdict.word, entries=verdict.entries, problem=verdict.problem, entry=verdict.entry)
