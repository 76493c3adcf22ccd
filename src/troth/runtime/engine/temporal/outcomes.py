"""How the outcome of an attempt travels from the worker that made it to the run that asked for it.

An error travels as what is written down of it, with the names of its classes: so a replay on another worker, which may
not have those classes, decides about a retry as the first one did.
"""

import json
from typing import Any, cast

from troth.runtime.engine.failure import describe
from troth.runtime.engine.invoke.outcome import Ended, StepOutcome, Unkeepable
from troth.runtime.engine.retry import class_names
from troth.runtime.engine.temporal.limits import check_size, cut_error
from troth.runtime.store import NotJsonError
from troth.runtime.store.json_codec import read
from troth.runtime.store.large_values import KeptValue, keep_well

__all__ = ["RecordedError", "from_message", "to_message"]


class RecordedError(Exception):
    """An error that was raised in another process: what is written down of it, and the names of its classes."""

    def __init__(self, record: dict[str, Any], names: list[str]) -> None:
        super().__init__(str(record.get("message")))
        self.troth_record = record
        self.troth_mro = frozenset(names)


def to_message(outcome: StepOutcome, step: str, appended: tuple[tuple[str, str, object], ...]) -> dict[str, Any]:
    """The outcome as JSON."""
    what = f"result of step {step!r}"
    if outcome.ended == "done":
        try:
            kept = outcome.value if type(outcome.value) is KeptValue else keep_well(outcome.value, what)
            check_size(kept.text, what)
            check_size(json.dumps([list(event) for event in appended]), f"what step {step!r} has appended")
        except NotJsonError as refused:
            return {"ended": "done", "unkeepable": [refused.what, refused.path, refused.why]}
        return {"ended": "done", "value": kept.text, "appended": [list(event) for event in appended]}
    if outcome.error is None:
        return {"ended": outcome.ended}
    return {
        "ended": outcome.ended,
        "error": cut_error(describe(outcome.error, outcome.ended)),
        "names": sorted(class_names(outcome.error)),
    }


def from_message(message: dict[str, Any]) -> StepOutcome:
    """The outcome again."""
    ended = cast("Ended", message["ended"])
    if message.get("unkeepable"):
        return StepOutcome("done", Unkeepable(NotJsonError(*message["unkeepable"])))
    if ended == "done":
        text = message["value"]
        return StepOutcome("done", KeptValue(text, read(text, "the answer of a step")))
    record = message.get("error")
    return StepOutcome(ended, error=None if record is None else RecordedError(record, message["names"]))
