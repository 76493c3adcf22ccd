"""Compare the name of a receiver with the classes of the project that have a method of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.words import threshold

if TYPE_CHECKING:
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["MANY_DEFINITIONS", "is_called_like_owner"]

MANY_DEFINITIONS = threshold("definition_name", "many_definitions")


def is_called_like_owner(program: Inference, word: str, name: str, around: str) -> bool:
    """Whether the receiver is called like a class that has the method: `manager` and `EventManager`.

    The class around the call is hardly meant: an object seldom holds another of its kind.
    """
    plain = word.replace("_", "").lower()
    owners = program.counts.owners.get(name, set()) - {around}
    if len(owners) < MANY_DEFINITIONS:
        return len(plain) > 3 and any(plain in owner for owner in owners)
    # Where many classes have it, `image` is no `ImageFinder`; `message_interface` may be a `MessageInterfaceUDP`.
    ends = len(plain) > 3 and any(owner.endswith(plain) for owner in owners)
    return ends or ("_" in word.strip("_") and any(owner.startswith(plain) for owner in owners))
