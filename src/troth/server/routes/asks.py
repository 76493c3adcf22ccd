"""Answer acts that wait for the yes of a person. Who answers is the owner of the key: nobody can speak for another."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.sessions.policy.consent import Ask
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import CallerDep, Scope, check_scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.routes.sessions import seen_session

__all__ = ["router"]

router = APIRouter(tags=["asks"], route_class=DirectRoute)


class GivenAnswer(BaseModel):
    """What one person has said."""

    by: str
    yes: bool
    reason: str


class AskInfo(BaseModel):
    """An act that waits, or has waited, for people. A yes is bound to `digest`."""

    id: str
    session: str
    agent: str
    what: str
    arguments: Any
    digest: str
    policy: str
    reason: str
    people: int
    asked_at: float
    expires_at: float
    state: str
    answers: list[GivenAnswer]


class AskList(BaseModel):
    """Acts that wait, the oldest first."""

    data: list[AskInfo]


class NewAnswer(BaseModel):
    """A yes or a no. `digest` is that of the ask as you have seen it: a yes to something else is refused."""

    model_config = ConfigDict(extra="forbid")

    yes: bool
    reason: str = Field(default="", max_length=2000)
    digest: str | None = None


def info(ask: Ask) -> AskInfo:
    """An ask as it is told."""
    answers = [GivenAnswer(by=by, yes=yes, reason=reason) for by, yes, reason in ask.answers]
    return AskInfo(**{**ask._asdict(), "answers": answers})


@router.get("/asks", **needs(Scope.READ))
async def list_asks(
    context: ContextDep,
    caller: CallerDep,
    session: Annotated[str | None, Query(max_length=200, description="the session; all of them need `admin`")] = None,
) -> AskList:
    """Acts that wait for approval."""
    if session is None:
        check_scope(caller, Scope.ADMIN)
    else:
        await seen_session(context, caller, session)
    hypervisor = await call(lambda: context.runtime.hypervisor)
    return AskList(data=[info(ask) for ask in await call(hypervisor.asks, session)])


@router.post("/asks/{ask_id}/answer", **needs(Scope.ACT))
async def answer_ask(
    ask_id: Annotated[str, Path(max_length=200)], body: NewAnswer, context: ContextDep, caller: CallerDep
) -> AskInfo:
    """Approve or deny an act that waits. It continues once enough people have approved; one denial ends it.

    The same owner can repeat the same answer, for example after a lost connection. 409 for anything else.
    """
    row = await call(context.store.read_sessions, lambda rows: rows.ask(ask_id))
    if row is None or not await acheck_seen(context, caller, row.session, "session"):
        raise not_found("ask", ask_id)
    ask = Ask.of(row)
    if any(by == caller.owner and yes == body.yes for by, yes, _ in ask.answers):
        return info(ask)
    hypervisor = await call(lambda: context.runtime.hypervisor)
    try:
        answered = await call(
            lambda: hypervisor.answer(ask_id, by=caller.owner, yes=body.yes, reason=body.reason, digest=body.digest)
        )
    except MisuseError as refused:
        message, _, advice = str(refused).partition("\n")
        raise ApiError(409, "not_answered", message, advice=advice or None) from refused
    return info(answered)
