"""Kill an agent: revoke its membership in the first commit, then stop, hand over or undo what it had going on.

What follows the first commit is a decision of the engine, so it goes on at the next start if the process dies. What
came of it is read off the store, never remembered, so the answer is the same for everybody who asks.
"""

import json
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from troth.runtime.conversations.log import ASKED, stream_of
from troth.runtime.engine import Engine, ResultTimeoutError, RunFailedError
from troth.runtime.engine.commands import Command, Step
from troth.runtime.engine.errors import StepFailedError, UnknownRunError
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.job_log import STOP, JobLog
from troth.runtime.jobs.job_log import stream_of as job_stream
from troth.runtime.jobs.machine import Machines, folder_of
from troth.runtime.sessions.commit_points import KILL_ANSWER, WORK
from troth.runtime.sessions.governance import Governance
from troth.runtime.sessions.isolated import end_process
from troth.runtime.store import Notifier, Store, Transaction
from troth.runtime.store.rows.sessions import KillRow, WorkRow

__all__ = ["Kill", "Stopper", "kill_decision", "request_end"]

_LOOK = 0.02  # seconds between looks at the files of a job that is to end
_ALIVE = 0.25  # seconds between looks whether a process that is to let go still lives: a dead one rings for nobody


@dataclass(frozen=True, slots=True)
class Kill:
    """What came of a kill. `terminated` is true only if nothing of the agent goes on; `left` says why not."""

    id: str
    session: str
    agent: str
    reason: str
    at: float
    terminated: bool
    stopped: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: KillRow) -> "Kill":
        """The kill of a row that has its answer."""
        answer = json.loads(row.answer or "{}")
        lists = {name: tuple(answer.get(name, ())) for name in ("stopped", "undone", "handed_over", "left")}
        return cls(row.id, row.session, row.agent, row.reason, row.at, not lists["left"], **lists)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {name: getattr(self, name) for name in self.__slots__}


def request_end(tx: Transaction, row: WorkRow, now: float) -> None:
    """Write down, in this commit, that a run is to be cancelled, a conversation interrupted, a job stopped."""
    if row.kind == "conversation":
        tx.append_event(stream_of(row.id), ASKED, {"what": "interrupt"}, now)
    elif row.kind == "job":
        tx.append_event(job_stream(row.id), STOP, {"reason": "session"}, now)
    else:
        tx.request_cancel(row.id, now)


class Stopper:
    """Waits until what goes on in sessions has ended. `interrupt` reaches a conversation that runs in this process."""

    def __init__(
        self, governance: Governance, store: Store, engine: Engine, interrupt: Callable[[str], object]
    ) -> None:
        self._governance = governance
        self._engine = engine
        self._interrupt = interrupt
        self._store = store

    def stop(self, rows: Sequence[WorkRow], timeout: float) -> list[str]:
        """Wait for all of them, at most `timeout` seconds; the answer names what has not ended."""
        deadline = time.monotonic() + timeout
        unstopped = []
        for row in rows:  # all are told before any is waited for
            if row.kind == "conversation":
                self._interrupt(row.id)
            elif row.kind == "job":
                files = self._job(row)
                if files is not None:
                    files.stop("session")
            elif not self._is_over(row.id):
                self._engine.cancel(row.id)
        for row in rows:
            why = self._await(row, deadline)
            if why is not None:
                unstopped.append(f"{row.kind} {row.what!r} ({row.id}): {why}")
        return unstopped

    def _is_over(self, run_id: str) -> bool:
        run = self._engine.find(run_id)
        return run is None or run.state.is_over

    def _await(self, row: WorkRow, deadline: float) -> str | None:
        if row.kind == "conversation":
            return self._await_conversation(row, deadline)
        if row.kind == "job":
            return self._await_job(row, deadline)
        try:
            self._engine.result(row.id, max(0.01, deadline - time.monotonic()))
        except ResultTimeoutError:
            return "its step does not end; a sync step cannot be stopped from outside"
        except (RunFailedError, UnknownRunError):
            pass  # that is how a cancelled run ends
        now = self._governance.store.read_sessions(lambda rows: rows.work(row.id))
        failed = [] if now is None else [step for step, is_done in json.loads(now.undone) if not is_done]
        return f"{', '.join(map(repr, failed))} could not be undone" if failed else None

    def _await_conversation(self, row: WorkRow, deadline: float) -> str | None:
        store = self._governance.store
        if row.process is not None:
            now = store.read_sessions(lambda rows: rows.work(row.id))
            end_process(now.process if now is not None and now.process else row.process)
        bell = Notifier()
        with store.listening(bell, stream_of(row.id)):  # it rings when the conversation is let go of
            while True:
                rung = bell.count
                holder = store.holder(stream_of(row.id))
                if holder is None or not store.is_alive(holder):
                    store.commit(WORK, lambda tx: tx.sessions.work_over(row.id))
                    return None
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return f"its step does not end in process {holder.pid}; a thread cannot be killed"
                bell.wait(rung, min(remaining, _ALIVE))

    def _job(self, row: WorkRow) -> JobFiles | None:
        """The files of a job; nothing if they are on another machine, which reads in the log that it is to stop it."""
        if self._store.is_shared:
            details = JobLog.of(self._store.events(job_stream(row.id), limit=1)).details
            if not Machines(self._store).is_here(details):
                return None
        return JobFiles(folder_of(self._store.path) / row.id)

    def _await_job_elsewhere(self, row: WorkRow, deadline: float) -> str | None:
        """Whoever writes down the end of a job writes down that this piece of work is over, too."""
        while True:
            promise = self._store.promises.find(row.id)
            if promise is None or promise.is_settled:
                return None
            if time.monotonic() >= deadline:
                return "its process is on another machine, which has not ended it yet"
            time.sleep(10 * _LOOK)

    def _await_job(self, row: WorkRow, deadline: float) -> str | None:
        files = self._job(row)
        if files is None:
            return self._await_job_elsewhere(row, deadline)
        while True:
            process = files.process()
            if files.ending() is not None or (process is None and files.give_up()):
                break
            if process is not None and not process.is_supervised and not process.lives:
                break
            if process is not None and files.stop_reason() is None:
                files.stop("session")  # it was just being started when it was told
            if time.monotonic() >= deadline:
                return "its process does not end" if process is not None else "it is just being started"
            time.sleep(_LOOK)
        self._store.commit(WORK, lambda tx: tx.sessions.work_over(row.id))
        return None

    def answer(self, kill_id: str, left: Sequence[str], failed: Sequence[str]) -> None:
        """Write down what came of a kill, as the store tells it, with the audit entry."""

        def work(tx: Transaction, now: float) -> None:
            row = tx.sessions.kill(kill_id)
            assert row is not None
            rows = tx.sessions.work_of_kill(kill_id)
            answer = {
                "stopped": [
                    f"{work_row.kind} {work_row.what}"
                    for work_row in rows
                    if work_row.handed_to is None and work_row.is_over
                ],
                "undone": [step for work_row in rows for step, is_done in json.loads(work_row.undone) if is_done],
                "handed_over": [
                    f"{work_row.kind} {work_row.what} to {work_row.handed_to}"
                    for work_row in rows
                    if work_row.handed_to
                ],
                "left": [*left, *failed],
            }
            tx.sessions.answer_kill(kill_id, json.dumps(answer))
            self._governance.trail.add(tx, row.session, row.agent, "kill.answered", {"kill": kill_id, **answer}, now)

        self._governance.commit(KILL_ANSWER, work)


def kill_decision(
    stopper: Stopper,
    governance: Governance,
    callbacks: Sequence[Callable[..., object]],
    kill_id: str,
    timeout: float,
    tries: int,
) -> Generator[Command, Any, None]:
    """What follows the first commit of a kill. Callbacks are called once, at the first try; never twice."""

    def stop() -> list[str]:
        rows = governance.store.read_sessions(lambda rows: rows.work_of_kill(kill_id))
        return stopper.stop([row for row in rows if row.handed_to is None], timeout)

    unstopped = yield Step("stop", stop)
    failed = []
    for number, callback in enumerate(callbacks if tries == 1 else ()):
        try:
            yield Step(f"callback {number}", _quiet(callback), kill_id, after_crash="fail")
        except StepFailedError as error:
            failed.append(f"the callback {number} failed: {error.type}: {error.message}")
    yield Step("answer", stopper.answer, kill_id, unstopped, failed)


def _quiet(callback: Callable[..., object]) -> Callable[..., object]:
    """A callback whose value is not kept, in its own color."""
    from troth import bridge
    from troth.color import Color

    if bridge.color_of(callback) is Color.ASYNC:

        async def acalled(kill_id: str) -> None:
            await callback(kill_id)  # type: ignore[misc]  # ASYNC was the verdict when it was given

        return acalled

    def called(kill_id: str) -> object:
        value = callback(kill_id)
        return value if hasattr(value, "__await__") else None

    return called
