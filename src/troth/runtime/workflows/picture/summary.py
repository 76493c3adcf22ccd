"""Knows how to say in a few lines what became of a run: the step, the user's line, each attempt, and how to go on."""

from collections.abc import Iterator

from troth.runtime.workflows.picture.words import short_place, span
from troth.runtime.workflows.report import RunReport, RunWord, StepReport

__all__ = ["attempts_of", "explain"]


def explain(run: RunReport, store: str | None = None) -> str:
    """What became of `run`, for an error message; `store` is the file it is in, where that is not the usual one."""
    return "\n".join(_lines(run, store))


def _lines(run: RunReport, store: str | None) -> Iterator[str]:
    yield f"Run {run.id} of {run.workflow!r}: {run.state}{_where(run)}."
    for step in run.failures:
        yield from _failure(step)
    if not run.failures and run.error is not None and not run.succeeded and run.state is not RunWord.CANCELLED:
        yield f"  {run.error}"
    for step in run.waiting_for:
        yield f"  waits at {step.place!r}" + (f": {step.question}" if step.question else "")
    if run.undone:
        yield f"  undone: {', '.join(run.undone)}"
    for left in run.not_undone:
        yield f"  NOT undone: {left.place.removeprefix('undo ')}, because its undo failed:"
        yield from _failure(left)
    for command, says in run.commands(store):
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
    first, *rest = str(error).splitlines()
    yield f"  {first}"
    yield from (f"  {line}" for line in rest)
    if len(step.attempts) > 1:
        yield from (f"  {line}" for line in attempts_of(step))


def attempts_of(step: StepReport) -> Iterator[str]:
    """Each attempt that failed with its own error, and each wait between two."""
    for one in step.attempts:
        took = span(one.ended_at - one.started_at) if one.started_at is not None else "?"
        said = str(one.error).splitlines()[0] if one.error is not None else one.outcome
        yield f"attempt {one.number}  {one.outcome} after {took}: {said}"
        if one.next_at is not None and one.next_at > one.ended_at:
            yield f"           waited {span(one.next_at - one.ended_at)}"
