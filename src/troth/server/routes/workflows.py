"""Tell which workflows can be run here."""

from fastapi import APIRouter
from pydantic import BaseModel

from troth.runtime.workflows.document.contracts import ABSENT
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.server.access.scopes import Scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.errors import not_found

__all__ = ["router"]

router = APIRouter(tags=["workflows"], route_class=DirectRoute)


class InputInfo(BaseModel):
    """One input of a workflow."""

    type: str
    description: str | None
    required: bool


class WorkflowInfo(BaseModel):
    """One workflow: its name, a description, and the inputs that it takes."""

    name: str
    description: str | None
    inputs: dict[str, InputInfo]


class WorkflowList(BaseModel):
    """All workflows of this server."""

    data: list[WorkflowInfo]


@router.get("/workflows", **needs(Scope.READ))
async def list_workflows(context: ContextDep) -> WorkflowList:
    """The workflows that can be run here."""
    return WorkflowList(data=[_info(linked) for linked in context.workflows.values()])


@router.get("/workflows/{name}", **needs(Scope.READ))
async def show_workflow(name: str, context: ContextDep) -> WorkflowInfo:
    """One workflow."""
    if name not in context.workflows:
        raise not_found("workflow", name, f"There are: {', '.join(context.workflows) or 'none'}.")
    return _info(context.workflows[name])


def _info(linked: LinkedWorkflow) -> WorkflowInfo:
    spec = linked.spec
    inputs = {
        name: InputInfo(
            type=str(contract.type),
            description=contract.description or None,
            required=contract.required and contract.default is ABSENT,
        )
        for name, contract in spec.inputs.items()
    }
    return WorkflowInfo(name=spec.name, description=spec.description or None, inputs=inputs)
