"""The values that come out of a store: runs, their steps and attempts, signals and events."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "Attempt",
    "BegunStep",
    "Event",
    "Place",
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


class RunState(StrEnum):
    """Where a run stands. INTERRUPTED is never written: it is RUNNING whose owner does not live any more.

    RUNNING      somebody is at work on it
    WAITING      for a signal, for a moment, or for another run; needs nobody until then
    INTERRUPTED  its owner died or let go in the middle; the next engine that knows its decision goes on
    COMPLETED, FAILED, CANCELLED   over
    """

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

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
