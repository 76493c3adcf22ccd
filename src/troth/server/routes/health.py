"""Say that the server is there."""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from troth import __version__
from troth.server.access.scopes import needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute

__all__ = ["router"]

router = APIRouter(tags=["health"], route_class=DirectRoute)


class Health(BaseModel):
    """Whether requests are taken."""

    status: Literal["ok", "closing"]
    version: str


@router.get("/health", responses={503: {"model": Health}}, **needs(None))
async def health(context: ContextDep, response: Response) -> Health:
    """Whether the server accepts requests; 503 while it shuts down."""
    if context.is_draining:
        response.status_code = 503
        response.headers["Retry-After"] = "1"
        return Health(status="closing", version=__version__)
    return Health(status="ok", version=__version__)
