"""Tell Prometheus the numbers of the store."""

from typing import Any

from fastapi import APIRouter, Response

from troth.bridge import call
from troth.server.access import Scope, needs
from troth.server.context import ContextDep
from troth.server.telemetry.prometheus import CONTENT_TYPE

__all__ = ["router"]

router = APIRouter(tags=["metrics"])

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "All numbers."}
}


@router.get("/metrics", response_class=Response, responses=_TEXT, **needs(Scope.ADMIN))
async def metrics(context: ContextDep) -> Response:
    """Runs, promises, deliveries, turns and tokens, as Prometheus reads them; exact after a restart."""
    return Response(await call(context.telemetry.prometheus), media_type=CONTENT_TYPE)
