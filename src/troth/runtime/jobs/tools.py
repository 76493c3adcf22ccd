"""The tools with which an agent starts commands in the background and looks after them."""

from typing import TYPE_CHECKING, Any

from troth.runtime.jobs.records import JobRecord, Output
from troth.runtime.promises import Inline, Pushed
from troth.runtime.promises.errors import NotSettledError
from troth.runtime.tools import Tool, tool

if TYPE_CHECKING:
    from troth.runtime.jobs.jobs import Jobs

__all__ = ["tools_for"]

_SHOWN = 8000  # bytes of output that a model is shown at once


def tools_for(jobs: "Jobs") -> list[Tool]:
    """Start, look, read, wait, write, stop and list. Each works only on jobs of the caller's own session."""

    async def start_job(
        command: str, watch: list[str] | None = None, timeout: float | None = None, cwd: str | None = None
    ) -> dict[str, Any]:
        """Start a shell command in the background. You are told when it ends, if anything can be told later.

        Args:
            command: the command, for `/bin/sh`
            watch: texts; each line of the output that has one of them is told as well
            timeout: seconds after which it is stopped
            cwd: the folder it runs in

        """
        outcome = await jobs.astart(command, watch=watch or (), timeout=timeout, cwd=cwd)
        if isinstance(outcome, Inline):
            note = "It was run to its end immediately, because nothing could be delivered later."
            result, cut = _shortened(outcome.result)
            if cut:
                note += f" The first {cut} characters of its output are not shown and not kept: use a file for them."
            return {"state": "over", "result": result, "note": note}
        if isinstance(outcome, Pushed):
            note = f"You will be told when it ends, through {outcome.channel}."
            return {"job": outcome.promise.id, "delivery": "pushed", "note": note}
        note = f"{outcome.note} Use `wait_for_job`, `look_at_job` or `read_job` to get it."
        return {"job": outcome.promise.id, "delivery": "stored", "note": note}

    async def look_at_job(job: str) -> dict[str, Any]:
        """Look where a job stands, without waiting.

        Args:
            job: the id of the job

        """
        return _about(await jobs.aget(job))

    async def read_job(job: str, after: int = 0) -> dict[str, Any]:
        """Read the output of a job.

        Args:
            job: the id of the job
            after: how many bytes to leave out at the beginning; go on with `next` of the last answer

        """
        return _piece(await jobs.aread(job, after, limit=_SHOWN))

    async def wait_for_job(job: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait for the end of a job.

        Args:
            job: the id of the job
            seconds: how long to wait

        """
        try:
            record = await jobs.await_end(job, seconds)
        except NotSettledError:
            return {"job": job, "state": "running", "note": f"It is not over after {seconds:g} s. It is still running."}
        output = await jobs.aread(job, max(0, record.output_bytes - _SHOWN), limit=_SHOWN)
        return {**_about(record), **_piece(output)}

    async def write_to_job(job: str, text: str, *, end: bool = False) -> dict[str, Any]:
        """Write to the stdin of a job.

        Args:
            job: the id of the job
            text: what to write; a line ends with a line feed
            end: whether nothing comes after it

        """
        await jobs.awrite(job, text, end=end)
        return {"job": job, "written": len(text.encode())}

    async def stop_job(job: str) -> dict[str, Any]:
        """Stop a job and everything that it has started.

        Args:
            job: the id of the job

        """
        return _about(await jobs.astop(job))

    async def list_jobs() -> list[dict[str, Any]]:
        """List the jobs of this conversation, the newest first."""
        return [_about(record) for record in await jobs.alist(limit=20)]

    verbs = (start_job, look_at_job, read_job, wait_for_job, write_to_job, stop_job, list_jobs)
    return [tool(verb) for verb in verbs]


def _shortened(result: Any) -> tuple[dict[str, Any], int]:
    """What a model is shown of a command that is over and of which nothing is kept, and how much is left out."""
    output: str = result["output"]
    cut = max(0, len(output) - _SHOWN)
    return {**result, "output": output[cut:]}, cut


def _about(record: JobRecord) -> dict[str, Any]:
    answer: dict[str, Any] = {"job": record.id, "state": record.state.value, "text": record.text}
    if record.is_over:
        answer["exit_code"] = record.exit_code
    answer["output_bytes"] = record.output_bytes
    return answer


def _piece(output: Output) -> dict[str, Any]:
    answer: dict[str, Any] = {"output": output.text, "next": output.end}
    if output.note is not None:
        answer["note"] = output.note
    return answer
