"""Decide what the end of a command is for its promise, and put it into words. Nothing here waits or writes."""

import json
import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from troth.runtime.jobs.job_files import JobEnding, JobFiles
from troth.runtime.jobs.records import JobState
from troth.runtime.store.promise_records import PromiseState

__all__ = ["SILENT", "JobOutcome", "describe", "outcome_of", "title_of"]

TAIL = 4000  # bytes of the output that come with the end
_TITLE = 80
SILENT = "silent"
"""Why a job is lost whose machine is taken for dead."""
STATES: Mapping[PromiseState, JobState] = {
    PromiseState.DONE: JobState.DONE,
    PromiseState.FAILED: JobState.FAILED,
    PromiseState.CANCELLED: JobState.STOPPED,
    PromiseState.EXPIRED: JobState.EXPIRED,
}
_STOPS = {
    "stop": "was stopped",
    "shutdown": "was stopped when the program that started it shut down",
    "session": "was stopped with the session or member that started it",
    "timeout": "was stopped because its timeout was over",
}


class JobOutcome(NamedTuple):
    """What is written at the end of a job."""

    state: PromiseState
    result: dict[str, Any]
    error: dict[str, Any] | None
    text: str

    @property
    def result_json(self) -> str:
        """For the promise's row."""
        return json.dumps(self.result)

    @property
    def error_json(self) -> str | None:
        """For the promise's row."""
        return None if self.error is None else json.dumps(self.error)


def title_of(command: str | Sequence[str]) -> str:
    """A command as a person writes it, in one short line."""
    text = " ".join((command if isinstance(command, str) else shlex.join(command)).split())
    text = text.encode("utf-8", "backslashreplace").decode()  # a file's name may be no text, and no store keeps it then
    return f"`{text if len(text) <= _TITLE else text[: _TITLE - 1] + '…'}`"


def outcome_of(
    title: str, ending: JobEnding, files: JobFiles, created_at: float, *, tail: int | None = TAIL
) -> JobOutcome:
    """What the end of a command comes to, with the last `tail` bytes of its output; None means all of it."""
    process = files.process()
    begun_at = created_at if process is None else process.begun_at  # as the end is: by the clock of the job's machine
    size = files.size()
    shown_bytes = size if tail is None else min(size, tail)
    last = files.read(size - shown_bytes, shown_bytes)
    cut = size - len(last)
    output = last.decode("utf-8", "replace")
    result = {
        "exit_code": ending.code,
        "reason": ending.reason,
        "seconds": round(max(0.0, ending.ended_at - begun_at), 3),
        "output": output,
        "output_bytes": size,
        "output_cut": cut,
        "output_file": str(files.output),
    }
    state, error = _judge(ending)
    words = describe(title, ending.code, ending.reason, ending.problem)
    if error is not None:
        error["message"] = words
    shown = f"\n{output.rstrip()}" if last.strip() else ""
    if ending.reason == SILENT:
        shown = f"\n(its output is on that machine, in {files.output})"
    elif not files.output.exists() and ending.problem is None:
        shown = f"\n(its output is gone: {files.output} was removed)"
    elif cut:
        shown = f"\n(the first {cut} of {size} bytes are not shown; all of the output is in {files.output}){shown}"
    return JobOutcome(state, result, error, f"{words}{shown}")


def _judge(ending: JobEnding) -> tuple[PromiseState, dict[str, Any] | None]:
    if ending.problem is not None:
        return PromiseState.FAILED, {"type": "JobStartError", "cause": ending.problem["type"]}
    if ending.reason in ("lost", "gone", SILENT):
        return PromiseState.FAILED, {"type": "JobLostError"}
    if ending.reason == "timeout":
        return PromiseState.FAILED, {"type": "JobTimeoutError"}
    if ending.reason is not None:
        return PromiseState.CANCELLED, None
    if ending.code == 0:
        return PromiseState.DONE, None
    return PromiseState.FAILED, {"type": "JobFailedError"}


def describe(title: str, code: int | None, reason: str | None, problem: Mapping[str, str] | None) -> str:
    """How a job ended, in a sentence."""
    if problem is not None:
        return f"{title} could not be started: {problem['message']}."
    if reason == "lost":
        return f"{title} has ended with an unknown result: its supervisor was killed too. Its output is kept."
    if reason == "gone":
        return f"{title} has ended with an unknown result: its files were removed."
    if reason == SILENT:
        return f"{title} is lost: its machine has not sent a heartbeat for so long that it is considered dead."
    how = "" if code is None else f" {_exit(code)}"
    if reason is not None:
        return f"{title} {_STOPS.get(reason, f'was stopped ({reason})')}; it ended{how}."
    return f"{title} ended{how}."


def _exit(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
