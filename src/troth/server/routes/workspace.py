"""Read and write the texts of a session, as one of its members: each change is judged and audited."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.runtime.sessions.workspace import CHANGES, Workspace
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.earlier_attempt import was_carried_out
from troth.server.errors import not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.routes.sessions import AgentId, SessionId, seen_session

__all__ = ["router"]

router = APIRouter(tags=["workspace"], route_class=DirectRoute)

TextPath = Annotated[str, Path(max_length=1000, description="the text, below the session's root")]
SnapshotName = Annotated[str, Path(max_length=200, description="the name of the snapshot")]
_BASE = "/sessions/{session_id}/members/{agent}/workspace"
_FORBID = ConfigDict(extra="forbid")


class TextList(BaseModel):
    """The paths of texts, in order."""

    data: list[str]


class WorkspaceText(BaseModel):
    """One text."""

    path: str
    text: str


class NewText(BaseModel):
    """What is to be written."""

    model_config = _FORBID

    text: str


class Deleted(BaseModel):
    """Whether there was something to delete."""

    path: str
    is_new: bool


class Permit(BaseModel):
    """Who may read and write a text; without a list everybody may, as at first."""

    model_config = _FORBID

    path: str = Field(max_length=1000)
    readers: list[str] | None = None
    writers: list[str] | None = None


class NewSnapshot(BaseModel):
    """The name of a snapshot."""

    model_config = _FORBID

    name: str = Field(min_length=1, max_length=200)


class Restored(BaseModel):
    """How many texts a snapshot has brought back."""

    name: str
    texts: int


async def workspace_of(context: ServerContext, caller: Caller, session_id: str, agent: str) -> Workspace:
    """The workspace of the caller's session, as `agent` sees it."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    return (await call(hypervisor.member, session_id, agent)).workspace


@router.get(_BASE, **needs(Scope.READ))
async def list_texts(
    session_id: SessionId,
    agent: AgentId,
    context: ContextDep,
    caller: CallerDep,
    below: Annotated[str, Query(max_length=1000, description="the folder to list")] = ".",
) -> TextList:
    """The texts of the session that the member may see."""
    workspace = await workspace_of(context, caller, session_id, agent)
    return TextList(data=await call(workspace.list, below))


@router.get(_BASE + "/texts/{path:path}", **needs(Scope.READ))
async def read_text(
    session_id: SessionId, agent: AgentId, path: TextPath, context: ContextDep, caller: CallerDep
) -> WorkspaceText:
    """One text."""
    workspace = await workspace_of(context, caller, session_id, agent)
    text = await call(workspace.read, path)
    if text is None:
        raise not_found("text", path)
    return WorkspaceText(path=path, text=text)


@router.put(_BASE + "/texts/{path:path}", **needs(Scope.ACT))
async def write_text(
    session_id: SessionId, agent: AgentId, path: TextPath, body: NewText, context: ContextDep, caller: CallerDep
) -> WorkspaceText:
    """Write a text. Can be repeated."""
    workspace = await workspace_of(context, caller, session_id, agent)
    return WorkspaceText(path=await call(workspace.write, path, body.text), text=body.text)


@router.delete(_BASE + "/texts/{path:path}", **needs(Scope.ACT))
async def delete_text(
    session_id: SessionId, agent: AgentId, path: TextPath, context: ContextDep, caller: CallerDep
) -> Deleted:
    """Delete a text. Can be repeated."""
    workspace = await workspace_of(context, caller, session_id, agent)
    return Deleted(path=path, is_new=await call(workspace.delete, path))


@router.post(_BASE + "/permit", **needs(Scope.ACT))
async def permit_text(
    session_id: SessionId, agent: AgentId, body: Permit, context: ContextDep, caller: CallerDep
) -> TextList:
    """Say who may read and write a text: its owner may, and members of ring 1."""
    workspace = await workspace_of(context, caller, session_id, agent)
    await call(lambda: workspace.permit(body.path, readers=body.readers, writers=body.writers))
    return TextList(data=[body.path])


@router.post(_BASE + "/snapshots", response_model=NewSnapshot, **needs(Scope.ACT))
async def take_snapshot(
    session_id: SessionId, agent: AgentId, body: NewSnapshot, context: ContextDep, caller: CallerDep, once: OnceDep
) -> Response:
    """Keep all texts as they are now. Refused if there is a snapshot of that name."""
    hypervisor, _ = await seen_session(context, caller, session_id)
    workspace = await workspace_of(context, caller, session_id, agent)

    async def work(seed: Seed) -> Response:
        kind = CHANGES["workspace.snapshot"]
        if not await was_carried_out(hypervisor, session_id, agent, kind, seed, snapshot=body.name):
            await call(workspace.snapshot, body.name)
        return JSONResponse(body.model_dump(mode="json"))

    return await once(work)


@router.post(_BASE + "/snapshots/{name}/restore", **needs(Scope.ACT))
async def restore_snapshot(
    session_id: SessionId, agent: AgentId, name: SnapshotName, context: ContextDep, caller: CallerDep
) -> Restored:
    """Bring all texts back as a snapshot has them."""
    workspace = await workspace_of(context, caller, session_id, agent)
    return Restored(name=name, texts=await call(workspace.restore, name))
