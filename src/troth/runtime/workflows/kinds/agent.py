"""Lets an agent answer a prompt in a conversation of its own; the output is the last thing it said."""

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

__all__ = ["KIND", "AgentBody"]


@dataclass(frozen=True, slots=True)
class AgentBody:
    """What is called, and with what."""

    agent: CallTarget
    inputs: Mapping[str, Source] = field(default_factory=dict)


def perform(step: StepSpec, body: AgentBody, frame: "BlockFrame") -> Decision:
    """Command the engine for one call."""
    return frame.act(step, body.agent, frame.look_up(body.inputs))


KIND = Kind(
    name="agent",
    says="asks an agent for an answer",
    body=AgentBody,
    fields=(
        Field(
            "agent",
            TargetType("agent"),
            "the agent: `module:name`, or a name that is registered in the runtime",
            required=True,
        ),
        Field("inputs", SourceMap(), "its arguments: names and the sources of their values", default={}),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.inputs),
    calls=lambda body: ((body.agent, body.inputs),),
    shows=lambda body: body.agent.name,
    retries=True,
    times_out=True,
)
