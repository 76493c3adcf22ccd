"""The values that come out of a store about promises: the promises, their deliveries, and the counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from troth.runtime.store.records import RunState

__all__ = [
    "DeliveryAttempt",
    "DeliveryRecord",
    "DeliveryState",
    "NewPromise",
    "OutboxCounts",
    "PromiseIncident",
    "PromiseRecord",
    "PromiseState",
    "Settlement",
    "outbox_topic",
    "promise_topic",
]

outbox_topic = "outbox"
"""What is published when a delivery has become due."""


def promise_topic(promise_id: str) -> str:
    """What is published when a promise is settled or has expired."""
    return f"promise:{promise_id}"


class PromiseState(StrEnum):
    """Where the work of a promise stands.

    OPEN       the work is under way, or waits to go on after a restart
    DONE       it ended with a result
    FAILED     it ended with an error
    CANCELLED  it was cancelled
    EXPIRED    its retention is over: the result is gone, and since when is known
    """

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @staticmethod
    def of_run(state: RunState) -> "PromiseState":
        """What the end of a run is for its promise."""
        return _BY_RUN[state]


_BY_RUN = {
    RunState.COMPLETED: PromiseState.DONE,
    RunState.FAILED: PromiseState.FAILED,
    RunState.CANCELLED: PromiseState.CANCELLED,
}


class DeliveryState(StrEnum):
    """Where a delivery stands.

    DUE        a channel is to send it, now or at `due_at`
    LEASED     somebody sends it just now, or has accepted it into memory
    STORED     no channel can push it: it is kept for whoever asks, and offered to the next channel of its session
    DELIVERED  it reached somebody, or somebody said so
    EXPIRED    its retention was over before that
    DEAD       every attempt failed; `outbox.replay` tries again
    """

    DUE = "due"
    LEASED = "leased"
    STORED = "stored"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    DEAD = "dead"


class NewPromise(NamedTuple):
    """What is written down of a promise before its work begins.

    `work` and `subject` name what settles it: `run` and the id of a run, or a kind of work that is settled from
    outside and the id it has there. `channel` is where its deliveries go first; without one they are stored. `home` is
    the owner whose process alone can use that channel. `retention` is in seconds from the end of the work.
    """

    id: str
    session: str
    work: str
    subject: str
    title: str
    channel: str | None
    home: str | None
    retention: float | None
    created_at: float


@dataclass(frozen=True, slots=True)
class PromiseRecord:
    """One promise as it is now."""

    id: str
    session: str
    work: str
    subject: str
    title: str
    channel: str | None
    state: PromiseState
    result: Any
    error: Mapping[str, Any] | None
    created_at: float
    settled_at: float | None
    expires_at: float | None
    expired_at: float | None

    @property
    def is_settled(self) -> bool:
        """Whether the work is over, whatever became of it."""
        return self.state is not PromiseState.OPEN


class DeliveryAttempt(NamedTuple):
    """What one attempt to send came to: when that was known, through which channel, and the receiver's own words.

    `outcome` is `delivered`; `failed`; `declined`, where the channel did not want something this old; `lost`, where
    whoever sent it ended or fell silent before an answer was written down; or `acknowledged`, where somebody said that
    it arrived, whatever its last attempt, of that number, had come to.
    """

    number: int
    at: float
    channel: str | None
    outcome: str
    words: str


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One delivery as it is now. `text` and `data` are set for what is not the end of the work."""

    id: str
    promise: str
    session: str
    kind: str
    seq: int
    text: str | None
    data: Any
    count: int
    state: DeliveryState
    channel: str | None
    attempt: int
    first_attempt_at: float | None
    due_at: float | None
    owner: str | None
    leased_until: float | None
    receipt: str | None
    problem: str | None
    created_at: float
    updated_at: float
    finished_at: float | None
    past_attempts: tuple[DeliveryAttempt, ...] = ()
    """What the last attempts came to, but for the one that `receipt` tells of; see `attempts`."""

    @property
    def attempts(self) -> tuple[DeliveryAttempt, ...]:
        """What each attempt came to, the first one first; of many, the last ones."""
        if self.state is not DeliveryState.DELIVERED or self.finished_at is None:
            return self.past_attempts
        outcome = "acknowledged" if self.attempt == 0 or self._has_settled_attempt() else "delivered"
        last = DeliveryAttempt(self.attempt, self.finished_at, self.channel, outcome, self.receipt or "")
        return (*self.past_attempts, last)

    def _has_settled_attempt(self) -> bool:
        """Whether the attempt that was begun last has its place among those of the past."""
        last = self.past_attempts[-1] if self.past_attempts else None
        return last is not None and last.number == self.attempt and last.at >= (self.first_attempt_at or 0.0)


class Settlement(NamedTuple):
    """What becomes of a leased delivery after an attempt."""

    state: DeliveryState
    due_at: float | None = None
    receipt: str | None = None
    problem: str | None = None
    declined_by: str | None = None
    """The channel that was asked whether it wants something this old, and said no."""


class OutboxCounts(NamedTuple):
    """How many deliveries were promised, and what became of them. `stored` is all that is still pending."""

    promised: int
    delivered: int
    stored: int
    expired: int
    dead: int

    @property
    def is_balanced(self) -> bool:
        """Whether nothing is missing: promised = delivered + stored + expired + dead."""
        return self.promised == self.delivered + self.stored + self.expired + self.dead


@dataclass(frozen=True, slots=True)
class PromiseIncident:
    """Something that was given up, or given up for the time being: what, when and why."""

    number: int
    kind: str
    at: float
    details: Mapping[str, Any]
