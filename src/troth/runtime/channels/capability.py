"""Say what a channel can do with a result that comes later."""

from enum import Enum

__all__ = ["Capability"]


class Capability(Enum):
    """What becomes of a result that is ready after the turn is over.

    NONE   nothing: nobody can be reached later, and nobody comes back to ask
    STORE  it is kept, and whoever asks for it gets it
    PUSH   it is sent to the receiver
    """

    NONE = 0
    STORE = 1
    PUSH = 2

    def narrowed(self, other: "Capability | None") -> "Capability":
        """The lesser of the two; this one if there is no other."""
        return self if other is None or other.value >= self.value else other
