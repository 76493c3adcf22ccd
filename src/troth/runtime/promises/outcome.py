"""What `promises.start` answers: pushed later, stored for whoever asks, or done already."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.runtime.promises.retention import Retention

if TYPE_CHECKING:
    from troth.runtime.promises.promises import Promise

__all__ = ["Inline", "Pushed", "Stored"]


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result will be sent through `channel`."""

    promise: "Promise"
    channel: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The result will be kept, `until` its retention is over. `note` says why it is not sent, and how to ask for it."""

    __match_args__ = ("promise", "until", "note")

    promise: "Promise"
    until: Retention
    because: str

    @property
    def note(self) -> str:
        """What to tell whoever wanted to be told."""
        return (
            f"The end of this work will not be reported: {self.because}. The result is kept {self.until}; "
            f"ask for it with `promises.get({self.promise.id!r})` or `promises.wait({self.promise.id!r})`, or poll "
            "`troth outbox list`."
        )


@dataclass(frozen=True, slots=True)
class Inline:
    """The work was done at once, here; nothing is left to be told."""

    result: Any
