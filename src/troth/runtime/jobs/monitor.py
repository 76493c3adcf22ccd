"""Look after jobs that are not over: find lines in their output, and write down how they end.

One daemon thread for each runtime, named `troth-jobs`, from the first job on. It looks at every open job of the store,
whoever has started it: a job outlives its program, and the next one takes notice of it. Each thing that it writes is a
compare-and-set on the job's log, so that two programs which look at one job tell of it once.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace

from troth.runtime.jobs.commit_points import JOB_END, JOB_WATCH
from troth.runtime.jobs.job_files import JobEnding, JobFiles, JobProcess
from troth.runtime.jobs.job_log import ENDED, WATCHED, JobLog, stream_of
from troth.runtime.jobs.outcome import SILENT, outcome_of
from troth.runtime.jobs.watching import LineScanner, Told, WatchHit, decide_what_to_tell
from troth.runtime.store import Store, StoreError, Transaction
from troth.runtime.store.json_codec import keep
from troth.runtime.store.promise_records import PromiseRecord

__all__ = ["JOB", "JobMonitor", "OpenJob", "nothing_found", "settle"]

log = logging.getLogger("troth.jobs")

JOB = "job"
"""The kind of work, as a promise names it."""
_TICK = 0.5  # seconds between two looks at jobs of which nobody says anything
_WATCHING = 0.1  # the same while there is output to be watched
_CHUNK = 1 << 20
_AT_ONCE = 16  # chunks of one job's output that are looked at before the next job's turn
_CHECK = 1.0  # seconds between two looks at whether a job's supervisor lives
_APART = 1e-5  # seconds between two things that one commit tells: the oldest is delivered first
_FAR = 4 << 20  # bytes without a hit after which it is written down how far the looking went
_HALF_STARTED = 30.0  # seconds after which a job is lost whose supervisor vanished while it was starting it
_STARTER_TELLS = 10.0  # seconds in which the caller of `start` records itself that the job could not be started
_LONGEST_START = 60.0  # seconds after which nobody is still about to start a job: they were told that it failed


class OpenJob:
    """A job that is not over, as this process sees it."""

    def __init__(self, record: PromiseRecord, job_log: JobLog, files: JobFiles) -> None:
        self.record = record
        self.log = job_log
        self.files = files
        self.checked_at = 0.0
        self.seen_at = time.monotonic()
        self.scanner = LineScanner(job_log.details.patterns, job_log.watch)
        self.is_watched = bool(job_log.details.watch)


class JobMonitor:
    """Looks after the open jobs of one store."""

    def __init__(self, store: Store, load: Callable[[str], OpenJob | None], after_look: Callable[[], None]) -> None:
        self._store = store
        self._load = load
        self._after_look = after_look
        self._lock = threading.Lock()
        self._jobs: dict[str, OpenJob | None] = {}
        self._urgent: set[str] = set()
        self._unstarted_here: dict[str, JobEnding] = {}
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._failing = False

    def add(self, job_ids: Iterable[str]) -> None:
        """Look after these jobs from now on, and at once. From any thread."""
        with self._lock:
            for job_id in job_ids:
                self._jobs.setdefault(job_id, None)
                self._urgent.add(job_id)
            if not self._jobs or self._is_closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="troth-jobs", daemon=True)
                self._thread.start()
        self._news.set()

    def add_unstarted(self, job_id: str, ending: JobEnding) -> None:
        """Write down, as soon as that is possible, that a job could not be started."""
        self._unstarted_here[job_id] = ending
        self.add([job_id])

    def close(self) -> None:
        """Look after nothing any more. What is open stays open, for whoever comes next."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._news.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(10)

    def _work(self) -> None:
        while not self._is_closed:
            self._news.wait(self._pause())
            self._news.clear()
            with self._lock:
                job_ids, urgent = list(self._jobs), self._urgent
                self._urgent = set()
            for job_id in job_ids:
                if self._is_closed:
                    return
                self._look_safely(job_id, is_urgent=job_id in urgent)
            self._look_around()

    def _look_around(self) -> None:
        try:
            self._after_look()
        except StoreError as error:
            if not self._failing:
                log.warning("The jobs of this store could not be monitored; trying again: %s", error)
            self._failing = True

    def _pause(self) -> float | None:
        with self._lock:
            if not self._jobs:
                return None
            is_watching = any(job is not None and job.is_watched for job in self._jobs.values())
        return _WATCHING if is_watching else _TICK

    def _look_safely(self, job_id: str, *, is_urgent: bool) -> None:
        try:
            job = self._jobs.get(job_id) or self._load(job_id)
            if job is None or self._look(job, is_urgent=is_urgent):
                with self._lock:
                    self._jobs.pop(job_id, None)
                    self._unstarted_here.pop(job_id, None)
                return
            self._jobs[job_id] = job
            self._failing = False
        except Exception as error:  # noqa: BLE001  whatever it is, the other jobs are looked after
            self._jobs[job_id] = None  # what it has read was not written down: it is read again
            if not self._failing or not isinstance(error, StoreError):
                log.warning("The job %r could not be monitored; trying again: %s", job_id, error)
            self._failing = True
            time.sleep(_WATCHING)

    def _look(self, job: OpenJob, *, is_urgent: bool) -> bool:
        """See what became of a job; answers whether it is over."""
        ending = job.files.ending()  # before its output is read: what was printed before the end is there then
        is_due = is_urgent or time.monotonic() - job.checked_at > _CHECK
        if ending is None and is_due:
            job.checked_at = time.monotonic()
            ending = self._missing(job)
        if ending is not None and ending.problem is not None and self._is_told_by_starter(job):
            return False
        hits, is_all_read = self._scan(job, is_end=ending is not None) if job.is_watched else ([], True)
        if not is_all_read:
            ending = None
        state = replace(job.log.watch, offset=job.scanner.offset, is_counted=job.scanner.is_counted)
        told = decide_what_to_tell(state, hits, self._store.clock(), is_end=ending is not None)
        if ending is not None:
            if self._store.commit(JOB_END, lambda tx: settle(tx, job, ending, told, self._store.clock())):
                return True
            self._catch_up(job)  # somebody else has written meanwhile; perhaps it was the end
            return self._load(job.record.id) is None
        if hits or told.summary or job.scanner.offset - job.log.watch.offset > _FAR:
            self._write(job, told)
        if not is_all_read:
            self._news.set()
        return False

    def _scan(self, job: OpenJob, *, is_end: bool) -> tuple[list[WatchHit], bool]:
        hits: list[WatchHit] = []
        for _ in range(_AT_ONCE):
            data = job.files.read(job.scanner.read_to, _CHUNK)
            if not data:
                return hits + (job.scanner.finish() if is_end else []), True
            hits += job.scanner.feed(data)
        return hits, False

    def _write(self, job: OpenJob, told: Told) -> None:
        """Write down what was found; if somebody else has written meanwhile, nothing is, and the job is read again."""

        def work(tx: Transaction) -> int | None:
            if tx.last_event(stream_of(job.record.id)) != job.log.cursor:
                return None
            now = self._store.clock()
            add_deliveries(tx, job, told, now)
            return tx.append_event(stream_of(job.record.id), WATCHED, asdict(told.state), now)

        cursor = self._store.commit(JOB_WATCH, work)
        if cursor is None:
            self._catch_up(job)
        else:
            job.log = replace(job.log, cursor=cursor, watch=told.state)

    # What nobody writes down

    def _missing(self, job: OpenJob) -> JobEnding | None:
        """How a job ended of which nobody says so: it was never started, or its supervisor was killed."""
        process = job.files.find_process()
        if process is None:
            return self._unstarted(job)
        self._catch_up(job)
        if job.log.stop_reason is not None and job.files.stop_reason() is None:
            job.files.stop(job.log.stop_reason)  # whoever asked for it died before it could say so
        if process.is_supervised:
            return None
        if process.lives:
            self._stand_in_for_supervisor(job, process)
            return None
        if (ending := job.files.ending()) is not None:
            return ending
        unknown = (
            "lost" if job.files.folder.exists() else "gone"
        )  # they may have been removed since the process was found
        return JobEnding(self._store.clock(), None, job.files.stop_reason() or unknown)

    def _stand_in_for_supervisor(self, job: OpenJob, process: JobProcess) -> None:
        """Do what the supervisor of a job would do, which was killed before it, and maybe was asked before that."""
        details, reason = job.log.details, job.files.stop_reason()
        if reason is None and details.timeout is not None and time.time() > process.begun_at + details.timeout:
            reason = "timeout"
        if reason is None and details.on_shutdown == "stop":
            is_living = self._store.promises.is_living(details.owner, self._store.clock())
            reason = None if is_living else "shutdown"
        if reason is not None:
            job.files.stand_in_for_supervisor(reason)

    def _catch_up(self, job: OpenJob) -> None:
        """Read what others have written into the job's log."""
        if self._store.last_event(stream_of(job.record.id)) != job.log.cursor:
            fresh = self._load(job.record.id)
            if fresh is not None:
                job.log, job.scanner = fresh.log, fresh.scanner
            elif self._store.is_shared:  # somebody has told that it is over: what goes on is not what was told
                job.files.stop(SILENT)

    def _is_told_by_starter(self, job: OpenJob) -> bool:
        """Whether the caller of `start` is about to get the error: a delivery would report it a second time."""
        if job.record.id in self._unstarted_here or time.monotonic() - job.seen_at > _STARTER_TELLS:
            return False
        return self._store.promises.is_living(job.log.details.owner, self._store.clock())

    def _unstarted(self, job: OpenJob) -> JobEnding | None:
        now = self._store.clock()
        if job.record.id in self._unstarted_here:
            return self._unstarted_here[job.record.id]
        is_living = self._store.promises.is_living(job.log.details.owner, now)
        if is_living and time.monotonic() - job.seen_at < _LONGEST_START:
            return None  # it is just being started
        problem = {"type": "NotStarted", "message": "the program that should have started it ended first"}
        if job.files.give_up():
            return JobEnding(now, None, "gone") if is_living else JobEnding(now, problem=problem)
        ending = job.files.ending()
        if ending is None and job.files.process() is None and time.time() - job.files.made_at() > _HALF_STARTED:
            return JobEnding(now, None, "lost")
        return ending


def add_deliveries(tx: Transaction, job: OpenJob, told: Told, now: float, *, is_end: bool = False) -> None:
    """Write down what is told of a job's output, in the commit that says how far it was looked at.

    A summary is of lines that were printed before the hits which come with it; at the end, of those after them, too.
    """
    moments = (now + number * _APART for number in itertools.count())
    if told.summary and not is_end:
        _add_summary(tx, job, told.summary, next(moments))
    for hit in told.hits:
        data, _ = keep({"line": hit.line, "pattern": hit.pattern, "offset": hit.offset}, "a hit")
        text = f"{job.record.title} printed: {hit.line}"
        tx.promises.add_delivery(job.record.id, "watch", next(moments), text=text, data=data)
    if told.summary and is_end:
        _add_summary(tx, job, told.summary, next(moments))


def _add_summary(tx: Transaction, job: OpenJob, count: int, moment: float) -> None:
    text = f"{job.record.title} printed {count} more {'line' if count == 1 else 'lines'} that you watch for; "
    data, _ = keep({"count": count, "file": str(job.files.output)}, "a summary")
    tx.promises.add_delivery(job.record.id, "summary", moment, text=f"{text}`read` shows them.", data=data, count=count)


def settle(tx: Transaction, job: OpenJob, ending: JobEnding, told: Told, now: float, *, is_told: bool = False) -> bool:
    """Write down the end of a job, and what is left to tell of it. False if somebody else has looked meanwhile.

    `is_told` if whoever had asked for it is told right here: there is nothing to deliver then.
    """
    job_id, stream = job.record.id, stream_of(job.record.id)
    last = tx.last_event(stream)  # first: others who would write its end wait for this commit from here on
    promise = tx.promises.find(job_id)
    if promise is None or promise.is_settled:
        return False
    if last != job.log.cursor and JobLog.of(tx.events(stream)).watch != job.log.watch:
        return False
    outcome = outcome_of(job.record.title, ending, job.files, job.record.created_at)
    add_deliveries(tx, job, told, now, is_end=True)
    tx.append_event(stream, ENDED, {"code": ending.code, "reason": ending.reason, "hits": told.state.hits}, now)
    end = now + (len(told.hits) + 1) * _APART
    tx.promises.settle(
        JOB, job_id, outcome.state, end, result=outcome.result_json, error=outcome.error_json, text=outcome.text
    )
    if is_told or not job.log.details.notify:
        tx.promises.acknowledge(f"{job_id}-done-1", now, "the caller was told" if is_told else "notify=False")
    tx.sessions.work_over(job_id)
    return True


def nothing_found(job: OpenJob) -> Told:
    """What is told of a job that has printed nothing."""
    return Told((), 0, job.log.watch)
