"""The log of a job: what it was asked to do, what was found in its output, and that it is to be stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troth.runtime.jobs.watching import WatchPatterns, WatchState
from troth.runtime.store import Event

__all__ = ["CREATED", "ENDED", "STOP", "WATCHED", "JobDetails", "JobLog", "stream_of"]

CREATED, WATCHED, STOP, ENDED = "created", "watched", "stop", "ended"


def stream_of(job_id: str) -> str:
    """The stream of a job's log."""
    return f"job:{job_id}"


@dataclass(frozen=True, slots=True)
class JobDetails:
    """What is written down of a job before its process exists. Of `env` only the names: values may be secret."""

    command: str | Sequence[str]
    cwd: str
    env: Sequence[str]
    notify: bool
    watch: Sequence[dict[str, Any]]
    on_shutdown: str
    timeout: float | None
    owner: str
    machine: str = ""
    """Where its process and its files are, if several machines share the store."""
    host: str = ""
    """What that machine calls itself."""
    folder: str = ""
    """Where its files are there."""

    @property
    def argv(self) -> list[str]:
        """What is executed."""
        return ["/bin/sh", "-c", self.command] if isinstance(self.command, str) else list(self.command)

    def to_json(self) -> dict[str, Any]:
        """For the log."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def patterns(self) -> WatchPatterns:
        """What is looked for in the output."""
        return WatchPatterns.from_json(self.watch)


@dataclass(frozen=True, slots=True)
class JobLog:
    """What the log tells, up to entry `cursor`."""

    details: JobDetails
    cursor: int
    watch: WatchState = field(default_factory=WatchState)
    stop_reason: str | None = None

    @classmethod
    def of(cls, events: Sequence[Event]) -> "JobLog":
        """The log from its first entry on."""
        log = cls(JobDetails(**events[0].payload), events[0].seq)
        for event in events[1:]:
            log = replace(log, cursor=event.seq)
            if event.kind == WATCHED:
                log = replace(log, watch=WatchState(**event.payload))
            elif event.kind == STOP:
                log = replace(log, stop_reason=event.payload["reason"])
        return log
