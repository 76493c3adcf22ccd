"""Ask for results that were promised: 202 while the work goes on, 410 once they are gone, 404 for what never was."""

import contextlib
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel

from troth.bridge import call
from troth.runtime.promises.errors import NotSettledError, UnknownPromiseError
from troth.runtime.store.promise_records import PromiseRecord, PromiseState
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.json_response import JSONResponse
from troth.server.prefer import PreferDep

__all__ = ["OWNING", "find_promise", "router"]

router = APIRouter(tags=["promises"], route_class=DirectRoute)

OWNING = ("conversation", "run", "session")
"""What a promise's session can be."""

PromiseId = Annotated[str, Path(max_length=200, description="the id of the promise")]


class PromiseInfo(BaseModel):
    """A promise as it is now."""

    id: str
    session: str
    work: str
    subject: str
    title: str
    state: PromiseState
    result: Any = None
    error: dict[str, Any] | None = None
    created_at: float
    settled_at: float | None
    expires_at: float | None


class PromiseList(BaseModel):
    """A page of promises of one session, newest first. `next` is what `?before=` takes for the page after it."""

    data: list[PromiseInfo]
    next: str | None = None


def info(record: PromiseRecord) -> PromiseInfo:
    """A promise as it is told."""
    return PromiseInfo(
        id=record.id,
        session=record.session,
        work=record.work,
        subject=record.subject,
        title=record.title,
        state=record.state,
        result=record.result,
        error=None if record.error is None else dict(record.error),
        created_at=record.created_at,
        settled_at=record.settled_at,
        expires_at=record.expires_at,
    )


async def find_promise(context: ServerContext, caller: Caller, promise_id: str) -> PromiseRecord:
    """A promise of the caller's; 410 if its result is gone."""
    try:
        record = await context.runtime.promises.aget(promise_id)
    except UnknownPromiseError:
        raise not_found("promise", promise_id) from None  # as one that is somebody else's
    if not await acheck_seen(context, caller, record.session, *OWNING):
        raise not_found("promise", promise_id)
    if record.state is PromiseState.EXPIRED:
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.expired_at))
        raise ApiError(410, "promise_expired", f"The result of the promise {promise_id!r} has expired since {since}.")
    return record


@router.get("/promises", **needs(Scope.READ))
async def list_promises(
    context: ContextDep,
    caller: CallerDep,
    session: Annotated[str, Query(max_length=200, description="the conversation, run or session that they belong to")],
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page")] = None,
) -> PromiseList:
    """The promises of one conversation, run or session."""
    if not await acheck_seen(context, caller, session, *OWNING):
        raise not_found("session", session)
    page = await context.runtime.lists.apromises(session=session, cursor=before, limit=limit)
    records = await call(lambda: [context.store.promises.find(item.id) for item in page])
    return PromiseList(data=[info(record) for record in records if record is not None], next=page.next)


@router.get(
    "/promises/{promise_id}", response_model=PromiseInfo, responses={202: {"model": PromiseInfo}}, **needs(Scope.READ)
)
async def show_promise(promise_id: PromiseId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> Response:
    """A promise: 200 when its work is over, 202 with `Retry-After` while it runs. Reading acknowledges nothing."""
    record = await find_promise(context, caller, promise_id)
    if not record.is_settled and prefer.wait:
        with contextlib.suppress(NotSettledError):
            await context.runtime.promises.await_end(promise_id, prefer.wait)
        record = await find_promise(context, caller, promise_id)
    headers = prefer.headers if record.is_settled else {"Retry-After": "1", **prefer.headers}
    return JSONResponse(info(record).model_dump(mode="json"), 200 if record.is_settled else 202, headers)


@router.post("/promises/{promise_id}/cancel", status_code=202, **needs(Scope.ACT))
async def cancel_promise(promise_id: PromiseId, context: ContextDep, caller: CallerDep) -> PromiseInfo:
    """Cancel the work. Can be repeated; work that is over stays as it is."""
    await find_promise(context, caller, promise_id)
    await context.runtime.promises.acancel(promise_id)
    return info(await context.runtime.promises.aget(promise_id))
