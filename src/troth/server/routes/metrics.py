"""Tell Prometheus the numbers of the store and of this process."""

from typing import Any

from fastapi import APIRouter, Response

from troth.bridge import call
from troth.server.access.scopes import Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.telemetry.metrics import Sample
from troth.server.telemetry.prometheus import CONTENT_TYPE

__all__ = ["router"]

router = APIRouter(tags=["metrics"], route_class=DirectRoute)

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "All numbers."}
}


@router.get("/metrics", response_class=Response, responses=_TEXT, **needs(Scope.ADMIN))
async def metrics(context: ContextDep) -> Response:
    """Runs, promises, deliveries, turns and tokens, in the Prometheus text format; exact after a restart."""
    text = await call(lambda: context.telemetry.prometheus(_of_process(context)))
    return Response(text, media_type=CONTENT_TYPE)


def _of_process(context: ServerContext) -> list[Sample]:
    return [Sample("streams", context.feeds.readers), Sample("closing", int(context.is_draining))]
