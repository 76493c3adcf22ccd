"""Look at the commands that agents have started in the background, read what they print, and stop them.

A command cannot be started from here: a key would be a shell on the machine.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from troth.runtime.jobs.errors import UnknownJobError
from troth.runtime.jobs.records import JobRecord, JobState
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.routes.promises import OWNING

__all__ = ["router"]

router = APIRouter(tags=["jobs"], route_class=DirectRoute)

JobId = Annotated[str, Path(max_length=200, description="the id of the job")]


class JobInfo(BaseModel):
    """A job as it is now."""

    id: str
    session: str
    command: str | list[str]
    state: JobState
    exit_code: int | None
    reason: str | None
    text: str
    created_at: float
    ended_at: float | None
    output_bytes: int


class JobList(BaseModel):
    """A page of jobs of one session, newest first. `next` is what `?before=` takes for the page after it."""

    data: list[JobInfo]
    next: str | None = None


class JobOutput(BaseModel):
    """A piece of what a job has printed. `end` is what `?after=` takes for the next piece."""

    text: str
    start: int
    end: int
    size: int
    is_over: bool


def info(record: JobRecord) -> JobInfo:
    """A job as it is told."""
    values = {name: getattr(record, name) for name in JobInfo.model_fields}
    values["command"] = record.command if isinstance(record.command, str) else list(record.command)
    return JobInfo(**values)


async def find_job(context: ServerContext, caller: Caller, job_id: str) -> JobRecord:
    """A job of the caller's; 410 if its retention is over."""
    try:
        record = await context.runtime.jobs.aget(job_id)
    except UnknownJobError:
        raise not_found("job", job_id) from None  # as one that is somebody else's
    if not await acheck_seen(context, caller, record.session, *OWNING):
        raise not_found("job", job_id)
    if record.state is JobState.EXPIRED:
        raise ApiError(410, "job_expired", record.text)
    return record


@router.get("/jobs", **needs(Scope.READ))
async def list_jobs(
    context: ContextDep,
    caller: CallerDep,
    session: Annotated[str, Query(max_length=200, description="the conversation, run or session that started them")],
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page")] = None,
) -> JobList:
    """The jobs of one conversation, run or session."""
    if not await acheck_seen(context, caller, session, *OWNING):
        raise not_found("session", session)
    page = await context.runtime.lists.ajobs(session=session, cursor=before, limit=limit)
    records = [await context.runtime.jobs.aget(item.id, session=session) for item in page]
    return JobList(data=[info(record) for record in records], next=page.next)


@router.get("/jobs/{job_id}", **needs(Scope.READ))
async def show_job(job_id: JobId, context: ContextDep, caller: CallerDep) -> JobInfo:
    """A job as it is now."""
    return info(await find_job(context, caller, job_id))


@router.get("/jobs/{job_id}/output", **needs(Scope.READ))
async def read_job(
    job_id: JobId,
    context: ContextDep,
    caller: CallerDep,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1 << 20)] = 1 << 16,
) -> JobOutput:
    """A part of what the job printed. Reading consumes nothing."""
    await find_job(context, caller, job_id)
    piece = await context.runtime.jobs.aread(job_id, after, limit=limit)
    return JobOutput(text=piece.text, start=piece.start, end=piece.end, size=piece.size, is_over=piece.is_over)


@router.post("/jobs/{job_id}/stop", **needs(Scope.ACT))
async def stop_job(job_id: JobId, context: ContextDep, caller: CallerDep) -> JobInfo:
    """Stop a job and every process it started. Can be repeated."""
    await find_job(context, caller, job_id)
    return info(await context.runtime.jobs.astop(job_id))
