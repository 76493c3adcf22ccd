"""A block whose steps are undone together: when one fails, those before it are undone in reverse, then the block fails.

The rest of the run is not undone by that: where the block is `optional`, the run goes on after it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.runtime.workflows.document.field_types import Steps
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import Block, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "SagaBody"]


@dataclass(frozen=True, slots=True)
class SagaBody:
    """The steps that stand or fall together."""

    saga: tuple[StepSpec, ...]


def perform(step: StepSpec, body: SagaBody, frame: "BlockFrame") -> Decision:
    """Run the steps; the output has each step's output by its id."""
    return frame.run_together(step, body.saga)


KIND = Kind(
    name="saga",
    says="groups steps that are undone together when one of them fails",
    body=SagaBody,
    fields=(Field("saga", Steps(), "the steps that are undone together", required=True, default=()),),
    perform=perform,
    reads=lambda _: paths_in(),
    blocks=lambda body: (Block("together", body.saga),),
)
