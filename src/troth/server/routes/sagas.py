"""Begin sagas, and see what of each was done, undone and left."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from troth.runtime.workflows.link.from_saga import outcome_of
from troth.runtime.workflows.record.report import RunReport
from troth.server.access.concurrency import check_under_way
from troth.server.access.owners import aclaim, afind
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.channels import HttpChannel
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.prefer import PreferDep
from troth.server.routes.runs import awaited

__all__ = ["router"]

router = APIRouter(tags=["sagas"], route_class=DirectRoute)

SagaId = Annotated[str, Path(max_length=200, description="the id of the saga's run")]


class NewSaga(BaseModel):
    """Which saga is to be run."""

    model_config = ConfigDict(extra="forbid")

    saga: str = Field(description="the name of a saga of this server")


class SagaInfo(BaseModel):
    """A saga as it is now. `undone` are named in the order in which they were undone."""

    id: str
    saga: str
    state: str
    done: list[str]
    undone: list[str]
    kept: list[str]
    not_undone: list[str]
    failed: str | None = None
    results: dict[str, Any] = Field(default_factory=dict)


def info(context: ServerContext, run: RunReport) -> SagaInfo:
    """A saga as it is told."""
    if not run.is_over:
        return SagaInfo(
            id=run.id,
            saga=run.workflow,
            state=run.state,
            done=list(run.done),
            undone=list(run.undone),
            kept=[],
            not_undone=[],
        )
    outcome = outcome_of(context.sagas[run.workflow], run)
    return SagaInfo(
        id=run.id,
        saga=run.workflow,
        state=outcome.state,
        done=list(outcome.done),
        undone=list(outcome.undone),
        kept=list(outcome.kept),
        not_undone=[failed_undo.step for failed_undo in outcome.not_undone],
        failed=None if outcome.failed is None else str(outcome.failed),
        results=dict(outcome.results),
    )


async def found(context: ServerContext, caller: Caller, run_id: str) -> RunReport:
    """A saga's run of the caller's."""
    await afind(context, caller, "run", run_id)
    run = await context.runtime.ashow(run_id)
    if run.workflow not in context.sagas:
        raise not_found("saga", run_id)
    return run


@router.post("/sagas", status_code=202, response_model=SagaInfo, **needs(Scope.RUN, "http"))
async def start_saga(
    body: NewSaga, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Start a saga. If a step fails, the steps before it are undone."""
    saga = context.sagas.get(body.saga)
    if saga is None:
        names = ", ".join(context.sagas) or "none"
        raise ApiError(
            400, "unknown_saga", f"There is no saga {body.saga!r} here.", param="saga", advice=f"There are: {names}."
        )

    async def work(seed: Seed) -> Response:
        run_id = seed.id("run")
        await check_under_way(context, caller)
        await aclaim(context, caller, "run", run_id, {"workflow": body.saga})
        with HttpChannel.session(run_id):
            await context.runtime.astart(saga, run_id=run_id)
        run = await awaited(context, run_id, prefer)
        headers = {"Location": f"/v1/sagas/{run_id}", **prefer.headers}
        if not run.is_over:
            headers["Retry-After"] = "1"
        return JSONResponse(info(context, run).model_dump(mode="json"), 202, headers)

    return await once(work)


@router.get("/sagas/{saga_id}", **needs(Scope.READ))
async def show_saga(saga_id: SagaId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> SagaInfo:
    """What a saga did, what it undid, and what it left in place."""
    await found(context, caller, saga_id)
    return info(context, await awaited(context, saga_id, prefer))


@router.post("/sagas/{saga_id}/cancel", status_code=202, **needs(Scope.ACT))
async def cancel_saga(saga_id: SagaId, context: ContextDep, caller: CallerDep, prefer: PreferDep) -> SagaInfo:
    """Cancel a saga and undo what it did. Undos that failed before are tried again."""
    await found(context, caller, saga_id)
    await context.runtime.acancel(saga_id, wait=False)
    return info(context, await awaited(context, saga_id, prefer))
