"""Say in a few lines what became of a run: the step, the user's line, each attempt, and how to go on."""

import time
from collections.abc import Iterator

from troth.runtime.workflows.record.report import RunReport, RunWord, StepReport
from troth.runtime.workflows.render.printable import printable
from troth.runtime.workflows.render.words import at, due, short_place, span

__all__ = ["attempts_of", "code_changes", "explain", "until"]

_REFUSAL = "no answer counts as a refusal"


def explain(run: RunReport, options: str = "") -> str:
    """What became of `run`, for an error message; `options` stand at the end of the command lines in it."""
    return "\n".join(_lines(printable(run), options))


def _lines(run: RunReport, options: str) -> Iterator[str]:
    yield f"Run {run.id} of {run.workflow!r}: {run.state}{_where(run)}."
    for step in run.failures:
        yield from _failure(step)
    if not run.failures and run.error is not None and not run.succeeded and run.state is not RunWord.CANCELLED:
        yield f"  {run.error}"
    if due(run):
        yield f"  {due(run)}"
    for step in run.waiting_for:
        yield f"  waits at {step.place!r}" + (f": {step.question}" if step.question else "")
        if until(step):
            yield f"      {until(step)}"
    if run.undone:
        yield f"  undone: {', '.join(run.undone)}"
    for undo in run.not_undone:
        yield f"  NOT undone: {undo.undoes}, because its undo failed:"
        yield from _failure(undo)
    for command, says in run.commands(options):
        yield f"  {command}"
        yield f"      {says}"


def _where(run: RunReport) -> str:
    names = ", ".join(repr(step.place) for step in run.failures)
    return f" at step {names}" if names else ""


def _failure(step: StepReport) -> Iterator[str]:
    error = step.error
    if error is None:
        return
    if error.place:
        yield f"  {short_place(error.place)}" + (f"  {error.line}" if error.line else "")
    first, *more = str(error).splitlines()
    yield f"  {first}"
    yield from (f"  {line}" for line in more)
    if len(step.attempts) > 1:
        yield from (f"  {line}" for line in attempts_of(step))


def until(step: StepReport) -> str:
    """Until when a question can be answered, or that it is; empty where it has no timeout and no answer."""
    if step.answered_at is not None:
        return f"was answered at {at(step.answered_at)}"
    if step.deadline is None:
        return ""
    now = time.time()
    if step.is_too_late(now):
        return f"could be answered until {at(step.deadline)}, {span(now - step.deadline)} ago; {_REFUSAL}"
    return f"can be answered until {at(step.deadline)}, {span(step.deadline - now)} from now; {_REFUSAL}"


def code_changes(step: StepReport) -> str:
    """That the code of a step changed between its attempts."""
    return f"code changed before attempt {', '.join(map(str, step.code_changed))}"


def attempts_of(step: StepReport) -> Iterator[str]:
    """Each attempt that failed with its own error, and each wait between two."""
    for attempt in step.attempts:
        took = span(attempt.ended_at - attempt.started_at) if attempt.started_at is not None else "?"
        reason = f": {str(attempt.error).splitlines()[0]}" if attempt.error is not None else ""
        yield f"attempt {attempt.number}  {attempt.outcome} after {took}{reason}"
        if attempt.pause:
            yield f"           {'no process for' if attempt.was_interrupted else 'waited'} {span(attempt.pause)}"
