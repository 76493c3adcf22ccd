"""Does several steps at once and joins them. A member that needs another's output says so with `after`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from troth.runtime.workflows.field_types import Choice, Count, Steps
from troth.runtime.workflows.fields import Field
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import Block, Step

if TYPE_CHECKING:
    from troth.runtime.workflows.frame import Frame

__all__ = ["KIND", "ParallelBody"]


@dataclass(frozen=True, slots=True)
class ParallelBody:
    """The members, and how many of them have to succeed."""

    parallel: tuple[Step, ...]
    join: Literal["all", "any"] | int = "all"
    at_once: int | None = None


def perform(_: Step, body: ParallelBody, frame: "Frame") -> Decision:
    """Run every member as soon as those it comes after are done; the output has each member's output by its id."""
    return frame.run_members(body.parallel, needed=_needed(body.join, len(body.parallel)), at_once=body.at_once)


def _needed(join: Literal["all", "any"] | int, members: int) -> int:
    if isinstance(join, int):
        return min(join, members)
    return members if join == "all" else min(1, members)


KIND = Kind(
    name="parallel",
    says="does several steps at once",
    body=ParallelBody,
    fields=(
        Field("parallel", Steps(), "the steps that are done at once", required=True, default=()),
        Field("join", Choice(("all", "any"), or_count=True), "how many have to succeed", default="all"),
        Field("at_once", Count(1, 10_000), "at most so many at a time"),
    ),
    perform=perform,
    reads=lambda _: paths_in(),
    blocks=lambda body: (Block("at once", body.parallel, ordered=False),),
)
