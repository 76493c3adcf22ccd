"""Tell which ring an agent is in and which ring an action needs.

Rings are policy, not a sandbox: they say what the runtime agrees to do on an agent's behalf.
"""

from collections.abc import Collection
from enum import IntEnum, StrEnum

__all__ = ["PRIVILEGED_ABOVE", "ROOT_ABOVE", "Reversibility", "Ring", "ring_of"]

ROOT_ABOVE = 0.99
PRIVILEGED_ABOVE = 0.95


class Ring(IntEnum):
    """How much an agent may do. A smaller number may do more."""

    ROOT = 0
    PRIVILEGED = 1
    STANDARD = 2
    SANDBOX = 3


class Reversibility(StrEnum):
    """How far an action can be taken back."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


def ring_of(score: float, min_score: float, vouched: Collection[str], everybody: Collection[str]) -> Ring:
    """The ring that follows from a score and a consensus.

    Below `min_score` it is the sandbox. Somebody who vouches and a score above 0.95 make it the privileged ring; all
    of `everybody` and a score above 0.99 make it the root ring.
    """
    if score < min_score:
        return Ring.SANDBOX
    if score > ROOT_ABOVE and vouched and set(everybody) <= set(vouched):
        return Ring.ROOT
    if score > PRIVILEGED_ABOVE and vouched:
        return Ring.PRIVILEGED
    return Ring.STANDARD
