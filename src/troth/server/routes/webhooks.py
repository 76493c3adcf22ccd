"""Register receivers of webhooks, rotate their secrets, see what did not reach them, and send it again."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from troth.runtime.store.promise_records import DeliveryState
from troth.server.access.scopes import CallerDep, Scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.webhooks import Endpoint

__all__ = ["router"]

router = APIRouter(tags=["webhooks"], route_class=DirectRoute)

WebhookId = Annotated[str, Path(max_length=200, description="the id of the webhook")]


class NewWebhook(BaseModel):
    """Whom to call."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(max_length=2000, description="an `https` address on the public internet")
    sessions: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=list, max_length=100, description="ids of runs and conversations (default: the owner's)"
    )
    description: str = Field(default="", max_length=500)


class WebhookInfo(BaseModel):
    """A receiver. Its secret is told when it is made or rotated, and never again."""

    id: str
    url: str
    sessions: list[str]
    description: str
    state: Literal["enabled", "disabled"]
    disabled_because: str | None
    created_at: float


class WebhookWithSecret(WebhookInfo):
    """A receiver with the secret that its deliveries are signed with."""

    secret: str


class WebhookList(BaseModel):
    """The receivers of an owner."""

    data: list[WebhookInfo]


class Failure(BaseModel):
    """A delivery that did not arrive: given up (`dead`), stored, or due for another attempt at `next_attempt_at`."""

    delivery: str
    promise: str
    state: DeliveryState
    attempts: int
    problem: str | None
    next_attempt_at: float | None


class FailureList(BaseModel):
    """Deliveries that did not arrive, the oldest first."""

    data: list[Failure]


class Rotation(BaseModel):
    """How a secret is rotated."""

    model_config = ConfigDict(extra="forbid")

    keep: float = Field(default=86400.0, ge=0, le=30 * 86400.0, description="seconds for which the old one signs too")


def info(endpoint: Endpoint) -> WebhookInfo:
    """A receiver as it is told."""
    return WebhookInfo(
        id=endpoint.id,
        url=endpoint.url,
        sessions=list(endpoint.sessions),
        description=endpoint.description,
        state="enabled" if endpoint.is_enabled else "disabled",
        disabled_because=endpoint.disabled_because,
        created_at=endpoint.created_at,
    )


def _with_secret(endpoint: Endpoint) -> WebhookWithSecret:
    return WebhookWithSecret(**info(endpoint).model_dump(), secret=endpoint.secrets[0].value)


@router.post("/webhooks", status_code=201, response_model=WebhookWithSecret, **needs(Scope.ACT))
async def register_webhook(body: NewWebhook, context: ContextDep, caller: CallerDep, once: OnceDep) -> Response:
    """Register a receiver: it is called with the results of this owner's work. Only this response has its secret.

    The address must lead to the public internet, now and at every call. 409 if another webhook already gets them.
    """

    async def work(seed: Seed) -> Response:
        endpoint_id = seed.id("wh")
        earlier = next((row for row in context.webhooks.list(caller.owner) if row.id == endpoint_id), None)
        endpoint = earlier or await context.webhooks.register(
            body.url,
            owner=caller.owner,
            sessions=body.sessions,
            description=body.description,
            endpoint_id=endpoint_id,
        )
        headers = {"Location": f"/v1/webhooks/{endpoint.id}"}
        return JSONResponse(_with_secret(endpoint).model_dump(mode="json"), 201, headers)

    return await once(work)


@router.get("/webhooks", **needs(Scope.READ))
def list_webhooks(context: ContextDep, caller: CallerDep) -> WebhookList:
    """The receivers of this owner; an admin sees everybody's."""
    return WebhookList(data=[info(endpoint) for endpoint in context.webhooks.list(caller.sees)])


@router.get("/webhooks/{webhook_id}", **needs(Scope.READ))
def show_webhook(webhook_id: WebhookId, context: ContextDep, caller: CallerDep) -> WebhookInfo:
    """One receiver."""
    return info(context.webhooks.get(webhook_id, caller.sees))


@router.delete("/webhooks/{webhook_id}", status_code=204, **needs(Scope.ACT))
async def delete_webhook(webhook_id: WebhookId, context: ContextDep, caller: CallerDep) -> None:
    """Delete a receiver. Its deliveries stay stored, and can be read."""
    await context.webhooks.delete(webhook_id, caller.sees)


@router.post("/webhooks/{webhook_id}/rotate", response_model=WebhookWithSecret, **needs(Scope.ACT))
async def rotate_secret(
    webhook_id: WebhookId, context: ContextDep, caller: CallerDep, once: OnceDep, body: Rotation | None = None
) -> Response:
    """Make a new secret. Deliveries are signed with both for a while, so that none is refused meanwhile.

    Send an `Idempotency-Key`: a repetition without one makes another secret, and the oldest of the three signs no more.
    """

    async def work(seed: Seed) -> Response:
        keep = (body or Rotation()).keep
        endpoint = await context.webhooks.rotate(webhook_id, caller.sees, keep=keep, rotation_id=seed.id("rot"))
        return JSONResponse(_with_secret(endpoint).model_dump(mode="json"))

    return await once(work)


@router.post("/webhooks/{webhook_id}/disable", **needs(Scope.ACT))
async def disable_webhook(webhook_id: WebhookId, context: ContextDep, caller: CallerDep) -> WebhookInfo:
    """Send nothing more to a receiver. Its deliveries are stored."""
    return info(await context.webhooks.disable(webhook_id, caller.sees))


@router.post("/webhooks/{webhook_id}/enable", **needs(Scope.ACT))
async def enable_webhook(webhook_id: WebhookId, context: ContextDep, caller: CallerDep) -> WebhookInfo:
    """Send to a receiver again, beginning with what was stored for it."""
    return info(await context.webhooks.enable(webhook_id, caller.sees))


@router.get("/webhooks/{webhook_id}/failures", **needs(Scope.READ))
async def list_failures(
    webhook_id: WebhookId, context: ContextDep, caller: CallerDep, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> FailureList:
    """Deliveries that did not arrive, and why."""
    records = await context.webhooks.failures(webhook_id, caller.sees, limit=limit)
    return FailureList(
        data=[
            Failure(
                delivery=record.id,
                promise=record.promise,
                state=record.state,
                attempts=record.attempt,
                problem=record.problem,
                next_attempt_at=record.due_at,
            )
            for record in records
        ]
    )


@router.post("/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", status_code=202, **needs(Scope.ACT))
async def replay_delivery(
    webhook_id: WebhookId,
    delivery_id: Annotated[str, Path(max_length=400)],
    context: ContextDep,
    caller: CallerDep,
) -> Response:
    """Send a delivery once more, under the same id. One that waits for its next attempt is tried at once."""
    await context.webhooks.replay(webhook_id, delivery_id, caller.sees)
    return Response(status_code=202)
