"""Tell what became of a run: its result, or an error that says what failed, where, and how to go on."""

from collections.abc import Sequence
from typing import Any

from troth.runtime.engine.errors import RunCancelledError, RunFailedError
from troth.runtime.store import RunRecord, RunState, StepRecord, StepState

__all__ = ["failure_of"]


def failure_of(run: RunRecord, steps: Sequence[StepRecord]) -> RunFailedError:
    """The error of a run that did not complete."""
    completed = sum(step.state is StepState.DONE and step.kind == "step" for step in steps)
    kept_steps = f"{completed} step{'s are' if completed != 1 else ' is'} recorded as done and will not be repeated."
    if run.state is RunState.CANCELLED:
        return RunCancelledError(f"Run {run.id!r} was cancelled. {kept_steps}", run)
    error: Any = run.error or {}
    lines = [f"Run {run.id!r} failed{_in_step(error)}: {error.get('type')}: {error.get('message')}"]
    if error.get("place"):
        lines.append(f"  {error['place']}  {error.get('line', '')}".rstrip())
    failed = next(
        (step for step in steps if step.name == error.get("step") and str(step.place) == error.get("at")), None
    )
    if failed is not None and len(failed.attempts) > 1:
        lines.extend(
            f"  attempt {attempt.number} {attempt.outcome}: {(attempt.error or {}).get('message')}"
            for attempt in failed.attempts
        )
    lines.append(f"{kept_steps} Once the cause is fixed, `engine.resume({run.id!r})` continues from there.")
    return RunFailedError("\n".join(lines), run)


def _in_step(error: Any) -> str:
    return f" in step {error['step']!r}" if error.get("step") else ""
