"""Does several steps at once and joins them. A member that needs another's output says so with `after`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.runtime.workflows.document.field_types import ChoiceType, Count, Steps
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.execute.join import run_members
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import JOINS, Block, Join, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "ParallelBody"]


@dataclass(frozen=True, slots=True)
class ParallelBody:
    """The members, and how many of them have to succeed."""

    parallel: tuple[StepSpec, ...]
    join: Join = "all"
    at_once: int | None = None


def perform(step: StepSpec, body: ParallelBody, frame: "BlockFrame") -> Decision:
    """Run every member as soon as those it comes after are done; the output has each member's output by its id."""
    return run_members(frame, step, body.parallel, body.join, body.at_once)


KIND = Kind(
    name="parallel",
    says="runs several steps at the same time",
    body=ParallelBody,
    fields=(
        Field("parallel", Steps(), "the steps that run at the same time", required=True, default=()),
        Field("join", ChoiceType(JOINS, or_count=True), "how many have to succeed", default="all"),
        Field("at_once", Count(1, 10_000), "maximum number at a time"),
    ),
    perform=perform,
    reads=lambda _: paths_in(),
    blocks=lambda body: (Block("at once", body.parallel, ordered=False),),
)
