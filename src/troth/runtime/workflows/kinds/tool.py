"""Calls a tool the runtime was given, sync or async, with the step's inputs as keyword arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from troth.runtime.workflows.field_types import SourceMap, TargetType
from troth.runtime.workflows.fields import Field
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.sources import Source
from troth.runtime.workflows.spec import Step, Target

if TYPE_CHECKING:
    from troth.runtime.workflows.frame import Frame

__all__ = ["KIND", "ToolBody"]


@dataclass(frozen=True, slots=True)
class ToolBody:
    """What is called, and with what."""

    tool: Target
    inputs: Mapping[str, Source] = field(default_factory=dict)


def perform(step: Step, body: ToolBody, frame: "Frame") -> Decision:
    """Ask the engine for one call."""
    return frame.act(step, body.tool, frame.look_up(body.inputs))


KIND = Kind(
    name="tool",
    says="calls a tool of the runtime",
    body=ToolBody,
    fields=(
        Field("tool", TargetType("tool"), "the tool, by the name the runtime knows it by", required=True),
        Field("inputs", SourceMap(), "its arguments by name, each with where the value comes from", default={}),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.inputs),
    calls=lambda body: ((body.tool, body.inputs),),
    shows=lambda body: body.tool.name,
    retries=True,
    times_out=True,
)
