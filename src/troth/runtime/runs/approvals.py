"""Answer the question that a run waits with."""

import uuid
from collections.abc import Callable
from shlex import quote

from troth.errors import MisuseError
from troth.runtime.engine import Engine
from troth.runtime.engine.errors import NotAwaitedError, TooLateError
from troth.runtime.workflows.execute.waits import approval_signal
from troth.runtime.workflows.record.report import RunReport, StepWord
from troth.runtime.workflows.render.words import at, span

__all__ = ["answer_question", "question_of"]


def question_of(run: RunReport, step: str | None, clock: Callable[[], float]) -> str:
    """The name of the step that waits for an answer; `step` says which, where there are several."""
    asking = [state.place for state in run.steps if state.kind == "approval" and state.state is StepWord.WAITING]
    if step is None and len(asking) == 1:
        return asking.pop()
    if step is not None and step in asking:
        return step
    late = [state for state in run.steps if state.timed_out and step in (None, state.place)]
    if late and (step is not None or not asking):
        why = _too_late(run.id, late[-1].place, late[-1].deadline or 0.0, clock())
        raise MisuseError(f"{why} The run is {run.state}.")
    if not asking:
        raise MisuseError(f"Run {run.id!r} is {run.state}; there is nothing to approve.")
    problem = f"step {step!r} does not wait for an answer" if step else f"{len(asking)} steps wait for an answer"
    raise MisuseError(f"Run {run.id!r} was not answered: {problem}. Name one of: {', '.join(asking)}.")


def answer_question(
    engine: Engine, run_id: str, place: str, answer: object, *, clock: Callable[[], float], options: str
) -> None:
    """Send the answer; one that comes too late, or second, is refused. `options` are those of the command line."""
    key = f"{approval_signal(place)}:{uuid.uuid4().hex}"
    try:
        engine.signal(run_id, approval_signal(place), answer, key=key, awaited=True)
    except TooLateError as late:
        raise MisuseError(
            f"{_too_late(run_id, place, late.deadline, clock())}\n"
            f"`troth runs resume {quote(run_id)}{options}` resumes the run."
        ) from None
    except NotAwaitedError:
        raise MisuseError(
            f"The run {run_id!r} was not answered: the question of {place!r} had just been answered.\n"
            "Nothing was done. The first answer counts."
        ) from None


def _too_late(run_id: str, place: str, deadline: float, now: float) -> str:
    return (
        f"The run {run_id!r} was not answered: the question of {place!r} could be answered until {at(deadline)}, "
        f"{span(max(0.0, now - deadline))} ago. No answer until then counts as a refusal."
    )
