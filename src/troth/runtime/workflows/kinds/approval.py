"""Waits until a person says yes or no: `troth runs approve ID`, or `Runtime.approve`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from troth.errors import RunError
from troth.runtime.workflows.document.field_types import ChoiceType, SourceMap, TextType
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.execute.waits import question
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "ApprovalBody", "DeniedError"]


class DeniedError(RunError):
    """A person said no, or no answer came in time."""


@dataclass(frozen=True, slots=True)
class ApprovalBody:
    """The question, the data shown with the question, and what a no means."""

    approval: str
    show: Mapping[str, Source] = field(default_factory=dict)
    on_deny: Literal["fail", "continue"] = "fail"


def perform(step: StepSpec, body: ApprovalBody, frame: "BlockFrame") -> Decision:
    """Wait for the answer; the output is `{approved, by, note}`. Silence until `timeout` counts as a no."""
    fails_on_no = body.on_deny == "fail"
    answer = yield from question(frame, step, body.approval, frame.look_up(body.show), fails_on_no=fails_on_no)
    if answer["approved"] or not fails_on_no:
        return answer
    by = f" by {answer['by']}" if answer["by"] else ""
    note = f": {answer['note']}" if answer["note"] else "."
    raise DeniedError(f"{body.approval!r} was denied{by}{note}")


KIND = Kind(
    name="approval",
    says="waits for the approval of a person",
    body=ApprovalBody,
    fields=(
        Field("approval", TextType(), "the question", required=True),
        Field("show", SourceMap(), "the data shown with the question", default={}),
        Field("on_deny", ChoiceType(("fail", "continue")), "what happens to the run if it is refused", default="fail"),
    ),
    perform=perform,
    reads=lambda body: paths_in(body.show),
    shows=lambda body: body.approval,
    times_out=True,
)
