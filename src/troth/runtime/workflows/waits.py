"""Knows how a run waits: for a moment, for a person; no longer than it may, and not where it is no longer needed."""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from troth.runtime.engine.asks import Ask, Sleep, Wait
from troth.runtime.engine.asks import Step as StepAsk
from troth.runtime.engine.errors import WaitTimeoutError
from troth.runtime.workflows.allowance import Allowance, time_until
from troth.runtime.workflows.durations import show_duration
from troth.runtime.workflows.kinds import Decision
from troth.runtime.workflows.racing import NotNeededError, Race
from troth.runtime.workflows.spec import Step

if TYPE_CHECKING:
    from troth.runtime.workflows.frame import Frame

__all__ = ["RACED_SLEEP", "STILL_NEEDED", "TIME_LEFT", "approval_signal", "question", "sleep"]

RACED_SLEEP = "let go "
"""How the signal begins that ends the sleep of a branch; the place follows."""
STILL_NEEDED = "still needed"
"""The name of the engine's step that records whether a branch has to wait at all."""
TIME_LEFT = "time left"
"""The name of the engine's step that records how long may be waited."""


def approval_signal(place: str) -> str:
    """The signal that answers the question of the approval step at `place`."""
    return f"approve {place}"


def sleep(frame: "Frame", name: str, seconds: float) -> Decision:
    """Sleep, durably; no longer than the run may take."""
    patience, last = yield from _patience(frame)
    if frame.races:
        yield from _raced_wait(frame, f"{RACED_SLEEP}{frame.place(name)}", min(seconds, patience))
    else:
        yield Sleep(min(seconds, patience), frame.place(name))
    if last is not None and patience < seconds:
        raise last.too_long()
    return None


def question(
    frame: "Frame", step: Step, text: str, shown: Mapping[str, object]
) -> Generator[Ask, Any, dict[str, object]]:
    """Wait for a person's answer. Silence until the timeout is a no."""
    yield frame.event("asking", {"place": frame.place(step.id), "question": text, "shown": dict(shown)})
    patience, last = yield from _patience(frame)
    own = float("inf") if step.timeout is None else step.timeout
    timeout = min(own, patience)
    try:
        limit = None if timeout == float("inf") else timeout
        signal = approval_signal(frame.place(step.id))
        answer = (yield from _raced_wait(frame, signal, limit)) if frame.races else (yield Wait(signal, limit))
        if answer is None:
            raise WaitTimeoutError(signal, "", {})
    except WaitTimeoutError:
        if last is not None and patience < own:
            raise last.too_long() from None
        return {"approved": False, "by": None, "note": f"nobody answered within {show_duration(timeout)}"}
    return {"approved": bool(answer["approved"]), "by": answer.get("by"), "note": answer.get("note")}


def _raced_wait(frame: "Frame", signal: str, seconds: float | None) -> Generator[Ask, Any, Any]:
    """Wait for a signal, or until the branch is let go. Answers None when the time is up."""
    for race in frame.races:
        race.waits.add(signal)
    try:
        is_open = yield StepAsk(STILL_NEEDED, partial(_are_open, frame.races))
        if not is_open:
            raise NotNeededError("It was not waited: enough of the others had succeeded before.")
        answer = yield Wait(signal, seconds)
    except WaitTimeoutError:
        return None
    finally:
        for race in frame.races:
            race.waits.discard(signal)
    if isinstance(answer, Mapping) and answer.get("let_go"):
        raise NotNeededError("The wait was ended: enough of the others have succeeded.")
    return answer


def _patience(frame: "Frame") -> Generator[Ask, Any, tuple[float, Allowance | None]]:
    """How long may be waited here at most. It is recorded: a replay has to ask for the same wait again."""
    last = frame.allowances.first_deadline()
    if last is None or last.deadline is None:
        return float("inf"), None
    patience = yield StepAsk(TIME_LEFT, partial(time_until, last.deadline))
    return patience, last


def _are_open(races: Sequence[Race]) -> bool:
    return all(race.is_open for race in races)
