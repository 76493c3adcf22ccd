"""Begin runs of workflows, look at them, follow them, answer, cancel, resume and fork them."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from troth.runtime.workflows.execute.failures import check_inputs
from troth.runtime.workflows.record.report import RunReport, RunWord, StepWord
from troth.server.access import CallerDep, Scope, needs
from troth.server.channels import HttpChannel
from troth.server.context import ContextDep, ServerContext
from troth.server.errors import ApiError, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.owners import aclaim, afind, alist
from troth.server.prefer import PreferDep, Preference
from troth.server.sources import RunSource
from troth.server.streams import CursorDep, EventStream, stream_of

__all__ = ["router"]

router = APIRouter(tags=["runs"])

RunId = Annotated[str, Path(max_length=200, description="the id of the run")]


class NewRun(BaseModel):
    """What is to be run."""

    model_config = ConfigDict(extra="forbid")

    workflow: str = Field(description="the name of a workflow of this server")
    inputs: dict[str, Any] = Field(default_factory=dict)


class ErrorInfo(BaseModel):
    """What went wrong in a run."""

    type: str
    message: str


class StepInfo(BaseModel):
    """One step of a run."""

    place: str
    kind: str
    state: StepWord
    started_at: float | None
    ended_at: float | None
    tries: int
    question: str | None = None
    deadline: float | None = None
    output: Any = None
    error: ErrorInfo | None = None


class RunInfo(BaseModel):
    """A run as it is now."""

    id: str
    workflow: str
    state: RunWord
    inputs: dict[str, Any]
    output: Any = None
    error: ErrorInfo | None = None
    created_at: float
    ended_at: float | None
    waiting_for: list[str]
    forked_from: str | None = None
    cancel_requested: bool = False
    steps: list[StepInfo]


class RunList(BaseModel):
    """A page of runs, the newest first. `next` is what `?before=` takes for the page after it."""

    data: list[RunInfo]
    next: str | None


def info(run: RunReport) -> RunInfo:
    """A run as it is told."""
    return RunInfo(
        id=run.id,
        workflow=run.workflow,
        state=run.state,
        inputs=dict(run.inputs),
        output=run.output,
        error=None if run.error is None else ErrorInfo(type=run.error.type, message=run.error.message),
        created_at=run.created_at,
        ended_at=run.ended_at,
        waiting_for=[step.place for step in run.waiting_for],
        forked_from=run.forked_from,
        cancel_requested=run.cancel_requested,
        steps=[
            StepInfo(
                place=step.place,
                kind=step.kind,
                state=step.state,
                started_at=step.started_at,
                ended_at=step.ended_at,
                tries=step.tries,
                question=step.question or None,
                deadline=step.deadline,
                output=step.output,
                error=None if step.error is None else ErrorInfo(type=step.error.type, message=step.error.message),
            )
            for step in run.steps
        ],
    )


def answer(run: RunReport, status: int, headers: dict[str, str] | None = None) -> Response:
    """The answer that tells of a run: `Location`, and `Retry-After` while it is not over."""
    extra = {"Location": f"/v1/runs/{run.id}", **(headers or {})}
    if not run.is_over:
        extra["Retry-After"] = "1"
    return JSONResponse(info(run).model_dump(mode="json"), status, extra)


async def awaited(context: ServerContext, run_id: str, prefer: Preference) -> RunReport:
    """The run as it is, after as much waiting for its end as the client prefers."""
    if prefer.wait:
        try:
            async with asyncio.timeout(prefer.wait):
                return await context.runtime.aattach(run_id, check=False, wait=False)
        except TimeoutError:
            pass
    return await context.runtime.ashow(run_id)


@router.post("/runs", status_code=202, response_model=RunInfo, **needs(Scope.RUN, "http"))
async def start_run(body: NewRun, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep) -> Response:
    """Begin a run. Answers with 202 and `Location` at once; 200 where `Prefer: wait=N` saw its end."""
    linked = context.workflows.get(body.workflow)
    if linked is None:
        names = ", ".join(context.workflows) or "none"
        raise ApiError(
            400,
            "unknown_workflow",
            f"There is no workflow {body.workflow!r} here.",
            param="workflow",
            advice=f"There are: {names}.",
        )
    check_inputs(body.workflow, linked.spec.inputs, body.inputs)  # so that nothing is written down that cannot begin

    async def work(seed: Seed) -> Response:
        run_id = seed.id("run")
        await aclaim(context, caller, "run", run_id, {"workflow": body.workflow})
        with HttpChannel.session(run_id):
            await context.runtime.astart(linked, body.inputs, run_id=run_id)
        run = await awaited(context, run_id, prefer)
        return answer(run, 200 if run.is_over and prefer.wait else 202, prefer.headers)

    return await once(work)


@router.get("/runs", **needs(Scope.READ))
async def list_runs(
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the page before")] = None,
) -> RunList:
    """The runs that were begun through a server, the newest first."""
    cursor = page_cursor(before)
    page = await alist(context, caller, "run", before=cursor, limit=limit)
    runs = [run for one in page if (run := await _shown(context, one.id)) is not None]
    last = f"{page[-1].created_at!r}:{page[-1].id}" if len(page) == limit else None
    return RunList(data=[info(run) for run in runs], next=last)


def page_cursor(word: str | None) -> tuple[float, str] | None:
    """Where a page begins: `next` of the page before it."""
    if word is None:
        return None
    moment, colon, thing = word.partition(":")
    try:
        if colon:
            return float(moment), thing
    except ValueError:
        pass
    raise ApiError(
        400,
        "invalid_cursor",
        f"`before` is {word[:40]!r}, and no place in a list.",
        param="before",
        advice="Give what the page before it has as `next`.",
    )


async def _shown(context: ServerContext, run_id: str) -> RunReport | None:
    from troth.runtime.engine.errors import UnknownRunError

    try:
        return await context.runtime.ashow(run_id)
    except UnknownRunError:
        return None  # it was to be begun, and nobody was told that it had


@router.get("/runs/{run_id}", **needs(Scope.READ))
async def show_run(run_id: RunId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> RunInfo:
    """A run as it is now; with `Prefer: wait=N` as it is at its end, or after N seconds."""
    await afind(context, caller, "run", run_id)
    await _exists(context, run_id)
    return info(await awaited(context, run_id, prefer))


async def _exists(context: ServerContext, run_id: str) -> RunReport:
    run = await _shown(context, run_id)
    if run is None:
        raise not_found("run", run_id)
    return run


@router.get("/runs/{run_id}/events", response_class=EventStream, **needs(Scope.READ))
async def run_events(
    run_id: RunId,
    context: ContextDep,
    caller: CallerDep,
    after: CursorDep,
    follow: Annotated[bool, Query(description="false to end with what there is now")] = True,  # noqa: FBT002
) -> Response:
    """What happens in a run, as it happens; ends with the run. 204 if it is over and nothing follows the cursor."""
    await afind(context, caller, "run", run_id)
    run = await _exists(context, run_id)
    source = RunSource(context.runtime, run_id)
    if run.is_over and after and after == source.read(after).last:
        return Response(status_code=204)  # so that a browser does not come back for ever
    return stream_of(context, lambda: source, source.topic, after, follow=follow)
