"""See how members of sessions stand: have one verified, readmit one, and name those whose score has fallen."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.errors import MisuseError
from troth.server.access.scopes import CallerDep, Scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.earlier_attempt import was_carried_out
from troth.server.errors import ApiError
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.routes.sessions import AgentId, MemberInfo, SessionId, SessionInfo, info, seen_session

__all__ = ["router"]

router = APIRouter(tags=["sessions"], route_class=DirectRoute)


class Verification(BaseModel):
    """What the verifier says of a member."""

    agent: str
    behaves: bool


class Readmission(BaseModel):
    """Why a member may act again."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=2000)


class LowMember(MemberInfo):
    """A member whose score is low, and its session."""

    session: str


class LowMembers(BaseModel):
    """Members below a score."""

    data: list[LowMember]


@router.post("/sessions/{session_id}/members/{agent}/verify", **needs(Scope.ACT))
async def verify_member(session_id: SessionId, agent: AgentId, context: ContextDep, caller: CallerDep) -> Verification:
    """Ask the verifier of this server whether a member behaves; the answer is audited. 501 if there is no verifier."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    await call(hypervisor.member_view, session_id, agent)
    if not hypervisor.has_verifier:
        raise ApiError(
            501,
            "no_verifier",
            "This server has no verifier to ask.",
            advice="Set `runtime.hypervisor = Hypervisor(runtime.store, verifier=…)` in the program that serves.",
        )
    return Verification(agent=agent, behaves=await call(hypervisor.verify, session_id, agent))


@router.post("/sessions/{session_id}/members/{agent}/readmit", response_model=SessionInfo, **needs(Scope.ADMIN))
async def readmit_member(
    session_id: SessionId, agent: AgentId, body: Readmission, context: ContextDep, caller: CallerDep, once: OnceDep
) -> Response:
    """Lift a suspension, or let a killed agent join again. 409 for a member who is neither."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    await call(hypervisor.member_view, session_id, agent)

    async def work(seed: Seed) -> Response:
        if not await was_carried_out(hypervisor, session_id, agent, "member.readmitted", seed):
            try:
                await call(lambda: hypervisor.readmit(session_id, agent, reason=body.reason))
            except MisuseError as refused:
                raise ApiError(409, "not_suspended", str(refused)) from refused
        readmitted = info((await seen_session(context, caller, session_id))[1])
        return JSONResponse(readmitted.model_dump(mode="json"))

    return await once(work)


@router.post("/sessions/monitor", **needs(Scope.ADMIN))
async def monitor_members(
    context: ContextDep,
    below: Annotated[float, Query(ge=0, le=1, description="the score below which a member is named")] = 0.5,
) -> LowMembers:
    """Look up the scores of all members of open sessions again, and return those below a score."""
    hypervisor = await call(lambda: context.runtime.hypervisor)
    members = await call(lambda: hypervisor.monitor(below=below))
    return LowMembers(data=[LowMember(session=session, **member.to_json()) for session, member in members])
