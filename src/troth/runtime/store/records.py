"""The values that come out of a store: runs, their steps and attempts, signals and events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "Attempt",
    "BegunStep",
    "Event",
    "Happened",
    "HistoryEntry",
    "OpenWait",
    "Place",
    "Recorded",
    "RunRecord",
    "RunState",
    "Signal",
    "StepRecord",
    "StepState",
]


class Place(NamedTuple):
    """Where a step stands in its run. `branch` is empty on the trunk, `3.0/` in the first branch of trunk step 3."""

    run_id: str
    branch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.branch}{self.seq}"


class BegunStep(NamedTuple):
    """What is written down of a step before its effect."""

    name: str
    key: str
    args: str
    color: str | None
    code: str | None
    now: float
    is_shown: bool = True


class OpenWait(NamedTuple):
    """What a run waits for under a signal's name: until when it can be sent, and whether enough of it was sent."""

    deadline: float | None
    is_answered: bool


class RunState(StrEnum):
    """Where a run stands. INTERRUPTED is never written: it is RUNNING whose owner does not live any more.

    RUNNING      somebody is at work on it
    WAITING      for a signal, for a moment, or for another run; needs nobody until then
    INTERRUPTED  its owner died or let go in the middle; the next engine that knows its decision goes on
    COMPLETED, FAILED, CANCELLED   over
    DAMAGED      never written either: what is kept of it cannot be read; only lists have such runs
    """

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DAMAGED = "damaged"

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen to the run any more by itself."""
        return self in _OVER


_OVER = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})


class StepState(StrEnum):
    """Where a step stands.

    BEGUN      written down before its effect: after a crash its outcome is unknown
    RESTING    an attempt failed, the next one is due at `wake_at`
    WAITING    for a signal, a moment or another run
    DONE, FAILED   settled: a replay is given the recorded answer
    CANCELLED  the run's cancellation reached the decision here
    """

    BEGUN = "begun"
    RESTING = "resting"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_settled(self) -> bool:
        """Whether a replay is given this step's recorded answer."""
        return self in _SETTLED


_SETTLED = frozenset({StepState.DONE, StepState.FAILED, StepState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that did not succeed. `outcome` is failed, timeout, late, lost, refused, cancelled or interrupted."""

    number: int
    outcome: str
    error: Mapping[str, Any] | None
    started_at: float | None
    finished_at: float
    next_at: float | None
    """When the next attempt was due; the time from `finished_at` until then was waiting, not work."""
    code: str | None = None
    """The digest of the code that was called, where it is known."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One ask of a decision and what became of it. `args` is JSON text, compared when a run is replayed."""

    place: Place
    kind: str
    name: str
    state: StepState
    key: str
    attempt: int
    args: str
    code: str | None
    color: str | None
    result: Any
    error: Mapping[str, Any] | None
    started_at: float
    finished_at: float | None
    wake_at: float | None
    attempts: tuple[Attempt, ...] = ()


class Recorded(NamedTuple):
    """What a run has asked for, and what became of it."""

    steps: Sequence[StepRecord]
    """In the order in which they were asked for; branches after the step that opened them."""
    taken_back: Sequence[StepRecord]
    """Steps as they were before their answers were taken back, each place once, as it was last."""


class Happened(StrEnum):
    """What an entry of a run's history tells.

    RUN_BEGUN, RUN_RESUMED, RUN_ENDED   of the run itself
    BEGUN, WAITING                      a step begins, or a wait does
    DONE, FAILED, CANCELLED             it is settled
    ATTEMPT, AGAIN                      an attempt did not succeed; another one begins
    TAKEN_BACK                          its answer does not count any more: the run is resumed, and asks anew
    CODE_CHANGED                        its next attempt calls other code than the last one did
    CALLBACK_FAILED                     somebody who was told of the run raised
    """

    RUN_BEGUN = "run begun"
    RUN_RESUMED = "run resumed"
    RUN_ENDED = "run ended"
    BEGUN = "begun"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ATTEMPT = "attempt"
    AGAIN = "again"
    TAKEN_BACK = "taken back"
    CODE_CHANGED = "code changed"
    CALLBACK_FAILED = "callback failed"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened in a run. `seq` counts from 1 in the run without gaps, and never changes.

    `value` is the result of a step that is done, and the error of one that failed, of an attempt, or of the run.
    """

    run_id: str
    seq: int
    what: Happened
    at: float
    place: Place | None
    kind: str | None
    """The kind of the step; at the end of a run, its state."""
    name: str | None
    attempt: int
    outcome: str | None
    """How an attempt ended; at the end of a run, the word for it, where its decision has one."""
    wake_at: float | None
    value: Any
    note: Any
    """What the decision wants to have shown with it."""
    code: str | None
    done_by: str | None
    """In a fork: the run that did it, where that is another one."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a decision. `args` is what it was started with; `waiting_for` says in words what it waits for."""

    id: str
    decision: str
    label: str | None
    state: RunState
    args: tuple[Any, ...]
    result: Any
    error: Mapping[str, Any] | None
    code: str | None
    parent: str | None
    forked_from: str | None
    is_cancel_requested: bool
    waiting_for: str | None
    wake_at: float | None
    created_at: float
    updated_at: float
    finished_at: float | None
    ending: str | None = None
    """The word for how it ended, where its decision has one: `rolled back`, say, instead of `failed`."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One message to a run. `taken_by` is the step that received it, once one has."""

    id: int
    run_id: str
    name: str
    payload: Any
    sent_at: float
    taken_by: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a stream. `seq` counts from 1 in the stream without gaps; `id` orders all streams of the file."""

    id: int
    stream: str
    seq: int
    kind: str
    payload: Any
    at: float
