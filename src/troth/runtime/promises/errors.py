"""What promises and the outbox refuse.

MisuseError
├── PromiseRefused        the work was not started: nobody could be told of its result
├── UnknownPromiseError   there is no such promise
├── UnknownDeliveryError  there is no such delivery
└── ForeignPromiseError   the promise belongs to another session
RunError
└── NotSettledError       the work was not over in time; it goes on
"""

from troth.errors import MisuseError, RunError

__all__ = [
    "ForeignPromiseError",
    "NotSettledError",
    "PromiseRefused",
    "UnknownDeliveryError",
    "UnknownPromiseError",
]


class PromiseRefused(MisuseError):  # noqa: N818  it is what happens, not what went wrong
    """The work was not started, because its result could reach nobody. `reason` says why."""

    def __init__(self, reason: str, advice: str) -> None:
        self.reason = reason
        self.advice = advice
        super().__init__(f"The work was not started: {reason}.\n{advice}")

    def __reduce__(self) -> tuple[type["PromiseRefused"], tuple[str, str]]:
        return PromiseRefused, (self.reason, self.advice)


class UnknownPromiseError(MisuseError):
    """There is no promise of that id in the store, and there never was."""


class UnknownDeliveryError(MisuseError):
    """There is no delivery of that id in the store, and there never was."""


class ForeignPromiseError(MisuseError):
    """The promise belongs to another session. Nothing was done."""


class NotSettledError(RunError):
    """The work was not over in time. It goes on, and can be waited for again."""
