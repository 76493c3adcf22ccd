"""Repeats steps until a condition holds, at most so many times. A loop without a bound cannot be written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from troth.errors import RunError
from troth.runtime.workflows.document.expressions import Expression
from troth.runtime.workflows.document.field_types import ChoiceType, Condition, Count, Duration, Steps
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.execute.waits import sleep
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import Block, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "LoopBody", "LoopLimitError"]


class LoopLimitError(RunError):
    """A loop came to its bound and its condition still did not hold."""


@dataclass(frozen=True, slots=True)
class LoopBody:
    """The steps of a round, when to stop, and the bound. `until` is asked after a round and sees that round's steps."""

    loop: tuple[StepSpec, ...]
    at_most: int
    until: Expression | None = None
    pause: float | None = None
    on_limit: Literal["fail", "continue"] = "fail"


def perform(step: StepSpec, body: LoopBody, frame: "BlockFrame") -> Decision:
    """Run round after round; the output is that of the last step of the last round."""
    output: object = None
    for number in range(body.at_most):
        if number and body.pause is not None:
            yield from sleep(frame, f"{step.id}[{number}].pause", body.pause)
        inner = frame.inside({"round": number}, f"{step.id}[{number}].")
        try:
            output = yield from inner.run_steps_here(body.loop)
        finally:
            frame.take_in(inner)
        if body.until is not None and body.until.holds(inner.state):
            return output
    if body.until is not None and body.on_limit == "fail":
        raise LoopLimitError(
            f"The loop {step.id!r} did its {body.at_most} rounds, and `{body.until.text}` still does not hold.\n"
            "Raise `at_most`, or write `on_limit: continue` if that is no failure."
        )
    return output


KIND = Kind(
    name="loop",
    says="repeats steps until a condition holds, with a limit",
    body=LoopBody,
    fields=(
        Field("loop", Steps(), "the steps of one round", required=True, default=()),
        Field("at_most", Count(1, 100_000), "maximum number of rounds", required=True),
        Field("until", Condition(), "checked after each round, and can use its steps (default: all rounds are done)"),
        Field("pause", Duration(), "delay between rounds"),
        Field("on_limit", ChoiceType(("fail", "continue")), "what happens when the maximum is reached", default="fail"),
    ),
    perform=perform,
    reads=lambda _: paths_in(),
    blocks=lambda body: (
        Block(f"at most {body.at_most} times", body.loop, names=("round",), then=tuple(filter(None, (body.until,)))),
    ),
    shows=lambda body: f"until {body.until.text}" if body.until else f"{body.at_most} times",
)
