"""Look at deliveries, and acknowledge them."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from troth.runtime.promises.errors import UnknownDeliveryError
from troth.runtime.store.promise_records import DeliveryRecord, DeliveryState
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import not_found
from troth.server.routes.promises import OWNING

__all__ = ["router"]

router = APIRouter(tags=["deliveries"], route_class=DirectRoute)

DeliveryId = Annotated[str, Path(max_length=300, description="the id of the delivery")]


class DeliveryInfo(BaseModel):
    """A delivery as it is now."""

    id: str
    promise: str
    session: str
    kind: str
    state: DeliveryState
    channel: str | None
    attempt: int
    problem: str | None
    created_at: float
    finished_at: float | None


class AttemptInfo(BaseModel):
    """What one attempt to send came to, in the receiver's own words."""

    number: int
    at: float
    channel: str | None
    outcome: str
    words: str


class DeliveryDetails(DeliveryInfo):
    """A delivery with what it tells, and what its last attempts came to."""

    attempts: list[AttemptInfo]
    text: str
    data: Any = None


class DeliveryList(BaseModel):
    """Deliveries of one session, the oldest first."""

    data: list[DeliveryInfo]


class Acknowledged(BaseModel):
    """Whether the acknowledgement was the first one."""

    id: str
    is_new: bool


def info(record: DeliveryRecord) -> dict[str, Any]:
    """A delivery as it is told."""
    return {name: getattr(record, name) for name in DeliveryInfo.model_fields}


async def find_delivery(context: ServerContext, caller: Caller, delivery_id: str) -> DeliveryRecord:
    """A delivery of the caller's."""
    try:
        record = await context.runtime.outbox.afind(delivery_id)
    except UnknownDeliveryError:
        raise not_found("delivery", delivery_id) from None  # as one that is somebody else's
    if not await acheck_seen(context, caller, record.session, *OWNING):
        raise not_found("delivery", delivery_id)
    return record


@router.get("/deliveries", **needs(Scope.READ))
async def list_deliveries(
    context: ContextDep,
    caller: CallerDep,
    session: Annotated[str, Query(max_length=200, description="the conversation, run or session that receives it")],
    state: Annotated[DeliveryState | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeliveryList:
    """The deliveries of a session that are pending or were given up; with `state`, those in that state."""
    if not await acheck_seen(context, caller, session, *OWNING):
        raise not_found("session", session)
    states = None if state is None else [state]
    records = await context.runtime.outbox.alist(states=states, session=session, limit=limit)
    return DeliveryList(data=[DeliveryInfo(**info(record)) for record in records])


@router.get("/deliveries/{delivery_id}", **needs(Scope.READ))
async def show_delivery(delivery_id: DeliveryId, context: ContextDep, caller: CallerDep) -> DeliveryDetails:
    """A delivery with its content. Reading acknowledges nothing."""
    record = await find_delivery(context, caller, delivery_id)
    content = await context.runtime.outbox.aread(delivery_id)
    attempts = [AttemptInfo(**attempt._asdict()) for attempt in record.attempts]
    return DeliveryDetails(**info(record), attempts=attempts, text=content.text, data=content.data)


@router.post("/deliveries/{delivery_id}/ack", **needs(Scope.ACT))
async def acknowledge(delivery_id: DeliveryId, context: ContextDep, caller: CallerDep) -> Acknowledged:
    """Acknowledge a delivery. Can be repeated."""
    await find_delivery(context, caller, delivery_id)
    is_new = await context.runtime.outbox.aack(delivery_id, by=f"http:{caller.owner}")
    return Acknowledged(id=delivery_id, is_new=is_new)
