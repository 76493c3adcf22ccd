"""What a Temporal server does not take, told before it refuses it itself.

A payload has two megabytes, a message four; an argument of a step travels beside the answer of the one before it.
"""

import json
from typing import Any

from troth.errors import MisuseError
from troth.runtime.store import NotJsonError
from troth.runtime.store.large_values import KeptValue, keep_well

__all__ = [
    "MAX_BATCH",
    "MAX_BRANCHES",
    "MAX_RECORD",
    "MAX_STEP",
    "MAX_TEXT",
    "NotOnTemporalError",
    "check_size",
    "cut_error",
    "cut_message",
    "keep_small",
    "travelling",
]

MAX_TEXT = 900_000
"""Letters of JSON that one argument list, answer or message may have, as they travel: inside of other JSON. A step has
two of them, and what its attempts ended with."""
MAX_STEP = 2_000_000
"""Letters that all that is recorded of one step may have."""
MAX_BATCH = 1_500_000
"""Letters that are recorded at a time, as they travel: as JSON inside JSON."""
MAX_RECORD = 30_000_000
"""Letters that the record of a run may have when it goes on in a new workflow, which reads it as a whole."""
_LONGEST = 10_000  # letters of one text of an error that travel
MAX_BRANCHES = 500
"""Branches of a `Together` that are at work at a time. A server refuses 2,000 steps in flight."""


class NotOnTemporalError(MisuseError):
    """What the decision asks for cannot be kept on Temporal. Nothing of it was done."""


def check_size(text: str, what: str) -> None:
    """Refuse what is too large to travel."""
    letters = travelling(text)
    if letters <= MAX_TEXT:
        return
    doubled = "" if letters == len(text) else f" ({letters:,} with its quotes and backslashes, which count twice)"
    size = f"{len(text):,} characters of JSON{doubled}, and at most {MAX_TEXT:,} travel through Temporal"
    raise NotJsonError(what, what, f"{size}; keep it in a file or a table, and pass its name")


def travelling(text: str) -> int:
    """How many letters a JSON text has inside of another one, as which it travels."""
    return len(text) + text.count('"') + text.count("\\")


def cut_message(message: str) -> str:
    """The message of an error, as far as it travels."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[:_LONGEST]}… ({len(message) - _LONGEST:,} more characters do not travel through Temporal)"


def cut_error(record: dict[str, Any]) -> dict[str, Any]:
    """What is written down of an error, as far as it travels: an error is told in any case."""
    if len(json.dumps(record)) <= 3 * _LONGEST:
        return record
    short = {name: cut_message(value) if isinstance(value, str) else value for name, value in record.items()}
    if len(json.dumps(short)) > MAX_TEXT:
        short["details"] = {"left out": "they do not travel through Temporal"}
    return short


def keep_small(value: object, what: str) -> KeptValue:
    """`keep` for what has to travel."""
    kept = keep_well(value, what)
    check_size(kept.text, what)
    return kept
