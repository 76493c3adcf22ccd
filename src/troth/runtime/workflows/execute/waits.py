"""How a run waits: for a moment, for a person; no longer than it may, and not where it is no longer needed."""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from troth.runtime.engine.commands import Command, Sleep, Wait
from troth.runtime.engine.commands import Step as StepAsk
from troth.runtime.engine.errors import WaitTimeoutError
from troth.runtime.workflows.document.durations import show_duration
from troth.runtime.workflows.execute.limits import Allowance, time_until
from troth.runtime.workflows.execute.race import NotNeededError, Race
from troth.runtime.workflows.kinds import Decision
from troth.runtime.workflows.spec import StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

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


def sleep(frame: "BlockFrame", name: str, seconds: float) -> Decision:
    """Sleep, durably; no longer than the run may take."""
    patience, last = yield from _patience(frame)
    place = frame.place(name)
    is_enough = last is None or patience >= seconds
    if frame.races:
        wait = Wait(
            f"{RACED_SLEEP}{place}",
            min(seconds, patience),
            {"place": place},
            is_the_end=lambda answer: answer is None and is_enough,
        )
        yield from _raced_wait(frame, place, wait)
    else:
        frame.run.begun.add(place)
        yield Sleep(min(seconds, patience), place, shows="all" if is_enough else "begin")
    if last is not None and not is_enough:
        raise last.too_long()
    frame.run.begun.discard(place)
    return None


def question(
    frame: "BlockFrame", step: StepSpec, text: str, shown: Mapping[str, object], *, fails_on_no: bool
) -> Generator[Command, Any, dict[str, object]]:
    """Wait for a person's answer. Silence until the timeout is a no; `fails_on_no` says that the step then fails."""
    place = frame.place(step.id)
    frame.run.begun.add(place)
    asking = {"place": place, "question": text, "shown": dict(shown)}
    yield frame.event("asking", asking, shows="begin", note={"place": place})
    patience, last = yield from _patience(frame)
    own = float("inf") if step.timeout is None else step.timeout
    timeout = min(own, patience)

    def is_the_end(answer: Any) -> bool:
        """Whether nothing follows that is shown as the end of the step: its failure."""
        if isinstance(answer, Mapping) and answer.get("let_go"):
            return False
        if answer is None and last is not None and patience < own:
            return False
        return not fails_on_no or (isinstance(answer, Mapping) and bool(answer.get("approved")))

    try:
        limit = None if timeout == float("inf") else timeout
        signal = approval_signal(place)
        wait = Wait(signal, limit, {"place": place, "question": text}, is_the_end=is_the_end)
        answer = (yield from _raced_wait(frame, place, wait)) if frame.races else (yield wait)
        if answer is None:
            raise WaitTimeoutError(signal, "", {})
    except WaitTimeoutError:
        if last is not None and patience < own:
            raise last.too_long() from None
        return {"approved": False, "by": None, "note": f"no answer came within {show_duration(timeout)}"}
    return {"approved": bool(answer["approved"]), "by": answer.get("by"), "note": answer.get("note")}


def _raced_wait(frame: "BlockFrame", place: str, wait: Wait) -> Generator[Command, Any, Any]:
    """Wait for a signal, or until the branch is let go. Answers None when the time is up."""
    for race in frame.races:
        race.waits.add(wait.signal)
    try:
        is_open = yield StepAsk(STILL_NEEDED, partial(_are_open, frame.races), shows="nothing")
        if not is_open:
            raise NotNeededError("There was no wait: enough of the other branches had already succeeded.")
        frame.run.begun.add(place)
        answer = yield wait
    except WaitTimeoutError:
        return None
    finally:
        for race in frame.races:
            race.waits.discard(wait.signal)
    if isinstance(answer, Mapping) and answer.get("let_go"):
        raise NotNeededError("The wait was ended: enough of the other branches succeeded.")
    return answer


def _patience(frame: "BlockFrame") -> Generator[Command, Any, tuple[float, Allowance | None]]:
    """How long may be waited here at most. It is recorded: a replay has to ask for the same wait again."""
    last = frame.allowances.first_deadline()
    if last is None or last.deadline is None:
        return float("inf"), None
    patience = yield StepAsk(TIME_LEFT, partial(time_until, last.deadline, frame.run.clock), shows="nothing")
    return patience, last


def _are_open(races: Sequence[Race]) -> bool:
    return all(race.is_open for race in races)
