"""Calls a tool, sync or async, with the step's inputs as keyword arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from troth.runtime.workflows.document.field_types import SourceMap, TargetType
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import CallTarget, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "ToolBody"]


@dataclass(frozen=True, slots=True)
class ToolBody:
    """What is called, and with what."""

    tool: CallTarget
    inputs: Mapping[str, Source] = field(default_factory=dict)


def perform(step: StepSpec, body: ToolBody, frame: "BlockFrame") -> Decision:
    """Command the engine for one call."""
    return frame.act(step, body.tool, frame.look_up(body.inputs))


KIND = Kind(
    name="tool",
    says="calls a tool",
    body=ToolBody,
    fields=(
        Field(
            "tool",
            TargetType("tool"),
            "the tool: `module:name`, or a name that is registered in the runtime",
            required=True,
        ),
        Field("inputs", SourceMap(), "its arguments: names and the sources of their values", default={}),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.inputs),
    calls=lambda body: ((body.tool, body.inputs),),
    shows=lambda body: body.tool.name,
    retries=True,
    times_out=True,
)
