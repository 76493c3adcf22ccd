"""Name the agents that can be asked, as OpenAI names models."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel

from troth.server.access.scopes import Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError

__all__ = ["router", "unknown_model"]

router = APIRouter(tags=["models"], route_class=DirectRoute)


class AgentEntry(BaseModel):
    """One agent."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "troth"


class ModelList(BaseModel):
    """All agents."""

    object: Literal["list"] = "list"
    data: list[AgentEntry]


def unknown_model(context: ServerContext, name: str) -> ApiError:
    """There is no agent of that name."""
    names = ", ".join(context.agents) or "none"
    return ApiError(
        404, "model_not_found", f"There is no agent {name!r} here.", param="model", advice=f"There are: {names}."
    )


@router.get("/models", **needs(Scope.READ))
def list_models(context: ContextDep) -> ModelList:
    """The agents of this server; `model` in a request is one of these names."""
    return ModelList(data=[_model(context, name) for name in context.agents])


@router.get("/models/{model:path}", **needs(Scope.READ))
def show_model(model: Annotated[str, Path(max_length=200)], context: ContextDep) -> AgentEntry:
    """One agent."""
    if model not in context.agents:
        raise unknown_model(context, model)
    return _model(context, model)


def _model(context: ServerContext, name: str) -> AgentEntry:
    return AgentEntry(id=name, created=int(context.began_at))
