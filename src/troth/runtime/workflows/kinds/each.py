"""Does the same steps for each item of a list, several at once, and joins the outcomes (fan-out)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.runtime.workflows.document.field_types import ChoiceType, Count, Identifier, SourceType, Steps
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.execute.join import run_for_each
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import JOINS, Block, Join, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "EachBody"]


@dataclass(frozen=True, slots=True)
class EachBody:
    """The list, what an item is called in the steps, and how many have to succeed."""

    each: Source
    steps: tuple[StepSpec, ...]
    item: str = "item"
    join: Join = "all"
    at_once: int = 8


def perform(step: StepSpec, body: EachBody, frame: "BlockFrame") -> Decision:
    """Run the steps once for each item; the output is the list of what its last step gave, in order."""
    items = frame.the_list(body.each, step)
    return run_for_each(frame, step, body.steps, body.item, items, body.join, body.at_once)


KIND = Kind(
    name="each",
    says="runs the same steps for each item of a list",
    body=EachBody,
    fields=(
        Field("each", SourceType(is_list=True), "the list: a path to it, or the list itself", required=True),
        Field("steps", Steps(), "the steps for each item", required=True, default=()),
        Field("item", Identifier(), "the name of the item in the steps", default="item"),
        Field("join", ChoiceType(JOINS, or_count=True), "how many have to succeed", default="all"),
        Field("at_once", Count(1, 10_000), "maximum number at a time", default=8),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.each),
    blocks=lambda body: (Block(f"for each {body.item}", body.steps, names=(body.item, "index")),),
    shows=lambda body: str(body.each.dump()),
)
