"""Govern sessions: create, join, act, elevate, kill, end; each verb is the hypervisor's own."""

import asyncio
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.hypervisor import Hypervisor
from troth.runtime.sessions.policy.decision import PolicyTable, Rule, Word
from troth.runtime.sessions.session import Session
from troth.runtime.sessions.state import SessionState
from troth.runtime.store import RunRecord, RunState
from troth.server.access.owners import aclaim, afind, alist, page_cursor, page_end
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.channels import HttpChannel
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.earlier_attempt import was_carried_out
from troth.server.errors import ApiError, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.prefer import PreferDep
from troth.server.telemetry import tracing
from troth.server.telemetry.names import Attribute, SpanName

__all__ = ["router", "seen_session"]

router = APIRouter(tags=["sessions"], route_class=DirectRoute)

SessionId = Annotated[str, Path(max_length=200, description="the id of the session")]
AgentId = Annotated[str, Path(max_length=256, description="the agent, as it joined")]
_FORBID = ConfigDict(extra="forbid")
_UNTIL_BEGUN = 0.02  # seconds between two looks whether an act is written down


class PolicyRow(BaseModel):
    """One row of a policy. `action` and `agent` are patterns as of a shell; `ask` waits for the yes of `people`."""

    model_config = _FORBID

    answer: Word
    action: str = Field(default="*", min_length=1, max_length=200)
    agent: str = Field(default="*", min_length=1, max_length=256)
    rings: list[Annotated[int, Field(ge=0, le=3)]] | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    reason: str = Field(default="", max_length=2000)
    people: int = Field(default=1, ge=1, le=100)
    expires: float = Field(default=3600.0, gt=0.001, le=604800, description="seconds for which an act may wait")


class NewSession(BaseModel):
    """What the session allows."""

    model_config = _FORBID

    policy: list[PolicyRow] | None = Field(
        default=None, max_length=200, description="checked before every act: the first matching row decides"
    )
    otherwise: Word = Field(default="deny", description="the decision if no row of the policy matches")
    max_members: int = Field(default=10, ge=1, le=1000)
    max_duration: float = Field(default=3600, gt=0.001, le=604800, description="in seconds")
    min_score: float = Field(default=0.6, ge=0, le=1)


class MemberInfo(BaseModel):
    """One agent in a session."""

    agent: str
    state: str
    ring: int
    score: float
    joined_at: float
    left_at: float | None


class SessionInfo(BaseModel):
    """A session as it is now."""

    id: str
    creator: str
    state: SessionState
    created_at: float
    ends_at: float
    ended_at: float | None
    reason: str | None
    left: list[str]
    members: list[MemberInfo]


class SessionList(BaseModel):
    """A page of sessions, newest first."""

    data: list[SessionInfo]
    next: str | None


class Joining(BaseModel):
    """Who joins, and what it is trusted with."""

    model_config = _FORBID

    agent: str = Field(min_length=1, max_length=256)
    score: float | None = Field(default=None, ge=0, le=1)
    actions: list[str] = Field(default_factory=list)
    consensus: list[str] = Field(default_factory=list, description="who vouches for it")


class Elevation(BaseModel):
    """A more privileged ring for a time."""

    model_config = _FORBID

    ring: int = Field(ge=0, le=2)
    attestation: str = Field(default="", description="who is responsible for it; required for rings 0 and 1")
    seconds: float = Field(default=300, gt=0.001, le=3600)


class Killing(BaseModel):
    """Why an agent is killed, and who takes over."""

    model_config = _FORBID

    reason: str = Field(min_length=1)
    substitute: str | None = None


class KillInfo(BaseModel):
    """What came of a kill. `terminated` is true only if nothing of the agent goes on."""

    id: str
    session: str
    agent: str
    reason: str
    at: float
    terminated: bool
    stopped: list[str]
    undone: list[str]
    handed_over: list[str]
    left: list[str]


class Ending(BaseModel):
    """Why a session ends."""

    model_config = _FORBID

    reason: str = Field(default="it was terminated", min_length=1)


class Act(BaseModel):
    """An action that a member is to have performed."""

    model_config = _FORBID

    agent: str
    action: str
    inputs: dict[str, Any] = Field(default_factory=dict)


class ActInfo(BaseModel):
    """What became of an act. `id` names it; `result` is what the action returned."""

    id: str
    state: Literal["running", "completed", "failed", "cancelled"]
    result: Any = None
    error: dict[str, Any] | None = None


async def seen_session(context: ServerContext, caller: Caller, session_id: str) -> tuple[Hypervisor, Session]:
    """A session of the caller's."""
    await afind(context, caller, "session", session_id)
    hypervisor = await call(lambda: context.runtime.hypervisor)
    session = await call(hypervisor.get, session_id)
    if session is None:
        raise not_found("session", session_id)
    return hypervisor, session


def info(session: Session) -> SessionInfo:
    """A session as it is told."""
    return SessionInfo(**session.to_json())


@router.post("/sessions", status_code=201, response_model=SessionInfo, **needs(Scope.RUN))
async def create_session(body: NewSession, context: ContextDep, caller: CallerDep, once: OnceDep) -> Response:
    """Create a session. It has no members yet."""
    if body.policy is None and "otherwise" in body.model_fields_set:
        raise ApiError(400, "invalid_field", "`otherwise` goes with a `policy`.", param="otherwise")
    rules = [Rule(**row.model_dump()) for row in body.policy or ()]
    config = SessionConfig(
        max_members=body.max_members,
        max_duration=body.max_duration,
        min_score=body.min_score,
        policy=None if body.policy is None else PolicyTable(rules, body.otherwise),
    )

    async def work(seed: Seed) -> Response:
        session_id = seed.id("session")
        await aclaim(context, caller, "session", session_id)
        hypervisor = await call(lambda: context.runtime.hypervisor)
        session = await call(hypervisor.get, session_id) if seed.is_repeated else None
        if session is None:
            session = await call(lambda: hypervisor.create(caller.owner, config, session_id=session_id))
        headers = {"Location": f"/v1/sessions/{session_id}"}
        return JSONResponse(info(session).model_dump(mode="json"), 201, headers)

    return await once(work)


@router.get("/sessions", **needs(Scope.READ))
async def list_sessions(
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page")] = None,
) -> SessionList:
    """The sessions that were created through a server, newest first."""
    page = await alist(context, caller, "session", before=page_cursor(before), limit=limit)
    hypervisor = await call(lambda: context.runtime.hypervisor)
    sessions = [session for belonging in page if (session := await call(hypervisor.get, belonging.id)) is not None]
    return SessionList(data=[info(session) for session in sessions], next=page_end(page, limit))


@router.get("/sessions/{session_id}", **needs(Scope.READ))
async def show_session(session_id: SessionId, context: ContextDep, caller: CallerDep) -> SessionInfo:
    """A session as it is now."""
    return info((await seen_session(context, caller, session_id))[1])


@router.post("/sessions/{session_id}/activate", **needs(Scope.ACT))
async def activate_session(session_id: SessionId, context: ContextDep, caller: CallerDep) -> SessionInfo:
    """Allow the members to act. The session needs at least one. Can be repeated."""
    hypervisor, session = await seen_session(context, caller, session_id)
    return info(session if session.state is SessionState.ACTIVE else await call(hypervisor.activate, session_id))


@router.post("/sessions/{session_id}/members", status_code=201, response_model=SessionInfo, **needs(Scope.ACT))
async def join_session(
    session_id: SessionId, body: Joining, context: ContextDep, caller: CallerDep, once: OnceDep
) -> Response:
    """Add an agent to the session."""
    hypervisor, session = await seen_session(context, caller, session_id)
    missing = [name for name in body.actions if name not in hypervisor.actions]
    if missing:
        raise ApiError(400, "unknown_action", f"No action {missing[0]!r} is registered here.", param="actions")

    async def work(seed: Seed) -> Response:
        members = info(session).members if seed.is_repeated else []
        if not any(member.agent == body.agent and member.joined_at >= seed.since for member in members):
            await call(
                lambda: hypervisor.join(
                    session_id, body.agent, score=body.score, actions=body.actions, consensus=body.consensus
                )
            )
        joined = info((await seen_session(context, caller, session_id))[1])
        return JSONResponse(joined.model_dump(mode="json"), 201)

    return await once(work)


@router.delete("/sessions/{session_id}/members/{agent}", **needs(Scope.ACT))
async def leave_session(session_id: SessionId, agent: AgentId, context: ContextDep, caller: CallerDep) -> SessionInfo:
    """Remove an agent from the session. It can join again. Can be repeated."""
    hypervisor, session = await seen_session(context, caller, session_id)
    if any(member.agent == agent and member.state == "left" for member in session.members):
        return info(session)
    await call(hypervisor.leave, session_id, agent)
    return info((await seen_session(context, caller, session_id))[1])


@router.post("/sessions/{session_id}/members/{agent}/elevate", response_model=SessionInfo, **needs(Scope.ADMIN))
async def elevate_member(
    session_id: SessionId, agent: AgentId, body: Elevation, context: ContextDep, caller: CallerDep, once: OnceDep
) -> Response:
    """Give a member a more privileged ring for a time."""
    hypervisor, _ = await seen_session(context, caller, session_id)

    async def work(seed: Seed) -> Response:
        if not await was_carried_out(hypervisor, session_id, agent, "member.elevated", seed, ring=body.ring):
            await call(
                lambda: hypervisor.elevate(
                    session_id, agent, body.ring, attestation=body.attestation, seconds=body.seconds
                )
            )
        elevated = info((await seen_session(context, caller, session_id))[1])
        return JSONResponse(elevated.model_dump(mode="json"))

    return await once(work)


@router.post("/sessions/{session_id}/members/{agent}/kill", **needs(Scope.KILL))
async def kill_member(
    session_id: SessionId, agent: AgentId, body: Killing, context: ContextDep, caller: CallerDep
) -> KillInfo:
    """Kill an agent: its membership ends at once, and its work is stopped and undone. Can be repeated."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    with tracing.span(SpanName.KILL, {Attribute.SESSION: session_id, Attribute.AGENT: agent}) as span:
        kill = await call(lambda: hypervisor.kill(session_id, agent, reason=body.reason, substitute=body.substitute))
        span.set({Attribute.TERMINATED: kill.terminated})
    return KillInfo.model_validate(kill.to_json())


@router.post("/sessions/{session_id}/terminate", **needs(Scope.KILL))
async def terminate_session(session_id: SessionId, body: Ending, context: ContextDep, caller: CallerDep) -> SessionInfo:
    """End a session: no member can act, and unfinished work is undone. 409 if something is still running; try again.

    Can be repeated; a session that has ended stays as it is.
    """
    hypervisor, session = await seen_session(context, caller, session_id)
    if session.state is not SessionState.ARCHIVED:
        session = await call(lambda: hypervisor.terminate(session_id, reason=body.reason))
    return info(session)


@router.post(
    "/sessions/{session_id}/execute",
    response_model=ActInfo,
    responses={202: {"model": ActInfo}},
    **needs(Scope.ACT, "http"),
)
async def execute(
    session_id: SessionId, body: Act, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Perform a registered action for a member. 501 if no action of that name is registered; 202 while it runs."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    await call(hypervisor.member_view, session_id, body.agent)

    async def work(seed: Seed) -> Response:
        act_id = seed.id("act")
        await aclaim(context, caller, "act", act_id, {"session": session_id})

        with HttpChannel.session(session_id):
            perform = partial(hypervisor.perform_act, session_id, body.agent, body.action, body.inputs, run_id=act_id)
            task = asyncio.ensure_future(call(perform))
        context.tasks.add(task)
        task.add_done_callback(context.tasks.discard)
        await asyncio.wait({task}, timeout=context.limits.wait if prefer.wait is None else prefer.wait)
        record = await call(hypervisor.engine.find, act_id)
        while record is None and not task.done():  # a refusal now would be followed by the act all the same
            await asyncio.wait({task}, timeout=_UNTIL_BEGUN)
            record = await call(hypervisor.engine.find, act_id)
        if (
            task.done()
            and (problem := task.exception()) is not None
            and (record is None or isinstance(problem, MisuseError))
        ):
            raise problem
        if record is None:
            raise ApiError(503, "not_begun", "The act has not begun yet.")
        act = act_info(record)
        status = 202 if act.state == "running" else 200
        headers = {"Location": f"/v1/sessions/{session_id}/acts/{act_id}", **prefer.headers}
        return JSONResponse(act.model_dump(mode="json"), status, headers)

    return await once(work)


@router.get("/sessions/{session_id}/acts/{act_id}", **needs(Scope.READ))
async def show_act(
    session_id: SessionId, act_id: Annotated[str, Path(max_length=200)], context: ContextDep, caller: CallerDep
) -> ActInfo:
    """What became of an act."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    belonging = await afind(context, caller, "act", act_id)
    record = await call(hypervisor.engine.find, act_id)
    if record is None or belonging is None or belonging.details.get("session") != session_id:
        raise not_found("act", act_id)
    return act_info(record)


_WORDS: dict[RunState, Literal["completed", "failed", "cancelled"]] = {
    RunState.COMPLETED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}


def act_info(record: RunRecord) -> ActInfo:
    """An act as it is told."""
    error = record.error if isinstance(record.error, dict) else None
    problem = None if error is None else {"type": error.get("type"), "message": error.get("message")}
    return ActInfo(id=record.id, state=_WORDS.get(record.state, "running"), result=record.result, error=problem)
