"""Calls a Python function, sync or async, with the step's inputs as keyword arguments."""

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

__all__ = ["KIND", "FunctionBody"]


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """What is called, and with what."""

    function: CallTarget
    inputs: Mapping[str, Source] = field(default_factory=dict)


def perform(step: StepSpec, body: FunctionBody, frame: "BlockFrame") -> Decision:
    """Command the engine for one call."""
    return frame.act(step, body.function, frame.look_up(body.inputs))


KIND = Kind(
    name="function",
    says="calls a Python function",
    body=FunctionBody,
    fields=(
        Field(
            "function",
            TargetType("function"),
            "the function: `module:name`, or a name that is registered in the runtime",
            required=True,
        ),
        Field("inputs", SourceMap(), "its arguments: names and the sources of their values", default={}),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.inputs),
    calls=lambda body: ((body.function, body.inputs),),
    shows=lambda body: body.function.name,
    retries=True,
    times_out=True,
)
