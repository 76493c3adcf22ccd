"""What the rows of a workflow's run were written with; one that says something else is damaged, and told so."""

from collections.abc import Mapping
from typing import Any

from troth.runtime.store import DamagedStoreError, RunRecord, StepRecord
from troth.runtime.store.json_codec import read

__all__ = ["answer_of", "appended", "arguments_of", "inputs_of", "timeout_of"]


def arguments_of(run: RunRecord) -> tuple[Mapping[str, object], str | None]:
    """The inputs of a run, and the file that its workflow was read from."""
    match run.args:
        case (str(), dict() as inputs, str() | None as source):
            return inputs, source or None
    raise DamagedStoreError(f"run {run.id!r}", "its arguments are not those of a workflow")


def appended(row: StepRecord) -> tuple[str, Mapping[str, Any]]:
    """What a row of the kind `append` tells: its kind, and what it says of the place it names."""
    match _read(row):
        case [str() as kind, {"place": str()} as payload]:
            return kind, payload
    raise _damaged(row)


def inputs_of(row: StepRecord) -> object:
    """What a step was given by name."""
    arguments = _read(row)
    if not isinstance(arguments, list):
        raise _damaged(row)
    return arguments[1] if len(arguments) == 2 else {}


def timeout_of(row: StepRecord) -> float | None:
    """How long a row of the kind `wait` waits at most."""
    match _read(row):
        case [float() | int() | None as timeout]:
            return timeout
    raise _damaged(row)


def answer_of(row: StepRecord) -> Mapping[str, Any]:
    """What was answered to a question."""
    if not isinstance(row.result, dict):
        raise _damaged(row)
    return row.result


def _read(row: StepRecord) -> Any:
    return read(row.args, _name(row))


def _damaged(row: StepRecord) -> DamagedStoreError:
    return DamagedStoreError(_name(row), f"it does not say what a {row.kind} says")


def _name(row: StepRecord) -> str:
    return f"step {row.place} of run {row.place.run_id!r}"
