"""Begin runs of workflows, look at them, follow them, answer, cancel, resume and fork them."""

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.store import DamagedStoreError
from troth.runtime.store.aread import aread
from troth.runtime.store.sqlite.transaction import history_topic
from troth.runtime.workflows.execute.failures import check_inputs
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.record.report import RunReport, RunWord, StepWord
from troth.server.access.concurrency import check_under_way
from troth.server.access.owners import aclaim, afind, alist, page_cursor, page_end
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.channels import HttpChannel
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.prefer import PreferDep, Preference
from troth.server.run_reports import afind_run, areport
from troth.server.streams.sources import RunEventSource
from troth.server.streams.sse import CursorDep, EventStream, FollowDep, stream_of
from troth.server.telemetry import trace_context, tracing
from troth.server.webhooks import WebhookChannel

__all__ = ["router"]

router = APIRouter(tags=["runs"], route_class=DirectRoute)

NOTHING_MORE: dict[int | str, dict[str, Any]] = {
    204: {"description": "The run is over, and nothing follows the cursor."}
}
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
    session: str | None = Field(default=None, description="the governed session that carries it out")
    agent: str | None = Field(default=None, description="the member of that session for whom it goes on")
    steps: list[StepInfo]


class RunList(BaseModel):
    """A page of runs, newest first. `next` is what `?before=` takes for the page after it."""

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
        session=run.session,
        agent=run.agent,
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
        except (TimeoutError, DamagedStoreError):
            pass  # what is told instead is the run as it is, with its damage
    return await areport(context.runtime, run_id)


@router.post(
    "/runs", status_code=202, response_model=RunInfo, responses={200: {"model": RunInfo}}, **needs(Scope.RUN, "http")
)
async def start_run(body: NewRun, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep) -> Response:
    """Start a run. Returns 202 and `Location` at once, or 200 if it ends within the seconds of `Prefer: wait=N`."""
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
        await check_under_way(context, caller)
        await aclaim(context, caller, "run", run_id, {"workflow": body.workflow})
        await trace_context.keep(context.store, run_id, tracing.carrier())
        await _begin(context, caller, linked, body.inputs, run_id)
        run = await awaited(context, run_id, prefer)
        return answer(run, 200 if run.is_over and prefer.wait else 202, prefer.headers)

    return await once(work)


async def _begin(
    context: ServerContext, caller: Caller, linked: LinkedWorkflow, inputs: dict[str, Any], run_id: str
) -> None:
    """Begin the run; as a promise, where its owner has a receiver of webhooks that is to be told of its end."""
    webhook = context.webhooks.channel_for(caller.owner, run_id)
    if webhook is None:
        with HttpChannel.session(run_id):
            await context.runtime.astart(linked, inputs, run_id=run_id)
    elif await call(context.store.promises.find, run_id) is None:  # an earlier attempt may have begun it
        with WebhookChannel.session(webhook, run_id):
            await context.runtime.promises.astart(linked, inputs=inputs, promise_id=run_id, detach="must")


@router.get("/runs", **needs(Scope.READ))
async def list_runs(
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page")] = None,
) -> RunList:
    """The runs that were started through a server, newest first."""
    page = await alist(context, caller, "run", before=page_cursor(before), limit=limit)
    runs = [run for belonging in page if (run := await _shown(context, belonging.id)) is not None]
    return RunList(data=[info(run) for run in runs], next=page_end(page, limit))


async def _shown(context: ServerContext, run_id: str) -> RunReport | None:
    try:
        return await areport(context.runtime, run_id)
    except UnknownRunError:
        return None  # it was to be begun, and nobody was told that it had


@router.get("/runs/{run_id}", **needs(Scope.READ))
async def show_run(run_id: RunId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> RunInfo:
    """A run as it is now; with `Prefer: wait=N` as it is at its end, or after N seconds."""
    await afind_run(context, caller, run_id)
    if await _shown(context, run_id) is None:
        raise not_found("run", run_id)
    return info(await awaited(context, run_id, prefer))


async def _exists(context: ServerContext, run_id: str) -> RunReport:
    """The run, if there is one that can be read: nothing else can be followed or acted on."""
    run = await _shown(context, run_id)
    if run is None:
        raise not_found("run", run_id)
    if run.state is RunWord.DAMAGED and run.error is not None:
        message, _, advice = run.error.message.partition("\n")
        raise ApiError(409, "run_damaged", message, advice=advice or None)
    return run


@router.get("/runs/{run_id}/events", response_class=EventStream, responses=NOTHING_MORE, **needs(Scope.READ))
async def run_events(
    run_id: RunId,
    context: ContextDep,
    caller: CallerDep,
    after: CursorDep,
    follow: FollowDep,
) -> Response:
    """What happens in a run, as it happens; ends with the run. 204 if it is over and nothing follows the cursor."""
    await afind_run(context, caller, run_id)
    run = await _exists(context, run_id)
    make = partial(RunEventSource, context.runtime, run_id)  # for the first one who follows the run
    if run.is_over and after and after == (await aread(context.store, partial(make().read, after))).last:
        return Response(status_code=204)  # so that a browser does not come back forever
    return stream_of(context, make, history_topic(run_id), after, follow=follow)


class Approval(BaseModel):
    """The answer to a question that a run waits with."""

    model_config = ConfigDict(extra="forbid")

    step: str | None = Field(default=None, description="the step that asks, if there are several")
    deny: bool = False
    by: str | None = None
    note: str | None = None


class Resumption(BaseModel):
    """How to go on with a run."""

    model_config = ConfigDict(extra="forbid")

    accept_changes: bool = Field(default=False, description="continue with a workflow that has changed")
    as_recorded: bool = Field(default=False, description="continue with the recorded workflow")
    budget: dict[str, Any] = Field(default_factory=dict, description='a larger budget, as in `{"tokens": 5000}`')


class Forking(BaseModel):
    """From where a run is forked."""

    model_config = ConfigDict(extra="forbid")

    step: str | None = Field(default=None, description="the first step to run again (default: all of them)")


@router.post("/runs/{run_id}/approve", response_model=RunInfo, **needs(Scope.ACT))
async def approve_run(
    run_id: RunId, body: Approval, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Answer the question that a run waits for. 409 if it asks nothing, or no longer asks."""
    await afind(context, caller, "run", run_id)
    await _exists(context, run_id)

    async def work(seed: Seed) -> Response:
        try:
            await context.runtime.aapprove(
                run_id, body.step, deny=body.deny, by=body.by or caller.owner, note=body.note
            )
        except MisuseError as refused:
            if not (seed.is_repeated and await call(_was_answered, context, run_id, seed.since)):
                raise _conflict("not_asked", refused) from refused
        return answer(await awaited(context, run_id, prefer), 200, prefer.headers)

    return await once(work)


@router.post("/runs/{run_id}/cancel", status_code=202, response_model=RunInfo, **needs(Scope.ACT))
async def cancel_run(run_id: RunId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> Response:
    """Cancel a run and undo what it did. Can be repeated; a run that is over stays as it is."""
    await afind(context, caller, "run", run_id)
    await _exists(context, run_id)
    await context.runtime.acancel(run_id, wait=False)
    return answer(await awaited(context, run_id, prefer), 202, prefer.headers)


@router.post("/runs/{run_id}/resume", status_code=202, response_model=RunInfo, **needs(Scope.ACT, "http"))
async def resume_run(
    run_id: RunId, body: Resumption, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Resume a run that failed, was interrupted or was cancelled. 409 if it cannot be resumed."""
    await afind(context, caller, "run", run_id)
    await _exists(context, run_id)

    async def work(seed: Seed) -> Response:
        with HttpChannel.session(run_id):
            try:
                await context.runtime.astart_resume(
                    run_id, accept_changes=body.accept_changes, as_recorded=body.as_recorded, budget=body.budget
                )
            except MisuseError as refused:
                if not (seed.is_repeated and await call(_was_resumed, context, run_id, seed.since)):
                    raise _conflict("cannot_resume", refused) from refused
        return answer(await awaited(context, run_id, prefer), 202, prefer.headers)

    return await once(work)


@router.post("/runs/{run_id}/fork", status_code=202, response_model=RunInfo, **needs(Scope.ACT, "http"))
async def fork_run(
    run_id: RunId, body: Forking, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Start a new run with the recorded results of another one up to a step."""
    await afind(context, caller, "run", run_id)
    run = await _exists(context, run_id)

    async def work(seed: Seed) -> Response:
        fork_id = seed.id("run")
        await aclaim(context, caller, "run", fork_id, {"workflow": run.workflow, "forked_from": run_id})
        with HttpChannel.session(fork_id):
            if not seed.is_repeated or await _shown(context, fork_id) is None:
                try:
                    await context.runtime.astart_fork(run_id, body.step, fork_id=fork_id)
                except MisuseError as refused:
                    raise _conflict("cannot_fork", refused) from refused
        return answer(await awaited(context, fork_id, prefer), 202, prefer.headers)

    return await once(work)


def _was_answered(context: ServerContext, run_id: str, moment: float) -> bool:
    """Whether somebody has answered a run's question since then: an attempt at the same request, before a crash."""
    return any(signal.sent_at >= moment for signal in context.store.signals(run_id))


def _was_resumed(context: ServerContext, run_id: str, moment: float) -> bool:
    """The same, of a run that was gone on with."""
    pages, after = context.runtime.event_pages(run_id), 0
    while events := pages.read(after)[0]:
        if any(event.what == "run resumed" and event.at >= moment for event in events):
            return True
        after = events[-1].seq
    return False


def _conflict(code: str, refused: MisuseError) -> Exception:
    if isinstance(refused, UnknownRunError):
        return refused
    message, _, advice = str(refused).partition("\n")
    return ApiError(409, code, message, advice=advice or None)
