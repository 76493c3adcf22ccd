"""Runs another workflow as a step, in the same run: its steps are in the record, and are undone with the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from troth.runtime.workflows.document.field_types import SourceMap
from troth.runtime.workflows.document.fields import Desk, Field
from troth.runtime.workflows.document.nodes import Node
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import StepSpec, WorkflowSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "WorkflowBody"]


@dataclass(frozen=True, slots=True)
class WorkflowBody:
    """The workflow inside, and what it is given."""

    workflow: WorkflowSpec
    inputs: Mapping[str, Source] = field(default_factory=dict)


class Inner:
    """A path to another file, from the folder of this one; or a whole workflow, written in place."""

    def read(self, node: Node, desk: Desk) -> WorkflowSpec:
        """The workflow, read and checked like any other."""
        return desk.read_workflow(node, desk)

    def dump(self, value: object) -> object:
        """Written in place, so that the record of a run has all of it."""
        from troth.runtime.workflows.document.document import dump_workflow

        return dump_workflow(cast("WorkflowSpec", value))

    def schema(self) -> dict[str, object]:
        """A path or a workflow."""
        return {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#"}]}


def perform(step: StepSpec, body: WorkflowBody, frame: "BlockFrame") -> Decision:
    """Run the workflow inside with inputs of its own; the output is its output."""
    return frame.run_workflow(step, body.workflow, frame.look_up(body.inputs))


KIND = Kind(
    name="workflow",
    says="runs another workflow",
    body=WorkflowBody,
    fields=(
        Field("workflow", Inner(), "the file of the other workflow, from the folder of this one", required=True),
        Field("inputs", SourceMap(), "its inputs: names and the sources of their values", default={}),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.inputs),
    shows=lambda body: body.workflow.name,
    inner=lambda body: body.workflow,
)
