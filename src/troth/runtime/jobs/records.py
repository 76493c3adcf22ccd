"""The values that tell of jobs: a job as it is now, and a piece of its output."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["JobRecord", "JobState", "Output"]


class JobState(StrEnum):
    """Where a job stands.

    STARTING  it is written down, and not started yet
    RUNNING   its process is under way
    DONE      it ended with exit code 0
    FAILED    it ended with another exit code or by a signal, took too long, could not be started, or was lost
    STOPPED   it was stopped: by somebody, by a shutdown, or with its session
    EXPIRED   its retention is over: output and exit code are gone, and since when is known
    """

    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as it is now. `reason` says why it was stopped or did not end by itself."""

    id: str
    session: str
    command: str | Sequence[str]
    cwd: str
    state: JobState
    exit_code: int | None
    reason: str | None
    text: str
    """All of that in words."""
    pid: int | None
    notify: bool
    watch: Sequence[str]
    hits: int
    """Lines that were found so far."""
    on_shutdown: str
    timeout: float | None
    created_at: float
    ended_at: float | None
    expired_at: float | None
    output_bytes: int
    """What it has printed; of a job on another machine, that is known when it is over."""
    output_file: str
    machine: str = ""
    """The name of the machine it is on, if that is another one than this; empty otherwise."""

    @property
    def is_over(self) -> bool:
        """Whether the job is over, whatever became of it."""
        return self.state not in (JobState.STARTING, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of a job's output, from byte `start` to `end` of `size` bytes so far. Reading consumes nothing.

    Bytes that are no UTF-8 are shown as `\N{REPLACEMENT CHARACTER}`; the file has them as they are.
    """

    text: str
    start: int
    end: int
    size: int
    is_over: bool
    file: str
    is_removed: bool = False
    """Whether somebody has removed the file of a job that is over."""

    @property
    def note(self) -> str | None:
        """What was left out, and where it is; nothing if nothing was."""
        if self.is_removed:
            return f"the output is gone: {self.file} was removed"
        before = f"{min(self.start, self.size)} bytes come before this" if self.start else ""
        behind = f"{self.size - self.end} bytes follow (`after={self.end}`)" if self.end < self.size else ""
        left_out = " and ".join(filter(None, (before, behind)))
        return f"{left_out}; all of it is in {self.file}" if left_out else None
