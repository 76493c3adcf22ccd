"""Read and write the files of one job, which its supervisor keeps: who it is, its output, its input, its end."""

import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

from troth.runtime.jobs.errors import JobInputError
from troth.runtime.jobs.supervisor import (
    DRAFT,
    END,
    EXIT,
    GIVEN_UP,
    GRACE,
    OUTPUT,
    PROCESS,
    STDIN,
    STOP,
    claim_folder,
    find_command,
    make_spare,
    remove_spare,
    start_time,
    write_whole,
)

__all__ = ["JobEnding", "JobFiles", "JobProcess"]

_LOOK = 0.02


class JobProcess(NamedTuple):
    """The process of a job, and its supervisor's. An id is believed only with the moment at which it started."""

    pid: int
    started: str | None
    supervisor: int
    supervisor_started: str | None
    begun_at: float

    @property
    def lives(self) -> bool:
        """Whether the command's own process is there."""
        return self.started is not None and start_time(self.pid) == self.started

    @property
    def is_supervised(self) -> bool:
        """Whether somebody will write down how it ends."""
        return self.supervisor_started is not None and start_time(self.supervisor) == self.supervisor_started


class JobEnding(NamedTuple):
    """How a command ended. `problem` is set if it was never started."""

    ended_at: float
    code: int | None = None
    reason: str | None = None
    problem: dict[str, str] | None = None


class JobFiles:
    """The folder of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / OUTPUT

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError:
            return None  # somebody has written into it: it says nothing any more
        return value

    def process(self) -> JobProcess | None:
        """Who the job is; nothing before it is started."""
        value = self._read(PROCESS)
        return None if value is None else JobProcess(**value)

    def find_process(self) -> JobProcess | None:
        """Who the job is, also if its supervisor was killed before it could write that down."""
        process, draft = self.process(), self._read(DRAFT)
        if process is not None or draft is None:
            return process
        supervisor, supervisor_started = draft["supervisor"], draft["supervisor_started"]
        if supervisor_started is not None and start_time(supervisor) == supervisor_started:
            return None  # it is about to
        pid = find_command(supervisor, str(self.folder.resolve()))
        if pid is None:
            return self.process()
        process = JobProcess(pid, start_time(pid), supervisor, supervisor_started, self.made_at())
        write_whole(str(self.folder / PROCESS), process._asdict())
        return process

    def ending(self) -> JobEnding | None:
        """How it ended; nothing before that."""
        value = self._read(EXIT)
        return None if value is None else JobEnding(**value)

    def give_up(self) -> bool:
        """See to it that a job which was not started is never started. False if it was, or is just being started."""
        spare = make_spare(str(self.folder.parent), (GIVEN_UP,))
        try:
            claim_folder(spare, str(self.folder))
        except FileExistsError:
            remove_spare(spare)
            return False
        return True

    def made_at(self) -> float:
        """When somebody began to start it, by the clock of the machine."""
        try:
            return self.folder.stat().st_ctime  # when it was given to the job; it may have been made long before
        except OSError:
            return time.time()

    def size(self) -> int:
        """How many bytes it has printed, as far as they are kept."""
        try:
            return self.output.stat().st_size
        except OSError:
            return 0

    def read(self, after: int, limit: int) -> bytes:
        """Up to `limit` bytes of the output that follow the first `after`."""
        try:
            with self.output.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if after >= size:
                    return b""
                file.seek(after)
                return file.read(min(limit, size - after))
        except FileNotFoundError:
            return b""

    def write(self, data: bytes, timeout: float) -> None:
        """Write to the command's stdin."""
        try:
            pipe = os.open(self.folder / STDIN, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise JobInputError(f"The stdin of this job is closed ({error.strerror}). Nothing was written.") from None
        written, deadline = 0, time.monotonic() + timeout
        try:
            while written < len(data):
                if not select.select([], [pipe], [], max(0.0, deadline - time.monotonic()))[1]:
                    raise JobInputError(
                        f"The job took {written} of {len(data)} bytes within {timeout:g} s: it is not "
                        "reading its stdin at the moment."
                    )
                written += _write_some(pipe, data[written:])
        except BrokenPipeError:
            raise JobInputError(f"The job stopped reading after {written} of {len(data)} bytes.") from None
        finally:
            os.close(pipe)

    def end_input(self) -> None:
        """Let the command see the end of its stdin."""
        try:
            (self.folder / END).touch()
        except FileNotFoundError:
            raise JobInputError("The files of this job are gone, so its stdin is gone too. Nothing was done.") from None
        self._call_supervisor()

    def _call_supervisor(self) -> bool:
        process = self.find_process()
        if process is None or not process.is_supervised:
            return False
        return _signal(process.supervisor, signal.SIGUSR1)

    def stop(self, reason: str) -> None:
        """Ask for the end of the command. Where its supervisor was killed, the command is ended from here."""
        if not self.folder.is_dir() or self.ending() is not None:
            return
        write_whole(str(self.folder / STOP), {"reason": reason})
        if not self._call_supervisor():
            self._end_unsupervised()

    def stand_in_for_supervisor(self, reason: str) -> None:
        """End a command whose supervisor was killed: ask it to, and when it was asked long enough, end it. At once."""
        if self.stop_reason() is None:
            write_whole(str(self.folder / STOP), {"reason": reason})
        process = self.process()
        if process is not None and process.lives:
            since = time.time() - (self.folder / STOP).stat().st_mtime
            _signal_group(process.pid, signal.SIGTERM if 0 <= since < GRACE else signal.SIGKILL)

    def _end_unsupervised(self) -> None:
        process = self.process()
        deadline = time.monotonic() + GRACE
        number = signal.SIGTERM
        while process is not None and process.lives:
            _signal_group(process.pid, number)
            if time.monotonic() > deadline:
                number = signal.SIGKILL
            time.sleep(_LOOK)

    def stop_reason(self) -> str | None:
        """Why somebody wanted it to end; nothing if nobody did."""
        value = self._read(STOP)
        return None if value is None else str(value["reason"])

    def remove(self) -> None:
        """Let go of everything that was kept."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_some(pipe: int, data: bytes) -> int:
    try:
        return os.write(pipe, data[:65536])
    except BlockingIOError:
        return 0


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
