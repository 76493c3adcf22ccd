"""Start commands that report back, ask for them, read them, write to them, stop them.

A job is written down, with its promise and with what is watched for, before its process exists. A supervisor that
outlives us keeps its output and its exit status in files, so that they are there after any death of ours.
"""

import codecs
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from troth.bridge import call
from troth.errors import MisuseError, RunError
from troth.runtime.arguments import check_count
from troth.runtime.channels import Binding, Capability
from troth.runtime.channels.binding import VARIABLE, turn_session
from troth.runtime.jobs.commit_points import JOB_END, JOB_EXEC, JOB_START, JOB_STOP
from troth.runtime.jobs.errors import ForeignJobError, JobElsewhereError, JobStartError, UnknownJobError
from troth.runtime.jobs.job_files import JobEnding, JobFiles
from troth.runtime.jobs.job_log import CREATED, STOP, JobDetails, JobLog, stream_of
from troth.runtime.jobs.machine import Machines, folder_of
from troth.runtime.jobs.monitor import JOB, JobMonitor, OpenJob, nothing_found, settle
from troth.runtime.jobs.outcome import SILENT, STATES, describe, outcome_of, title_of
from troth.runtime.jobs.records import JobRecord, JobState, Output
from troth.runtime.jobs.supervisor import LOG
from troth.runtime.jobs.supervisor_client import SupervisorClient
from troth.runtime.jobs.watching import WatchPatterns, WatchState
from troth.runtime.promises import Inline, Outbox, Promises, Pushed, Retention, Stored
from troth.runtime.promises.errors import NotSettledError
from troth.runtime.promises.promises import Detach, WorkKind
from troth.runtime.promises.retention import WEEK
from troth.runtime.store import Store, StoreError, Transaction
from troth.runtime.store.failpoints import reach
from troth.runtime.store.promise_records import NewPromise, PromiseRecord, PromiseState

if TYPE_CHECKING:
    from troth.runtime.tools import Tool

__all__ = ["Jobs"]

_LONGEST_LETTER = 4  # bytes
_IS_POSIX = os.name == "posix"

Admit = Callable[[Transaction, str, str, float], None]
"""Asked in the commit that writes a job down, with its id and its title; refuses by raising."""


class Jobs:
    """The jobs of one store. Every verb comes in two colors: `start` and `astart`, `wait` and `await_end`."""

    def __init__(
        self,
        store: Store,
        promises: Promises,
        outbox: Outbox,
        *,
        admit: Admit | None = None,
        looks_after: bool = True,
    ) -> None:
        self._store = store
        self._promises = promises
        self._outbox = outbox
        self._admit = admit
        self._looks_after = looks_after
        self._folder = folder_of(store.path)
        self._place = str(self._folder)
        self._machines = Machines(store)
        self._details: dict[str, JobDetails] = {}
        """Of open jobs, where several machines share the store."""
        self._are_old_stopped = False
        self._monitor = JobMonitor(store, self._load, self._after_look)
        self._client = SupervisorClient(self._folder, self._ended)
        self._inline: dict[str, threading.Event] = {}
        self._pids: dict[str, list[int]] = {}
        """Of those that were started here, until their files say it; empty until the supervisor has said it."""
        self._expired_to = 0.0
        self._looked_for_expired_at = 0.0
        self._pid = os.getpid()
        promises.register(WorkKind(JOB, self._cancel))

    # Starting

    def start(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        notify: bool = True,
        watch: "str | re.Pattern[str] | Iterable[str | re.Pattern[str]]" = (),
        on_shutdown: Literal["survive", "stop"] = "survive",
        timeout: float | None = None,
        detach: Detach = "may",
        job_id: str | None = None,
        retention: Retention | float | None = WEEK,
    ) -> Pushed | Stored | Inline:
        """Start a command: a text for the shell, or a list of words. Its promise has the id of the job.

        `env` is added to our environment; None takes a name away. With `notify` its end is told, with `watch` each line
        of its output that has one of these texts, or matches one of these regular expressions. `on_shutdown="stop"`
        ends it with this program, however that ends. `timeout` is in seconds. `JobStartError` if it could not be
        started.
        """
        self._check_usable()
        patterns = WatchPatterns(watch)
        details = self._checked(command, cwd, env, patterns, notify, on_shutdown, timeout)
        environment = _environment(env)
        binding = self._promises.binding_for(detach)
        if binding is None:
            return self._run_inline(details, environment)
        new_id = f"j-{os.urandom(8).hex()}" if job_id is None else _checked_id(job_id)
        if not notify and not patterns:
            because = "it was started with `notify=False`"
            binding = Binding(binding.session, binding.channel, Capability.STORE, because)
        if self._store.is_shared:
            folder, host = str(self._folder / new_id), socket.gethostname()
            details = replace(details, machine=self._machines.name(), host=host, folder=folder)
        request = self._request(new_id, details, environment)
        is_announced = self._client.announce(request)
        try:
            new = self._write_down(new_id, details, binding, retention)
            self._launch(new, details, request)
        finally:
            if is_announced:
                self._client.end_announcement()
        self._monitor.add([new_id])
        return self._promises.outcome(new, binding)

    async def astart(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        notify: bool = True,
        watch: "str | re.Pattern[str] | Iterable[str | re.Pattern[str]]" = (),
        on_shutdown: Literal["survive", "stop"] = "survive",
        timeout: float | None = None,
        detach: Detach = "may",
        job_id: str | None = None,
        retention: Retention | float | None = WEEK,
    ) -> Pushed | Stored | Inline:
        """`start` for a task."""
        return await call(
            lambda: self.start(
                command,
                cwd=cwd,
                env=env,
                notify=notify,
                watch=watch,
                on_shutdown=on_shutdown,
                timeout=timeout,
                detach=detach,
                job_id=job_id,
                retention=retention,
            )
        )

    def _checked(
        self,
        command: str | Sequence[str],
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str | None] | None,
        patterns: WatchPatterns,
        notify: bool,  # noqa: FBT001  as it was given
        on_shutdown: str,
        timeout: float | None,
    ) -> JobDetails:
        value: object = command
        words: list[Any] = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0].strip():
            raise MisuseError(
                f"{command!r} is not a command. Nothing was started. Give a string for the shell, or a list of words."
            )
        if on_shutdown not in ("survive", "stop"):
            raise MisuseError(f"`on_shutdown` is {on_shutdown!r}; it can be 'survive' or 'stop'. Nothing was started.")
        seconds: object = timeout
        if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
            raise MisuseError(
                f"`timeout` is {timeout!r}; it is a number of seconds above 0, or None for no limit.\n"
                "Nothing was started."
            )
        # A `Path` takes as long as the commit.
        folder: object = cwd
        if folder is not None and not isinstance(folder, str | bytes | os.PathLike):
            raise MisuseError(f"`cwd` is {cwd!r}, which is not the path of a folder. Nothing was started.")
        place = os.getcwd() if cwd is None else os.path.abspath(os.fsdecode(cwd))  # noqa: PTH109, PTH100
        if cwd is not None and not os.path.isdir(place):  # noqa: PTH112
            problem = "is a file" if os.path.exists(place) else "does not exist"  # noqa: PTH110
            raise MisuseError(f"The job's folder {place!r} {problem}. Nothing was started.")
        return JobDetails(
            command=command if isinstance(command, str) else words,
            cwd=place,
            env=sorted(env or ()),
            notify=bool(notify),
            watch=patterns.to_json(),
            on_shutdown=on_shutdown,
            timeout=timeout,
            owner=self._outbox.owner_id,
        )

    def _write_down(
        self, job_id: str, details: JobDetails, binding: Binding, retention: Retention | float | None
    ) -> NewPromise:
        title = title_of(details.command)

        def work(tx: Transaction) -> NewPromise:
            now = self._store.clock()
            new = self._promises.open_promise(
                tx, JOB, job_id, title, promise_id=job_id, binding=binding, retention=retention
            )
            tx.append_event(stream_of(job_id), CREATED, details.to_json(), now)
            if self._admit is not None:
                self._admit(tx, job_id, title, now)
            return new

        return self._store.commit(JOB_START, work)

    def _request(self, job_id: str, details: JobDetails, environment: dict[str, str]) -> dict[str, Any]:
        return {
            "id": job_id,
            "folder": f"{self._place}/{job_id}",
            "command": details.argv,
            "cwd": details.cwd,
            "env": environment,
            "timeout": details.timeout,
            "stops_with_owner": details.on_shutdown == "stop",
            "is_kept": True,
        }

    def _launch(self, new: NewPromise, details: JobDetails, request: dict[str, Any]) -> None:
        """Have the command started. If it cannot be, its promise ends here, and the caller is told."""
        problem: dict[str, str] | None
        pid = self._pids[new.id] = list[int]()  # in there before it can be over, which takes it away
        try:
            reach(JOB_EXEC.before)
            answer = self._client.start(request)
            reach(JOB_EXEC.after)
            problem = answer.get("problem")
            if problem is None:
                pid.append(answer["pid"])
            else:
                self._pids.pop(new.id, None)
        except BaseException as error:
            self._pids.pop(new.id, None)
            if self._files(new.id).give_up():
                self._fail(new, details, {"type": type(error).__name__, "message": str(error)})
                raise
            if not isinstance(error, RunError | TimeoutError):
                raise
            return  # it was asked for, and nobody said what came of it: whoever looks after it finds out
        if problem is not None:
            self._fail(new, details, problem)
            raise JobStartError(
                f"{new.title} could not be started: {problem['message']} ({problem['type']}).\n"
                "The job is not running, and no result will be delivered."
            )

    def _fail(self, new: NewPromise, details: JobDetails, problem: dict[str, str]) -> None:
        record = self._store.promises.find(new.id)
        assert record is not None
        job = OpenJob(record, JobLog(details, 1), self._files(new.id))
        ending = JobEnding(self._store.clock(), problem=problem)
        try:
            self._store.commit(
                JOB_END, lambda tx: settle(tx, job, ending, nothing_found(job), self._store.clock(), is_told=True)
            )
        except StoreError:
            self._monitor.add_unstarted(new.id, ending)  # it is told through the promise, once the store takes it
            raise

    def _run_inline(self, details: JobDetails, environment: dict[str, str]) -> Inline:
        """Run the command here and now: its end can be told to nobody later."""
        job_id = f"inline-{os.urandom(8).hex()}"
        files = self._files(job_id)
        ended = self._inline[job_id] = threading.Event()
        request = {**self._request(job_id, details, environment), "stops_with_owner": True, "is_kept": False}
        try:
            problem = self._client.start(request).get("problem")
            if problem is not None:
                raise JobStartError(f"{title_of(details.command)} could not be started: {problem['message']}.")
            while (ending := files.ending()) is None:
                process = files.process()
                if not ended.wait(1.0) and process is not None and not process.is_supervised:
                    ending = files.ending() or JobEnding(time.time(), None, "lost")
                    break
            outcome = outcome_of(title_of(details.command), ending, files, ending.ended_at, tail=None)
            return Inline({**outcome.result, "output_file": None})  # all of it is here, and the file goes
        except BaseException:
            files.stop("stop")
            raise
        finally:
            del self._inline[job_id]
            files.remove()

    def _ended(self, job_id: str) -> None:
        """For the supervisor's connection: a command has ended."""
        self._pids.pop(job_id, None)
        waiting = self._inline.get(job_id)
        if waiting is not None:
            waiting.set()
        else:
            self._monitor.add([job_id])

    # Looking

    def _files(self, job_id: str) -> JobFiles:
        return JobFiles(self._folder / job_id)

    def _load(self, job_id: str) -> OpenJob | None:
        """A job that is not over; nothing if it is."""
        record = self._store.promises.find(job_id)
        if record is None or record.is_settled:
            return None
        job_log = self._log(job_id)
        return OpenJob(record, job_log, self._files(job_id)) if self._machines.is_here(job_log.details) else None

    def _log(self, job_id: str) -> JobLog:
        events = list(self._store.events(stream_of(job_id)))
        while more := self._store.events(stream_of(job_id), after=events[-1].seq if events else 0):
            events += more
        return JobLog.of(events)

    def _find(self, job_id: str, session: str | None) -> PromiseRecord:
        record = self._store.promises.find(job_id)
        if record is None or record.work != JOB:
            raise UnknownJobError(
                f"There is no job {job_id!r} in this store, and there never was one.\n"
                "`runtime.jobs.list()` and `troth jobs list` list the jobs."
            )
        asking = session if session is not None else turn_session()
        if asking not in (None, record.session):
            raise ForeignJobError(f"The job {job_id!r} belongs to another session than {asking!r}. Nothing was done.")
        return record

    def get(self, job_id: str, *, session: str | None = None) -> JobRecord:
        """A job as it is now. A turn of a session, or `session=`, sees only that session's jobs."""
        return self._record(self._find(job_id, session))

    async def aget(self, job_id: str, *, session: str | None = None) -> JobRecord:
        """`get` for a task."""
        return await call(lambda: self.get(job_id, session=session))

    def _record(self, promise: PromiseRecord) -> JobRecord:
        job_log = self._log(promise.id)
        details, files = job_log.details, self._files(promise.id)
        is_here = self._machines.is_here(details)
        if not is_here:
            files = JobFiles(self._machines.files_of(details, promise.id))
        answered = self._pids.get(promise.id)  # before the files: it is forgotten once they say it
        pid = answered[0] if answered else None
        process, ending = (files.process(), files.ending()) if is_here else (None, None)
        result = promise.result or {}
        code, reason = result.get("exit_code"), result.get("reason")
        if process is not None:
            pid = process.pid
        if promise.is_settled:
            state = STATES[promise.state]
            text = self._words(promise, code, reason)
        elif ending is not None:  # nobody has taken notice yet
            outcome = outcome_of(promise.title, ending, files, promise.created_at)
            state, code, reason = STATES[outcome.state], ending.code, ending.reason
            text = describe(promise.title, code, reason, ending.problem)
        else:
            state = JobState.STARTING if pid is None and is_here else JobState.RUNNING
            text = f"{promise.title} is {state}{'' if is_here else f' on {details.host}'}."
        return JobRecord(
            id=promise.id,
            session=promise.session,
            command=details.command,
            cwd=details.cwd,
            state=state,
            exit_code=code,
            reason=reason,
            text=text,
            pid=pid,
            notify=details.notify,
            watch=[row.get("text") or row["regex"] for row in details.watch],
            hits=self._hits(promise, job_log.watch),
            on_shutdown=details.on_shutdown,
            timeout=details.timeout,
            created_at=promise.created_at,
            ended_at=promise.settled_at if ending is None else ending.ended_at,
            expired_at=promise.expired_at,
            output_bytes=files.size() if is_here else result.get("output_bytes", 0),
            output_file=str(files.output) if is_here else result.get("output_file", str(files.output)),
            machine="" if is_here else details.host or "another machine",
        )

    def _hits(self, promise: PromiseRecord, watch: WatchState) -> int:
        if not promise.is_settled:
            return watch.hits
        last = self._store.events(stream_of(promise.id), after=self._store.last_event(stream_of(promise.id)) - 1)
        return int(last[-1].payload.get("hits", watch.hits)) if last else watch.hits

    @staticmethod
    def _words(promise: PromiseRecord, code: int | None, reason: str | None) -> str:
        if promise.state is PromiseState.EXPIRED:
            return f"{promise.title} has expired since {_moment(promise.expired_at)}: its result is gone."
        if promise.error is not None:
            return str(promise.error["message"])
        return describe(promise.title, code, reason, None)

    def list(self, *, session: str | None = None, limit: int = 100) -> Sequence[JobRecord]:
        """Jobs, the newest first; in a turn, those of its session."""
        check_count("limit", limit, least=0)
        asking = session if session is not None else turn_session()
        return [self._record(row) for row in self._store.promises.newest(session=asking, work=JOB, limit=limit)]

    async def alist(self, *, session: str | None = None, limit: int = 100) -> Sequence[JobRecord]:
        """`list` for a task."""
        return await call(lambda: self.list(session=session, limit=limit))

    def wait(self, job_id: str, timeout: float | None = None, *, session: str | None = None) -> JobRecord:
        """A job, waiting for its end. Waiting acknowledges nothing. `NotSettledError` if it was not over in time."""
        record = self._find(job_id, session)
        if not record.is_settled:
            self._hasten(job_id)
            self._promises.wait(job_id, timeout, session=record.session)
        return self._record(self._find(job_id, session))

    async def await_end(self, job_id: str, timeout: float | None = None, *, session: str | None = None) -> JobRecord:
        """`wait` for a task. Cancelling it only ends the waiting."""
        record = await self.aget(job_id, session=session)
        if not record.is_over:
            await call(self._hasten, job_id)
        await self._promises.await_end(job_id, timeout, session=record.session)
        return await self.aget(job_id, session=session)

    def read(self, job_id: str, after: int = 0, *, limit: int = 1 << 16, session: str | None = None) -> Output:
        """Up to `limit` bytes of the output that follow the first `after`. Reading consumes nothing.

        A letter of which only the beginning is there comes whole, with a later piece. One that is longer than `limit`
        comes all the same.
        """
        record = self._find(job_id, session)
        if record.state is PromiseState.EXPIRED:
            raise MisuseError(f"The job {job_id!r} has expired since {_moment(record.expired_at)}: its output is gone.")
        check_count("after", after, least=0)
        check_count("limit", limit)
        files = self._files_here(job_id, "read")
        is_over = record.is_settled or files.ending() is not None
        text, end = _letters(files, after, limit, is_over=is_over)
        is_removed = is_over and not files.output.exists() and (record.error or {}).get("type") != "JobStartError"
        return Output(text, after, end, files.size(), is_over, str(files.output), is_removed)

    async def aread(self, job_id: str, after: int = 0, *, limit: int = 1 << 16, session: str | None = None) -> Output:
        """`read` for a task."""
        return await call(lambda: self.read(job_id, after, limit=limit, session=session))

    # Acting

    def write(
        self,
        job_id: str,
        data: str | bytes = b"",
        *,
        end: bool = False,
        timeout: float = 10.0,
        session: str | None = None,
    ) -> None:
        """Write to the job's stdin; with `end`, nothing comes after it. `JobInputError` if nobody reads it."""
        self._find(job_id, session)
        files = self._files_here(job_id, "written")
        given: object = data
        if not isinstance(given, str | bytes):
            raise MisuseError(f"{given!r} is neither a string nor bytes. Nothing was written to the job {job_id!r}.")
        if data:
            files.write(data.encode() if isinstance(data, str) else data, timeout)
        if end:
            files.end_input()

    async def awrite(
        self,
        job_id: str,
        data: str | bytes = b"",
        *,
        end: bool = False,
        timeout: float = 10.0,
        session: str | None = None,
    ) -> None:
        """`write` for a task."""
        await call(lambda: self.write(job_id, data, end=end, timeout=timeout, session=session))

    def stop(self, job_id: str, *, timeout: float = 10.0, session: str | None = None) -> JobRecord:
        """Stop a job and all that it has started, waiting at most `timeout` seconds for it. One that is over stays."""
        record = self._find(job_id, session)
        if not record.is_settled:
            self._request_stop(job_id, "stop")
            self._await_stopped(record, timeout)
        return self.get(job_id, session=session)

    def _await_stopped(self, record: PromiseRecord, timeout: float) -> None:
        try:
            self._promises.wait(record.id, timeout, session=record.session)
        except NotSettledError:
            return  # the record says that it is running still

    async def astop(self, job_id: str, *, timeout: float = 10.0, session: str | None = None) -> JobRecord:
        """`stop` for a task."""
        return await call(lambda: self.stop(job_id, timeout=timeout, session=session))

    def _cancel(self, job_id: str) -> None:
        """For its promise, which has refused other sessions already: the same as `stop`."""
        self._request_stop(job_id, "stop")

    def _request_stop(self, job_id: str, reason: str) -> None:
        self._store.commit(
            JOB_STOP, lambda tx: tx.append_event(stream_of(job_id), STOP, {"reason": reason}, self._store.clock())
        )
        if self._runs_here(job_id):  # elsewhere, whoever looks after it there finds that in its log, within a second
            self._files(job_id).stop(reason)
            self._monitor.add([job_id])

    def tools(self) -> "Sequence[Tool]":
        """Ready tools for an agent: start, look, read, wait, write, stop, list."""
        from troth.runtime.jobs.tools import tools_for

        return tools_for(self)

    # Going on

    def look_after(self) -> None:
        """Take notice of jobs that were started by others, or before a restart."""
        if not self._looks_after:
            return
        open_ids = self._store.promises.open_subjects(JOB)
        self._monitor.add(self._ours(open_ids) if self._store.is_shared else open_ids)
        self._remove_expired()

    def _hasten(self, job_id: str) -> None:
        """Look after a job that somebody waits for, at once."""
        if self._runs_here(job_id):
            self._monitor.add([job_id])

    def _after_look(self) -> None:
        self._machines.beat()
        self._remove_expired()

    # Several machines

    def _runs_here(self, job_id: str) -> bool:
        return not self._store.is_shared or self._machines.is_here(self._details_of(job_id))

    def _details_of(self, job_id: str) -> JobDetails:
        details = self._details.get(job_id)
        if details is None:
            (created,) = self._store.events(stream_of(job_id), limit=1)
            details = self._details[job_id] = JobLog.of([created]).details
        return details

    def _files_here(self, job_id: str, what: str) -> JobFiles:
        """The files of a job of this machine."""
        if self._runs_here(job_id):
            return self._files(job_id)
        details = self._details_of(job_id)
        raise JobElsewhereError(
            f"The files of the job {job_id!r} are on the machine {details.host!r}, in {details.folder!r}. Nothing was "
            f"{what}.\nRun `troth jobs` there. The last output of a job is part of its result, here too."
        )

    def _ours(self, open_ids: Sequence[str]) -> Sequence[str]:
        """The jobs of this machine; those of machines that are taken for dead are told as lost."""
        still_open = set(open_ids)
        self._details = {job_id: details for job_id, details in self._details.items() if job_id in still_open}
        self._stop_old()
        ours, others = [], {}
        for job_id in open_ids:
            if self._runs_here(job_id):
                ours.append(job_id)
            else:
                others[job_id] = self._details_of(job_id)
        if others and self._machines.is_due():
            silent = self._machines.silent({details.machine for details in others.values()})
            for job_id in [job_id for job_id, details in others.items() if details.machine in silent]:
                self._lose(job_id, others[job_id])
        return ours

    def _lose(self, job_id: str, details: JobDetails) -> None:
        record = self._store.promises.find(job_id)
        now = self._store.clock()
        if record is None or record.is_settled or now - record.created_at < self._store.machine_lifetime:
            return  # its machine may not have been heard of since, because it has just begun
        job = OpenJob(record, self._log(job_id), JobFiles(self._machines.files_of(details, job_id)))
        ending = JobEnding(now, None, SILENT)
        self._store.commit(JOB_END, lambda tx: settle(tx, job, ending, nothing_found(job), self._store.clock()))

    def _stop_old(self) -> None:
        """Once: stop what runs here although it was told as lost while this machine was not heard of."""
        if self._are_old_stopped:
            return
        self._are_old_stopped = True
        for process in self._folder.glob("*/process"):
            record = self._store.promises.find(process.parent.name)
            if record is not None and record.is_settled:
                JobFiles(process.parent).stop(SILENT)

    def _remove_expired(self) -> None:
        """Let go of the files of jobs whose retention is over."""
        now = time.monotonic()
        if now - self._looked_for_expired_at < 1.0 or not self._looks_after:
            return
        self._looked_for_expired_at = now
        for job_id, moment in self._store.promises.expired_subjects(JOB, since=self._expired_to):
            self._files(job_id).remove()
            self._expired_to = max(self._expired_to, moment)

    def _check_usable(self) -> None:
        if not _IS_POSIX:
            raise MisuseError(
                "Jobs need POSIX: sessions, process groups and named pipes. Nothing was started.\n"
                "On this system, use `promises.start` with a function that runs the command."
            )
        if self._pid != os.getpid():
            raise MisuseError("These jobs belong to the process that this one was forked from. Open a new runtime.")

    def close(self) -> None:
        """Look after nothing any more. Jobs go on, but those that are to stop with this program."""
        if self._pid == os.getpid():
            self._client.close()
            self._monitor.close()


def _checked_id(job_id: object) -> str:
    if not isinstance(job_id, str) or job_id == LOG or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", job_id):
        raise MisuseError(
            f"{job_id!r} is not an id of a job, which names a folder: up to 100 letters (a to z), digits, `_`, `.` and "
            "`-`, a letter or a digit first.\nNothing was started."
        )
    return job_id


def _letters(files: JobFiles, after: int, limit: int, *, is_over: bool) -> tuple[str, int]:
    """Whole letters that follow the first `after` bytes of the output, and where they end."""
    while True:
        data = files.read(after, limit)
        is_last = is_over and after + len(data) >= files.size()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final=is_last)
        if text or len(data) < limit or limit >= _LONGEST_LETTER:
            held_back = len(decoder.getstate()[0])  # the beginning of a letter whose rest comes with the next piece
            return text, after + len(data) - held_back
        limit += 1


def _environment(env: Mapping[str, str | None] | None) -> dict[str, str]:
    """Ours, with what was given. A job is somebody's worker: what it promises itself is stored, unless it says more."""
    environment = dict(_ours())
    environment.setdefault(VARIABLE, "store")
    if env is None:
        return environment
    added: object = env
    if not isinstance(added, Mapping):
        raise MisuseError(f"`env` is {env!r}, which is not a mapping of names to values. Nothing was started.")
    for name, value in added.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in f"{name}{value}":
            raise MisuseError(f"`env` has {name!r}, which is not the name of a variable. Nothing was started.")
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    return environment


_last_ours: tuple[dict[Any, Any], dict[str, str]] = {}, {}


def _ours() -> dict[str, str]:
    """Our environment, which is decoded only where it has changed: that takes as long as the commit of a small job."""
    global _last_ours  # noqa: PLW0603  two threads would both write what is right
    raw: dict[Any, Any] | None = getattr(os.environ, "_data", None)
    if not isinstance(raw, dict):
        return dict(os.environ)
    encoded, decoded = _last_ours
    if raw != encoded:
        encoded = raw.copy()
        decoded = {os.fsdecode(name): os.fsdecode(value) for name, value in encoded.items()}
        _last_ours = encoded, decoded
    return decoded


def _moment(at: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at or 0.0))
