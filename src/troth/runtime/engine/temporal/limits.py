"""What a Temporal server does not take, told before it refuses it itself.

A payload has two megabytes, a message four; an argument of a step travels beside the answer of the one before it.
"""

from troth.errors import MisuseError
from troth.runtime.store import NotJsonError
from troth.runtime.store.large_values import Kept, keep_well

__all__ = ["MAX_BRANCHES", "MAX_TEXT", "NotOnTemporalError", "check_size", "keep_small"]

MAX_TEXT = 1_000_000
"""Letters of JSON that one argument list, answer or message may have."""
MAX_BATCH = 1_500_000
"""Letters of JSON that are recorded at a time."""
MAX_BRANCHES = 500
"""Branches of a `Together` that are at work at a time. A server refuses 2,000 steps in flight."""


class NotOnTemporalError(MisuseError):
    """What the decision asks for cannot be kept on Temporal. Nothing of it was done."""


def check_size(text: str, what: str) -> None:
    """Refuse what is too large to travel."""
    if len(text) > MAX_TEXT:
        size = f"{len(text):,} letters of JSON, and at most {MAX_TEXT:,} travel through Temporal"
        raise NotJsonError(what, what, f"{size}; keep it in a file or a table, and pass its name")


def keep_small(value: object, what: str) -> Kept:
    """`keep` for what has to travel."""
    kept = keep_well(value, what)
    check_size(kept.text, what)
    return kept
