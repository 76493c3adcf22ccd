"""Waits for a span of time that outlives the process: a run that was killed meanwhile wakes at the same moment."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.runtime.workflows.document.durations import show_duration
from troth.runtime.workflows.document.field_types import Duration
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.execute.waits import sleep
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "SleepBody"]


@dataclass(frozen=True, slots=True)
class SleepBody:
    """How long, in seconds."""

    sleep: float


def perform(step: StepSpec, body: SleepBody, frame: "BlockFrame") -> Decision:
    """Sleep; there is no output."""
    return sleep(frame, step.id, body.sleep)


KIND = Kind(
    name="sleep",
    says="waits for a duration",
    body=SleepBody,
    fields=(Field("sleep", Duration(), "how long", required=True),),
    perform=perform,
    reads=lambda _: paths_in(),
    shows=lambda body: show_duration(body.sleep),
)
